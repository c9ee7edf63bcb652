//! Following the interfaces of a device's accesses.

use std::net::IpAddr;

use braid_link::{Links, RouteEvents};
use rtnetlink::Handle;

/// The state of an interface, for one family of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// It is up and has a carrier.
    pub(super) up: bool,
    pub(super) address: Option<IpAddr>,
}

/// What `interface` is now: with the address `wanted`, or the first that lasts.
pub(super) fn state(links: &Links, interface: &str, v4: bool, wanted: Option<IpAddr>) -> State {
    let Some(i) = links.interfaces.iter().find(|i| i.name == interface) else {
        return State::default();
    };
    let usable = links.addresses.iter().filter(|a| {
        let mine = a.ifindex == i.index && a.address.is_ipv4() == v4;
        mine && a.global && !a.unusable && wanted.is_none_or(|w| w == a.address)
    });
    let best = usable.min_by_key(|a| a.temporary);
    State {
        up: i.up && i.carrier,
        address: best.map(|a| a.address),
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
    use braid_link::{Address, Interface};

    #[test]
    fn an_address_that_lasts_is_preferred() {
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
        let of = |l: &Links, v4, wanted: Option<&str>| {
            let s = state(l, "wlan0", v4, wanted.map(|w| w.parse().unwrap()));
            (s.up, s.address.map(|a| a.to_string()))
        };
        assert_eq!(of(&links, false, None), (true, Some("2001:db8::3".into())));
        assert_eq!(of(&links, true, None), (true, Some("192.0.2.9".into())));
        let wanted = of(&links, false, Some("2001:db8::1"));
        assert_eq!(wanted, (true, Some("2001:db8::1".into())));
        assert_eq!(of(&links, false, Some("2001:db8::2")), (true, None));
        links.interfaces[0].carrier = false;
        assert!(!of(&links, true, None).0);
        assert_eq!(state(&links, "wlan1", true, None), State::default());
    }
}
