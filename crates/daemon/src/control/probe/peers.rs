//! Addresses from which connections come now, listed only so often: whoever asks for a transfer
//! must not be able to keep the proxy busy with lists.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use braid_core::Time;

/// Age of a list by which requests are judged.
const LISTED: Duration = Duration::from_millis(100);

/// Peers as they were listed last.
#[derive(Debug, Default)]
pub(super) struct Peers(Option<(Time, BTreeSet<IpAddr>)>);

impl Peers {
    /// Whether a connection comes from an address at `now`; `list` lists all that there are.
    pub(super) fn contains(
        &mut self,
        address: IpAddr,
        now: Time,
        list: impl FnOnce() -> BTreeSet<IpAddr>,
    ) -> bool {
        let known = self.0.take().filter(|(at, _)| now.since(*at) < LISTED);
        let (_, all) = self.0.insert(known.unwrap_or_else(|| (now, list())));
        all.contains(&address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_requests_costs_ten_lists_a_second() {
        let mut peers = Peers::default();
        let [peer, stranger] = [1, 2].map(|n| IpAddr::from([10, 0, 0, n]));
        let mut lists = 0;
        for us in 0..1_000_000 / 20 {
            let now = Time::from_nanos(us * 20_000);
            let asks = if us % 2 == 0 { peer } else { stranger };
            let list = || {
                lists += 1;
                [peer].into()
            };
            assert_eq!(peers.contains(asks, now, list), asks == peer);
        }
        assert_eq!(lists, 10);
        let later = Time::from_nanos(2_000_000_000);
        assert!(!peers.contains(peer, later, BTreeSet::new), "it has gone");
    }
}
