//! Addresses that a proxy gives to devices. One that comes again gets the same, as long as nobody
//! else has it: what it has begun goes on.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

use super::Addresses;

/// Networks of the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pools {
    /// IPv4, a prefix of 8 to 29 bits.
    pub v4: Ipv4Net,
    /// IPv6, a prefix of 64 bits or less; absent: devices get none.
    pub v6: Option<Ipv6Net>,
}

impl Pools {
    /// Returns the addresses of the proxy itself: the first of each network.
    pub fn own(&self) -> Addresses {
        self.at(1)
    }

    /// Devices that get an address: all but the network's own, the proxy's and the last.
    fn len(&self) -> u32 {
        (u32::MAX >> self.v4.prefix_len()).saturating_sub(2)
    }

    fn at(&self, number: u32) -> Addresses {
        let v4 = self.v4.network().to_bits() + number;
        let v6 = |net: Ipv6Net| Ipv6Addr::from_bits(net.network().to_bits() + u128::from(number));
        Addresses {
            v4: Ipv4Addr::from_bits(v4),
            v6: self.v6.map(v6),
        }
    }
}

/// Device, as far as its address goes: its key, or its session where it has shown none.
pub(super) type Holder = [u8; 32];

/// Addresses, and who has them.
#[derive(Debug)]
pub(super) struct Pool {
    pools: Pools,
    /// Holder of each number, and how many sessions it has; none may be left of one that comes
    /// again.
    held: HashMap<u32, (Holder, u32)>,
}

impl Pool {
    pub(super) fn new(pools: Pools) -> Self {
        Self {
            pools,
            held: HashMap::new(),
        }
    }

    /// Gives a holder its addresses, with their number; `None` where none are left.
    pub(super) fn take(&mut self, holder: Holder) -> Option<(u32, Addresses)> {
        let mut hash = DefaultHasher::new();
        holder.hash(&mut hash);
        let len = self.pools.len();
        let first = u32::try_from(hash.finish() % u64::from(len.max(1))).unwrap_or(0);
        let places = (0..len).map(|i| 2 + (first + i) % len);
        let mut free = None;
        for number in places {
            match self.held.get_mut(&number) {
                Some((by, sessions)) if *by == holder => {
                    *sessions += 1;
                    return Some((number, self.pools.at(number)));
                }
                // Kept for who had it, while there are others.
                Some((_, 0)) => {
                    free.get_or_insert(number);
                }
                Some(_) => {}
                None => {
                    self.held.insert(number, (holder, 1));
                    return Some((number, self.pools.at(number)));
                }
            }
        }
        let number = free?;
        self.held.insert(number, (holder, 1));
        Some((number, self.pools.at(number)))
    }

    /// Takes the addresses of a session back that has ended.
    pub(super) fn give_back(&mut self, number: u32) {
        if let Some((_, sessions)) = self.held.get_mut(&number) {
            *sessions = sessions.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn pools(v4: &str) -> Pools {
        Pools {
            v4: v4.parse().unwrap(),
            v6: Some("fd00:7::/64".parse().unwrap()),
        }
    }

    fn holder(n: u8) -> Holder {
        [n; 32]
    }

    #[test]
    fn each_device_has_addresses_of_its_own_and_the_same_again() {
        let pools = pools("10.1.0.0/29");
        let mut pool = Pool::new(pools);
        // Of eight: not the network's, the proxy's and the last.
        let taken: Vec<_> = (0..5).map(|n| pool.take(holder(n)).unwrap()).collect();
        let all: HashSet<_> = taken.iter().flat_map(|(_, a)| a.iter()).collect();
        assert_eq!(all.len(), 10);
        for (number, a) in &taken {
            assert!(pools.v4.contains(&a.v4) && pools.v6.unwrap().contains(&a.v6.unwrap()));
            assert!((2..7).contains(number));
            assert_ne!(*a, pools.own());
        }
        assert_eq!(pool.take(holder(5)), None);
        // Two sessions of one device.
        assert_eq!(pool.take(holder(1)), Some(taken[1]));
        pool.give_back(taken[1].0);
        assert_eq!(pool.take(holder(5)), None);
        pool.give_back(taken[1].0);
        assert_eq!(pool.take(holder(1)), Some(taken[1]), "kept for it");
        pool.give_back(taken[1].0);
        assert_eq!(pool.take(holder(5)), Some(taken[1]), "given on at last");
        assert_eq!(pool.take(holder(1)), None);
        assert_eq!(pools.own().v4, Ipv4Addr::new(10, 1, 0, 1));
    }
}
