//! Bounds of what a proxy serves: how many transfers at a time, how often and how many bytes to
//! each address. No sockets and no clock.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use braid_api::config::{MAX_FLOWS, Transfers};
use braid_core::Time;
use braid_core::control::{Direction, PerDirection};
use braid_core::estimate::{MIN_PROBE_BYTES, Spending};

use super::wire::{Bounds, Refusal};
use crate::places::network_of;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Addresses with an account at one time.
const ACCOUNTS: usize = 4096;

/// Transfers that are served, and accounts of those that were.
#[derive(Debug, Default)]
pub(super) struct Gate {
    running: u32,
    accounts: BTreeMap<IpAddr, Account>,
}

#[derive(Debug)]
struct Account {
    last: PerDirection<Option<Time>>,
    day: Spending,
    /// Bytes that transfers under way may still move.
    granted: u64,
    used: Time,
}

impl Gate {
    /// Admits a transfer within bounds that may be narrower than those asked for.
    ///
    /// # Errors
    /// The reason why there is none now.
    pub(super) fn admit(
        &mut self,
        now: Time,
        from: IpAddr,
        (direction, asked): (Direction, Bounds),
        settings: &Transfers,
    ) -> Result<Bounds, Refusal> {
        if self.running >= settings.at_once {
            return Err(Refusal::Busy);
        }
        self.make_room(now);
        let from = network_of(from);
        if !self.accounts.contains_key(&from) && self.accounts.len() >= ACCOUNTS {
            return Err(Refusal::Busy);
        }
        let account = self.accounts.entry(from).or_insert_with(|| Account {
            last: PerDirection::default(),
            day: Spending::over(DAY),
            granted: 0,
            used: now,
        });
        account.used = now;
        // Devices vary their interval by a fifth.
        let soon = |last: Time| now.since(last) < settings.interval / 2;
        if account.last.get(direction).is_some_and(soon) {
            return Err(Refusal::Soon);
        }
        let spent = account.day.total(now).saturating_add(account.granted);
        let left = settings.day_bytes.saturating_sub(spent);
        let longest = u64::try_from(settings.duration.as_millis()).unwrap_or(u64::MAX);
        let granted = Bounds {
            flows: asked.flows.clamp(1, MAX_FLOWS as u8),
            duration_ms: asked.duration_ms.min(longest),
            max_bytes: asked.max_bytes.min(settings.probe_bytes).min(left),
        };
        if left < MIN_PROBE_BYTES {
            return Err(Refusal::Spent);
        }
        *account.last.get_mut(direction) = Some(now);
        account.granted += granted.max_bytes;
        self.running += 1;
        Ok(granted)
    }

    /// Ends a transfer that was admitted; it moved `moved` bytes.
    pub(super) fn end(&mut self, now: Time, from: IpAddr, granted: Bounds, moved: u64) {
        self.running = self.running.saturating_sub(1);
        if let Some(account) = self.accounts.get_mut(&network_of(from)) {
            account.granted = account.granted.saturating_sub(granted.max_bytes);
            account.day.add(now, moved);
        }
    }

    /// Forgets accounts that have nothing to remember once there are many.
    fn make_room(&mut self, now: Time) {
        if self.accounts.len() >= ACCOUNTS {
            self.accounts
                .retain(|_, a| a.granted > 0 || now.since(a.used) < DAY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn s(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000_000)
    }

    fn settings() -> Transfers {
        Transfers {
            serve: true,
            ..Transfers::default()
        }
    }

    const ASKED: Bounds = Bounds {
        flows: 10,
        duration_ms: 1_000,
        max_bytes: 50_000_000,
    };

    fn peer(n: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, n])
    }

    #[test]
    fn bounds_are_the_narrower_of_both_ends() {
        let mut gate = Gate::default();
        let wide = Bounds {
            flows: 255,
            duration_ms: u64::MAX,
            max_bytes: u64::MAX,
        };
        let granted = gate.admit(s(0), peer(1), (Direction::Down, wide), &settings());
        let expected = Bounds {
            flows: 32,
            duration_ms: 1_000,
            max_bytes: 100_000_000,
        };
        assert_eq!(granted, Ok(expected));
    }

