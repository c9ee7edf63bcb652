//! Proxies of a device in the order of preference: `proxy`, then those of `fallback`. One of them is in
//! use. Where it does not answer any more and another one does, that takes its place.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use braid_api::EventKind;
use tokio::sync::watch;

use super::DaemonError;
use super::config::Config;
use super::daemon::Daemon;
use super::state::lock;

/// Proxies, and which of them is in use.
#[derive(Debug)]
pub(crate) struct Proxies {
    /// Addresses of each, in the order of preference: at most one of each family, none while its name is
    /// not resolved.
    known: Mutex<Vec<Vec<IpAddr>>>,
    used: watch::Sender<usize>,
}

/// Proxy that is not in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Other {
    /// Place in the order of preference, from 0.
    pub(crate) place: usize,
    /// First of its addresses.
    pub(crate) address: IpAddr,
}

impl Proxies {
    /// Begins with the one that is preferred.
    pub(crate) fn new(config: &Config) -> Self {
        let fallback = config.fallback.iter();
        let fallback = fallback.map(|host| host.address().into_iter().collect());
        Self {
            known: Mutex::new([config.proxy.clone()].into_iter().chain(fallback).collect()),
            used: watch::Sender::new(0),
        }
    }

    /// Returns the place of the one in use.
    pub(crate) fn used(&self) -> usize {
        *self.used.borrow()
    }

    /// Returns the addresses of one.
    pub(crate) fn addresses(&self, place: usize) -> Vec<IpAddr> {
        lock(&self.known).get(place).cloned().unwrap_or_default()
    }

    /// Notes the addresses of one.
    pub(crate) fn know(&self, place: usize, addresses: &[IpAddr]) {
        if let Some(known) = lock(&self.known).get_mut(place) {
            *known = addresses.to_vec();
        }
    }

    /// Whether there is no other one.
    pub(crate) fn is_alone(&self) -> bool {
        lock(&self.known).len() < 2
    }

    /// Lists those that are not in use and have an address, in the order of preference.
    pub(crate) fn others(&self) -> Vec<Other> {
        let used = self.used();
        let known = lock(&self.known);
        let all = known.iter().enumerate().filter(|(place, _)| *place != used);
        let all = all.filter_map(|(place, addresses)| {
            let address = *addresses.first()?;
            Some(Other { place, address })
        });
        all.collect()
    }

    /// Turns to another one, which is in use from then on.
    pub(crate) fn turn_to(&self, place: usize) {
        self.used.send_replace(place);
    }

    /// Returns a note for the status where it is not the preferred one.
    pub(crate) fn note(&self) -> Option<String> {
        let used = self.used();
        (used > 0).then(|| {
            format!(
                "the proxy {} serves, which is number {} of `proxy` and `fallback`: those before it did \
                 not answer",
                words(&self.addresses(used)),
                used + 1
            )
        })
    }
}

/// Lists addresses of one proxy, in words.
pub(crate) fn words(addresses: &[IpAddr]) -> String {
    let all: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    all.join(" and ")
}

/// Tells the daemon which proxy is in use, for ever.
pub(crate) async fn follow(daemon: Arc<Daemon>) -> DaemonError {
    let proxies = &daemon.shared().proxies;
    let mut used = proxies.used.subscribe();
    while used.changed().await.is_ok() {
        let place = *used.borrow_and_update();
        let addresses = proxies.addresses(place);
        let event = EventKind::ProxyChanged {
            to: addresses.clone(),
        };
        daemon.shared().log(None, event);
        daemon.go_by(addresses).await;
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_come_in_the_order_of_preference() {
        let a = |text: &str| text.parse::<IpAddr>().unwrap();
        let proxies = Proxies {
            known: Mutex::new(vec![vec![a("192.0.2.1")], vec![], vec![a("192.0.2.3")]]),
            used: watch::Sender::new(0),
        };
        let others = || -> Vec<_> { proxies.others().iter().map(|o| o.place).collect() };
        assert_eq!((others(), proxies.note()), (vec![2], None));
        assert!(!proxies.is_alone());
        proxies.know(1, &[a("2001:db8::2"), a("192.0.2.2")]);
        assert_eq!(others(), [1, 2]);
        proxies.turn_to(1);
        assert_eq!((others(), proxies.used()), (vec![0, 2], 1));
        let note = proxies.note().unwrap();
        assert!(note.contains("2001:db8::2 and 192.0.2.2 serves"), "{note}");
        proxies.know(7, &[a("192.0.2.9")]);
        assert_eq!(proxies.addresses(7), Vec::<IpAddr>::new());
    }
}
