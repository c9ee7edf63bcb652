//! Following the interfaces of a device's accesses.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use braid_link::preference::{self, Towards};
use braid_link::{Address, Links, RouteEvents};
use rtnetlink::Handle;

/// The state of an interface, for one family of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// Whether it is up and has a carrier.
    pub(super) up: bool,
    pub(super) address: Option<IpAddr>,
}

/// Whether `interface` is up, and which addresses it has: `wanted` alone, or all, in the order
/// of RFC 6724 towards the host `to`.
fn found(
    links: &Links,
    interface: &str,
    to: IpAddr,
    wanted: Option<IpAddr>,
) -> (bool, Vec<IpAddr>) {
    let Some(i) = links.interfaces.iter().find(|i| i.name == interface) else {
        return (false, vec![]);
    };
    let usable = links.addresses.iter().filter(|a| {
        let mine = a.ifindex == i.index && a.address.is_ipv4() == to.is_ipv4();
        mine && a.global && !a.unusable && wanted.is_none_or(|w| w == a.address)
    });
    let mut all: Vec<&Address> = usable.collect();
    let host = Some(to);
    let towards = Towards {
        host,
        ..Towards::default()
    };
    preference::sort(&mut all, towards);
    let addresses = all.iter().map(|a| a.address).collect();
    (i.up && i.carrier, addresses)
}

/// How long a path may take to open, or be silent, before the next address is tried: at first,
/// and after several that did no better. Each try takes a path id.
const PATIENCE: Duration = Duration::from_secs(3);
const PATIENCE_MAX: Duration = Duration::from_secs(60);

/// The addresses of one access, of which one is used: the preferred one, until nothing gets
/// through from it while another access works.
#[derive(Debug)]
pub(super) struct Turns {
    all: Vec<IpAddr>,
    at: usize,
    /// Since when nothing gets through.
    since: Option<Instant>,
    patience: Duration,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            all: vec![],
            at: 0,
            since: None,
            patience: PATIENCE,
        }
    }
}

impl Turns {
    /// Returns the state of the interface now. Its addresses begin anew where they have changed.
    pub(super) fn state(
        &mut self,
        links: &Links,
        interface: &str,
        to: IpAddr,
        wanted: Option<IpAddr>,
    ) -> State {
        let (up, all) = found(links, interface, to, wanted);
        if all != self.all || !up {
            *self = Self {
                all,
                ..Self::default()
            };
        }
        State {
            up,
            address: self.all.get(self.at).copied(),
        }
    }

    /// Whether its path works, and any other access's does; returns whether the next address
    /// has its turn.
    pub(super) fn look(&mut self, works: bool, other: bool, now: Instant) -> bool {
        if works {
            (self.since, self.patience) = (None, PATIENCE);
            return false;
        }
        if !other || self.all.len() < 2 {
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert(now);
        if now.duration_since(since) < self.patience {
            return false;
        }
        self.at = (self.at + 1) % self.all.len();
        self.since = Some(now);
        if self.at == 0 {
            self.patience = (self.patience * 2).min(PATIENCE_MAX);
        }
        true
    }
}

/// Asks the kernel now, and again whenever something has changed.
pub(super) struct Watch {
    events: RouteEvents,
    handle: Handle,
}

impl Watch {
    /// Inside a runtime, in the namespace of the calling thread.
    pub(super) fn open() -> braid_link::Result<Self> {
        // Before anything is read, so that no change falls between.
        let events = RouteEvents::open()?;
        Ok(Self {
            events,
            handle: braid_link::handle()?,
        })
    }

    pub(super) async fn links(&self) -> braid_link::Result<Links> {
        Links::read(&self.handle).await
    }

    /// Waits for a change.
    pub(super) async fn changed(&mut self) -> braid_link::Result<()> {
        self.events.next().await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_link::Interface;

    #[test]
    fn the_best_address_towards_the_proxy_is_taken() {
        let interface = Interface {
            index: 3,
            name: "wlan0".to_owned(),
            up: true,
            carrier: true,
            ..Interface::default()
        };
        let address = |text: &str, temporary, unusable| Address {
            ifindex: 3,
            address: text.parse().unwrap(),
            prefix_len: 64,
            global: true,
            unusable,
            deprecated: false,
            temporary,
        };
        let mut links = Links {
            interfaces: vec![interface],
            addresses: vec![
                address("2001:db8::1", true, false),
                address("2001:db8::2", false, true),
                address("2001:db8::3", false, false),
                address("192.0.2.9", false, false),
            ],
        };
        // The newest first, as the kernel has them: a router announces both by default.
        links
            .addresses
            .insert(0, address("fd00:0:0:1::2", false, false));
        let (six, four, local) = ("2001:db8:77::1", "203.0.113.1", "fd77::1");
        let of = |l: &Links, to: &str, wanted: Option<&str>| {
            let wanted = wanted.map(|w| w.parse().unwrap());
            let s = Turns::default().state(l, "wlan0", to.parse().unwrap(), wanted);
            (s.up, s.address.map(|a| a.to_string()))
        };
        assert_eq!(of(&links, six, None), (true, Some("2001:db8::3".into())));
        assert_eq!(
            of(&links, local, None),
            (true, Some("fd00:0:0:1::2".into()))
        );
        assert_eq!(of(&links, four, None), (true, Some("192.0.2.9".into())));
        let wanted = of(&links, six, Some("2001:db8::1"));
        assert_eq!(wanted, (true, Some("2001:db8::1".into())));
        assert_eq!(of(&links, six, Some("2001:db8::2")), (true, None));
        links.interfaces[0].carrier = false;
        assert!(!of(&links, four, None).0);
        let elsewhere = Turns::default().state(&links, "wlan1", four.parse().unwrap(), None);
        assert_eq!(elsewhere, State::default());
    }

    #[test]
    fn an_address_from_which_nothing_gets_through_gives_way() {
        let addresses = ["2001:db8::3".parse().unwrap(), "fd00::2".parse().unwrap()];
        let mut t = Turns {
            all: addresses.into(),
            ..Turns::default()
        };
        let begin = Instant::now();
        let mut changes = vec![];
        for s in 0..40 {
            if t.look(false, true, begin + Duration::from_secs(s)) {
                changes.push((s, t.at));
            }
        }
        // Each in its turn, ever more seldom.
        assert_eq!(changes, [(3, 1), (6, 0), (12, 1), (18, 0), (30, 1)]);
        // What works stays; where nothing does it is not the address.
        assert!(!t.look(true, true, begin + Duration::from_secs(100)));
        assert!(!t.look(false, false, begin + Duration::from_secs(200)));
        assert!(!t.look(false, true, begin + Duration::from_secs(300)));
        assert_eq!(t.at, 1);
    }
}