    #[test]
    fn each_address_has_its_turn_and_its_bytes() {
        let mut gate = Gate::default();
        let settings = Transfers {
            day_bytes: 120_000_000,
            ..settings()
        };
        let ask = |gate: &mut Gate, at, from, d| gate.admit(s(at), from, (d, ASKED), &settings);
        let first = ask(&mut gate, 0, peer(1), Direction::Down).unwrap();
        // One of each direction; the third has to wait for room.
        let second = ask(&mut gate, 0, peer(1), Direction::Up).unwrap();
        assert_eq!(
            ask(&mut gate, 0, peer(2), Direction::Up),
            Err(Refusal::Busy)
        );
        gate.end(s(1), peer(1), first, 50_000_000);
        gate.end(s(1), peer(1), second, 50_000_000);
        assert_eq!(
            ask(&mut gate, 29, peer(1), Direction::Down),
            Err(Refusal::Soon)
        );
        let last = ask(&mut gate, 30, peer(1), Direction::Down).unwrap();
        assert_eq!(last.max_bytes, 20_000_000);
        gate.end(s(31), peer(1), last, 20_000_000);
        assert_eq!(
            ask(&mut gate, 600, peer(1), Direction::Down),
            Err(Refusal::Spent)
        );
        let other = ask(&mut gate, 600, peer(2), Direction::Down).unwrap();
        gate.end(s(601), peer(2), other, 0);
        assert!(ask(&mut gate, 86_500, peer(1), Direction::Down).is_ok());
    }

    #[test]
    fn addresses_of_one_network_share_an_account() {
        let mut gate = Gate::default();
        let mut ask = |from: &str| {
            let asked = (Direction::Down, ASKED);
            gate.admit(s(0), from.parse().unwrap(), asked, &settings())
        };
        ask("2001:db8::1").unwrap();
        assert_eq!(ask("2001:db8::2"), Err(Refusal::Soon));
        ask("2001:db8:0:1::1").unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        /// Whoever asks when, no address gets more than its bytes of any day, and no more than
        /// so many run at a time.
        #[test]
        fn nobody_gets_more_than_the_bounds(
            asks in prop::collection::vec((0u64..4_000, 0u8..3, any::<bool>(), any::<u64>()), 1..200),
        ) {
            let settings = Transfers { day_bytes: 300_000_000, ..settings() };
            let mut gate = Gate::default();
            let (mut at, mut moved) = (0, BTreeMap::<u8, Vec<(u64, u64)>>::new());
            let mut open: Vec<(u8, Bounds)> = vec![];
            for (after, n, down, max_bytes) in asks {
                at += after;
                let direction = if down { Direction::Down } else { Direction::Up };
                let asked = Bounds { max_bytes, ..ASKED };
                if let Ok(granted) = gate.admit(s(at), peer(n), (direction, asked), &settings) {
                    prop_assert!(granted.max_bytes <= settings.probe_bytes.min(max_bytes));
                    open.push((n, granted));
                }
                prop_assert!(open.len() <= settings.at_once as usize);
                if after % 2 == 0 && !open.is_empty() {
                    let (n, granted) = open.remove(0);
                    gate.end(s(at), peer(n), granted, granted.max_bytes);
                    let of = moved.entry(n).or_default();
                    of.push((at, granted.max_bytes));
                    let day = of.iter().filter(|(t, _)| at - t < 86_400);
                    prop_assert!(day.map(|(_, b)| b).sum::<u64>() <= settings.day_bytes);
                }
            }
        }
    }

    #[test]
    fn accounts_are_bounded() {
        let mut gate = Gate::default();
        let mut ask = |n: u32, at| {
            let from = IpAddr::from(n.to_be_bytes());
            let granted = gate.admit(s(at), from, (Direction::Down, ASKED), &settings());
            granted.map(|granted| gate.end(s(at), from, granted, 1))
        };
        let served = (0..5_000).filter(|n| ask(*n, 1).is_ok()).count();
        assert_eq!(served, ACCOUNTS);
        assert_eq!(ask(9_999, 2), Err(Refusal::Busy));
        assert_eq!(ask(9_999, 100_000), Ok(()), "those of yesterday give way");
    }
}
