//! Following the interfaces of a device's accesses.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use braid_access::kernel::Kernel;
use braid_access::links::RouteEvents;
use braid_access::plan::{Plan, bound};
use braid_access::rules::Verdict;
use braid_access::settings::Settings;
use braid_access::view::View;

/// State of the link of an access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// Whether an interface of it is up and has a carrier.
    pub(super) up: bool,
    pub(super) address: Option<IpAddr>,
    /// The interface that packets leave by; none where the routes say that.
    pub(super) interface: Option<String>,
}

/// Interfaces and addresses that serve the accesses that are followed, by their numbers.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) plan: Plan,
    up: Vec<bool>,
}

impl Found {
    pub(super) fn in_view(settings: &Settings, view: &View) -> Self {
        let plan = bound(settings, view);
        let up = |access| {
            let mut all = view.interfaces.iter().zip(&plan.verdicts);
            all.any(|(i, v)| *v == Verdict::Serves(access) && i.up && i.carrier)
        };
        let up = (0..settings.accesses.len()).map(up).collect();
        Self { plan, up }
    }
}

/// How long a path may take to open, or be silent, before the next address is tried: at first,
/// and after several that did no better. Each try takes a path id.
const PATIENCE: Duration = Duration::from_secs(3);
const PATIENCE_MAX: Duration = Duration::from_secs(60);

/// The addresses of one access, each with its interface, of which one is used: the preferred one,
/// until nothing gets through from it while another access works.
#[derive(Debug)]
pub(super) struct Turns {
    all: Vec<(String, IpAddr)>,
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
    /// Returns the state of access number `access` now. Its addresses begin anew where they have
    /// changed.
    pub(super) fn state(&mut self, found: &Found, access: usize) -> State {
        let mine = found.plan.uses.iter().filter(|u| u.access == access);
        let all: Vec<_> = mine.map(|u| (u.interface.clone(), u.address)).collect();
        if all != self.all {
            *self = Self {
                all,
                ..Self::default()
            };
        }
        let used = self.all.get(self.at).cloned();
        let (interface, address) = used.unzip();
        State {
            up: found.up[access],
            address,
            interface,
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
    kernel: Kernel,
}

impl Watch {
    /// Inside a runtime, in the namespace of the calling thread.
    pub(super) fn open() -> braid_access::Result<Self> {
        // Before anything is read, so that no change falls between.
        let events = RouteEvents::open()?;
        let mut kernel = Kernel::open()?;
        kernel.hosts = events.hosts();
        Ok(Self { events, kernel })
    }

    /// Returns what serves the accesses now.
    pub(super) async fn found(&self, settings: &Settings) -> braid_access::Result<Found> {
        let view = self.kernel.view(&settings.proxy).await?;
        Ok(Found::in_view(settings, &view))
    }

    /// Waits for a change.
    pub(super) async fn changed(&mut self) -> braid_access::Result<()> {
        self.events.next().await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_access::links::{Address, Interface};
    use braid_access::settings::AccessSpec;

    /// A device with these interfaces, each with an address in the proxy's network.
    fn view(names: &[&str]) -> View {
        let mut view = View::default();
        for (k, name) in (1..).zip(names) {
            view.interfaces.push(Interface {
                index: k,
                name: (*name).to_owned(),
                up: true,
                carrier: true,
                ..Interface::default()
            });
            view.addresses.push(Address {
                ifindex: k,
                address: IpAddr::from([192, 0, 2, k as u8]),
                prefix_len: 24,
                global: true,
                unusable: false,
                deprecated: false,
                temporary: false,
            });
        }
        view
    }

    fn settings(interface: &str) -> Settings {
        Settings {
            accesses: vec![AccessSpec::new("nr", interface.parse().unwrap())],
            proxy: vec![IpAddr::from([192, 0, 2, 99])],
            ..Settings::default()
        }
    }

    #[test]
    fn the_interfaces_of_a_pattern_take_turns() {
        let s = settings("wwan*");
        let mut v = view(&["wwan0", "wwan1", "eth0"]);
        let mut turns = Turns::default();
        let mut state = |v: &View, next: bool| {
            if next {
                turns.at = (turns.at + 1) % turns.all.len();
            }
            let State {
                up,
                address,
                interface,
            } = turns.state(&Found::in_view(&s, v), 0);
            (up, address.map(|a| a.to_string()), interface)
        };
        let on = |k: u8| {
            let interface = format!("wwan{}", k - 1);
            (true, Some(format!("192.0.2.{k}")), Some(interface))
        };
        assert_eq!(state(&v, false), on(1));
        assert_eq!(state(&v, true), on(2));
        // What is as it was leaves the turn; another address begins with the best.
        assert_eq!(state(&v, false), on(2));
        v.interfaces[0].carrier = false;
        assert_eq!(state(&v, false), on(2));
        v.interfaces[0].carrier = true;
        assert_eq!(state(&v, false), on(1));
        v.interfaces.iter_mut().for_each(|i| i.up = false);
        assert_eq!(state(&v, false), (false, None, None));
        v.interfaces[1].up = true;
        v.addresses.clear();
        assert_eq!(state(&v, false), (true, None, None));
    }

    #[test]
    fn an_interface_that_is_ignored_serves_no_access() {
        let mut s = settings("wwan0");
        s.ignore = vec!["ww*".parse().unwrap()];
        let found = Found::in_view(&s, &view(&["wwan0"]));
        assert_eq!(Turns::default().state(&found, 0), State::default());
        let (_, why) = found.plan.out[0].clone().unwrap();
        assert!(why.contains("`ignore`"), "{why}");
    }

    #[test]
    fn an_address_from_which_nothing_gets_through_gives_way() {
        let addresses = ["2001:db8::3", "fd00::2"];
        let addresses = addresses.map(|a| ("wlan0".to_owned(), a.parse().unwrap()));
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
