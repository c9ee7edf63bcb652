//! Contact with the proxy: whether anything comes back from its probe port, on any access.

use std::time::Duration;

use braid_core::Time;

/// Probes without an answer, at least, of which the loss is told.
const PROBES: u32 = 3;
/// Time without an answer after which it is told.
const PATIENCE: Duration = Duration::from_secs(10);
/// Refusals in a row after which it is told.
const REFUSALS: u32 = 2;
/// Time after the last probe in which the loss counts: while nobody asks, nobody answers.
const FRESH: Duration = Duration::from_secs(10);

/// Probes that were sent since the last answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contact {
    /// The first and the last of them.
    asked: Option<(Time, Time)>,
    probes: u32,
    refusals: u32,
}

/// Loss of contact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Time since the first probe that was not answered.
    pub lasts: Duration,
    /// Whether the proxy's host says that nobody listens there (ICMP port unreachable).
    pub refused: bool,
}

impl Contact {
    /// Takes a probe that is sent.
    pub fn asked(&mut self, now: Time) {
        let first = self.asked.map_or(now, |(first, _)| first);
        self.asked = Some((first, now));
        self.probes = self.probes.saturating_add(1);
    }

    /// Takes anything that came back from the proxy.
    pub fn answered(&mut self) {
        *self = Self::default();
    }

    /// Takes a refusal of a probe.
    pub fn refused(&mut self) {
        self.refusals = self.refusals.saturating_add(1);
    }

    /// Returns the loss, if there is one.
    pub fn lost(&self, now: Time) -> Option<Lost> {
        let (first, last) = self.asked.filter(|(_, last)| now.since(*last) < FRESH)?;
        debug_assert!(first <= last);
        let refused = self.refusals >= REFUSALS;
        let lasts = now.since(first);
        let silent = self.probes >= PROBES && lasts >= PATIENCE;
        (silent || refused).then_some(Lost { lasts, refused })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Time {
        Time::from_nanos(1) + Duration::from_secs(s)
    }

    #[test]
    fn contact_is_lost_after_probes_in_vain_for_a_while() {
        let mut c = Contact::default();
        assert_eq!(c.lost(at(99)), None, "nobody has asked");
        (0..=9).for_each(|s| c.asked(at(s)));
        assert_eq!(c.lost(at(9)), None);
        let lost = |s| Lost {
            lasts: Duration::from_secs(s),
            refused: false,
        };
        assert_eq!(c.lost(at(12)), Some(lost(12)));
        assert_eq!(c.lost(at(19)), None, "nobody asks any more");
        c.asked(at(30));
        assert_eq!(c.lost(at(30)), Some(lost(30)));
        c.answered();
        assert_eq!(c, Contact::default());
        c.asked(at(31));
        c.asked(at(42));
        assert_eq!(c.lost(at(42)), None, "two may be lost by chance");
    }

    #[test]
    fn a_refusal_is_told_soon() {
        let mut c = Contact::default();
        for s in [0, 1] {
            c.asked(at(s));
            assert_eq!(c.lost(at(s)), None);
            c.refused();
        }
        assert!(c.lost(at(1)).is_some_and(|l| l.refused));
        c.answered();
        assert_eq!(c.lost(at(2)), None);
    }
}
