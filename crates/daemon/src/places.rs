//! Places for connections of hosts that have shown nothing yet, so that no number of slow ones
//! keeps others out.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr};

use tokio::task::{AbortHandle, JoinSet};

/// Tasks, each of which serves a connection until dropped.
///
/// Whoever means it is served within a round trip or two. Where all places are taken, the
/// connection that has been there for longest therefore gives way to a new one: one of the same
/// network, if that has its share, else one of all.
pub(super) struct Places {
    open: JoinSet<()>,
    /// The oldest first.
    taken: VecDeque<(IpAddr, AbortHandle)>,
    at_once: usize,
    /// Places of one network: many devices may be behind an address (CGNAT, RFC 6888).
    of_one: usize,
}

impl Places {
    /// Begins with all places free.
    pub(super) fn new(at_once: usize) -> Self {
        Self {
            open: JoinSet::new(),
            taken: VecDeque::new(),
            at_once,
            of_one: at_once / 2,
        }
    }

    /// Gives a place to `task`, which serves a connection from an address.
    pub(super) fn take(&mut self, from: IpAddr, task: impl Future<Output = ()> + Send + 'static) {
        while self.open.try_join_next().is_some() {}
        self.taken.retain(|(_, task)| !task.is_finished());
        let network = network_of(from);
        let mut own = (0..).zip(&self.taken).filter(|(_, (n, _))| *n == network);
        let oldest = own.next().map(|(i, _)| i);
        let gives_way = match oldest {
            Some(i) if own.count() + 1 >= self.of_one => Some(i),
            _ => (self.taken.len() >= self.at_once).then_some(0),
        };
        if let Some((_, task)) = gives_way.and_then(|i| self.taken.remove(i)) {
            task.abort();
        }
        self.taken.push_back((network, self.open.spawn(task)));
    }
}

/// Returns the network that counts as one peer: a device has a whole /64 of IPv6.
pub(super) fn network_of(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(a) => Ipv6Addr::from_bits(a.to_bits() & !u128::from(u64::MAX)).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    /// Takes a place for ever; returns what ends with it.
    fn take(places: &mut Places, from: &str) -> oneshot::Receiver<()> {
        let (held, ended) = oneshot::channel();
        places.take(from.parse().unwrap(), async move {
            std::future::pending::<()>().await;
            drop(held);
        });
        ended
    }

    /// Whether each still has its place.
    async fn are_there(all: &mut [oneshot::Receiver<()>]) -> Vec<bool> {
        // Tasks that are aborted end when they have their turn.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let empty = Err(oneshot::error::TryRecvError::Empty);
        all.iter_mut().map(|t| t.try_recv() == empty).collect()
    }

    #[tokio::test]
    async fn a_flood_from_one_network_takes_nothing_from_others() {
        let mut places = Places::new(4);
        let mut others = vec![
            take(&mut places, "10.0.0.1"),
            take(&mut places, "2001:db8::1"),
        ];
        let flood = (0..100).map(|n| take(&mut places, &format!("2001:db8:1::{n:x}")));
        let mut flood: Vec<_> = flood.collect();
        assert_eq!(are_there(&mut others).await, [true, true]);
        let left = are_there(&mut flood).await;
        assert_eq!(left.iter().filter(|there| **there).count(), 2);
        assert_eq!(left[98..], [true, true], "the newest");
    }

    #[tokio::test]
    async fn the_oldest_gives_way_to_whoever_comes() {
        let mut places = Places::new(4);
        let from = |n: usize| format!("10.0.0.{n}");
        let mut all: Vec<_> = (0..6).map(|n| take(&mut places, &from(n))).collect();
        let there = are_there(&mut all).await;
        assert_eq!(there, [false, false, true, true, true, true]);
    }

    #[tokio::test]
    async fn who_has_left_takes_no_place() {
        let mut places = Places::new(4);
        let mut first = vec![take(&mut places, "10.0.0.1")];
        for _ in 0..100 {
            places.take([10, 0, 0, 2].into(), async {});
            tokio::task::yield_now().await;
        }
        assert_eq!(are_there(&mut first).await, [true]);
        assert!(places.taken.len() <= 2 && places.open.len() <= 2);
    }
}
