//! Ledger of what accesses have carried in their months.

use std::collections::{BTreeMap, BTreeSet};

use braid_api::config::{Cap, CapLevel};
use jiff::civil::Date;
use serde::{Deserialize, Serialize};

/// Counters of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counter {
    pub(super) index: u32,
    /// Bytes received and sent since the kernel made it.
    pub(super) bytes: u64,
}

/// Counters of an interface as they were read last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Read {
    boot: String,
    index: u32,
    bytes: u64,
}

/// Account of one access.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Account {
    /// Day on which its month began.
    pub(super) since: Date,
    pub(super) bytes: u64,
    /// Level of which was told.
    #[serde(default)]
    pub(super) told: CapLevel,
    /// Interfaces that have served it last.
    #[serde(default)]
    serving: BTreeSet<String>,
}

/// Accounts by access, and counters by interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ledger {
    #[serde(default)]
    accesses: BTreeMap<String, Account>,
    #[serde(default)]
    interfaces: BTreeMap<String, Read>,
}

/// Change of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// A greater part of the cap is used.
    Level(CapLevel),
    /// Its month has ended, in which this was the last that was told.
    Month(CapLevel),
}

/// Returns the day on which the month of `today` began that begins on `day` of each.
pub(super) fn month_of(today: Date, day: u8) -> Date {
    let this = begin(today.first_of_month(), day);
    match this <= today {
        true => this,
        false => begin(
            today
                .first_of_month()
                .yesterday()
                .unwrap_or(today)
                .first_of_month(),
            day,
        ),
    }
}

/// Returns the day on which the next month begins.
pub(super) fn next_month(since: Date, day: u8) -> Date {
    let next = since.last_of_month().tomorrow().unwrap_or(since);
    begin(next, day)
}

/// Returns the day of the month that begins with `first`, or its last.
fn begin(first: Date, day: u8) -> Date {
    let day = i8::try_from(day)
        .unwrap_or(i8::MAX)
        .min(first.days_in_month());
    first.with().day(day).build().unwrap_or(first)
}

impl Ledger {
    /// Takes what the interfaces of an access have counted. `serving`: those that serve it now; where
    /// none does, those that did count.
    pub(super) fn count(
        &mut self,
        (access, cap): (&str, &Cap),
        serving: BTreeSet<String>,
        counters: &BTreeMap<String, Counter>,
        (boot, today): (&str, Date),
    ) -> Option<Turn> {
        let since = month_of(today, cap.reset_day);
        let new = Account {
            since,
            bytes: 0,
            told: CapLevel::Below,
            serving: BTreeSet::new(),
        };
        let account = self.accesses.entry(access.to_owned()).or_insert(new);
        if !serving.is_empty() {
            account.serving = serving;
        }
        let mut turn = None;
        // A clock that was set back is no new month.
        if since > account.since {
            turn = Some(Turn::Month(account.told));
            (account.since, account.bytes, account.told) = (since, 0, CapLevel::Below);
        }
        for name in &account.serving {
            let Some(counter) = counters.get(name) else {
                continue;
            };
            let read = Read {
                boot: boot.to_owned(),
                index: counter.index,
                bytes: counter.bytes,
            };
            let more = match self.interfaces.insert(name.clone(), read) {
                // What it had carried before it was known is nobody's.
                None => 0,
                Some(b)
                    if b.boot == boot && b.index == counter.index && b.bytes <= counter.bytes =>
                {
                    counter.bytes - b.bytes
                }
                // Made anew, it counts from 0.
                Some(_) => counter.bytes,
            };
            account.bytes = account.bytes.saturating_add(more);
        }
        let level = cap.level(account.bytes);
        if level > account.told {
            turn = turn.or(Some(Turn::Level(level)));
        }
        // It is less where the cap has been raised.
        account.told = level;
        turn
    }

    /// Forgets accesses that have no cap.
    pub(super) fn keep(&mut self, capped: impl Fn(&str) -> bool) {
        self.accesses.retain(|name, _| capped(name));
    }

    /// Returns the account of an access.
    pub(super) fn account(&self, access: &str) -> Option<&Account> {
        self.accesses.get(access)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_api::config::AtCap;

    fn date(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn months_begin_on_their_day_or_the_last() {
        for (today, day, since, until) in [
            ("2026-11-28", 1, "2026-11-01", "2026-12-01"),
            ("2026-11-28", 28, "2026-11-28", "2026-12-28"),
            ("2026-11-28", 29, "2026-10-29", "2026-11-29"),
            ("2026-03-01", 31, "2026-02-28", "2026-03-31"),
            ("2026-02-28", 31, "2026-02-28", "2026-03-31"),
            ("2026-02-27", 31, "2026-01-31", "2026-02-28"),
            ("2028-02-29", 30, "2028-02-29", "2028-03-30"),
            ("2026-01-01", 2, "2025-12-02", "2026-01-02"),
        ] {
            let month = month_of(date(today), day);
            assert_eq!(month, date(since), "{today} {day}");
            assert_eq!(next_month(month, day), date(until), "{today} {day}");
        }
    }

    #[test]
    fn bytes_are_counted_once_whatever_restarts() {
        let cap = Cap {
            monthly: 1000,
            reset_day: 1,
            near_percent: 80,
            at: AtCap::Backup,
            slow: None,
        };
        let mut ledger = Ledger::default();
        let serving = || BTreeSet::from(["wwan0".to_owned()]);
        let count = |ledger: &mut Ledger, serving, index, bytes, boot: &str, today: &str| {
            let counters = [("wwan0".to_owned(), Counter { index, bytes })].into();
            ledger.count(("nr", &cap), serving, &counters, (boot, date(today)))
        };
        let bytes = |ledger: &Ledger| ledger.account("nr").unwrap().bytes;
        // What it has carried before is not known.
        assert_eq!(
            count(&mut ledger, serving(), 3, 700, "a", "2026-11-20"),
            None
        );
        assert_eq!(
            count(&mut ledger, serving(), 3, 1400, "a", "2026-11-20"),
            None
        );
        assert_eq!(bytes(&ledger), 700);
        // While the daemon was away, too.
        let text = serde_json::to_string(&ledger).unwrap();
        let mut ledger: Ledger = serde_json::from_str(&text).unwrap();
        let near = Some(Turn::Level(CapLevel::Near));
        assert_eq!(
            count(&mut ledger, serving(), 3, 1500, "a", "2026-11-21"),
            near
        );
        assert_eq!(
            count(&mut ledger, serving(), 3, 1500, "a", "2026-11-21"),
            None
        );
        // The modem was plugged in again, and the machine restarted. Nothing serves now.
        assert_eq!(
            count(&mut ledger, serving(), 9, 50, "a", "2026-11-22"),
            None
        );
        let reached = Some(Turn::Level(CapLevel::Reached));
        assert_eq!(
            count(&mut ledger, BTreeSet::new(), 2, 150, "b", "2026-11-23"),
            reached
        );
        assert_eq!(bytes(&ledger), 1000);
        // The clock is wrong for a moment.
        assert_eq!(
            count(&mut ledger, serving(), 2, 160, "b", "1970-01-01"),
            None
        );
        let month = Some(Turn::Month(CapLevel::Reached));
        assert_eq!(
            count(&mut ledger, serving(), 2, 170, "b", "2026-12-01"),
            month
        );
        assert_eq!(bytes(&ledger), 10);
        ledger.keep(|name| name != "nr");
        assert_eq!(ledger.account("nr"), None);
    }
}
