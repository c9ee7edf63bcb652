//! Active-standby with an order (3GPP TS 23.501 5.32.8): which accesses carry, and
//! which wait until those have gone.

/// An access, as far as the order needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The least come first; those without a number come after all others.
    pub priority: Option<u16>,
    /// Readiness: it could carry now and is neither a backup nor of weight 0; those take no part.
    pub usable: bool,
}

/// Whether each is a standby: all but the usable ones of the least number. Without
/// any number there is no order, and none is.
pub fn standby(all: &[Candidate]) -> Vec<bool> {
    if all.iter().all(|c| c.priority.is_none()) {
        return vec![false; all.len()];
    }
    let place = |c: &Candidate| c.priority.map_or(u32::MAX, u32::from);
    let least = all.iter().filter(|c| c.usable).map(place).min();
    // One that cannot carry now must not when it comes back, until it is looked at.
    let waits = |c: &Candidate| least.is_some_and(|l| place(c) > l);
    all.iter().map(waits).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn candidate() -> impl Strategy<Value = Candidate> {
        (prop::option::of(0u16..4), any::<bool>())
            .prop_map(|(priority, usable)| Candidate { priority, usable })
    }

    proptest! {
        #[test]
        fn exactly_the_usable_ones_of_the_least_number_are_active(
            all in prop::collection::vec(candidate(), 0..7),
        ) {
            let standby = standby(&all);
            let active: Vec<_> = all.iter().zip(&standby).filter(|(c, s)| c.usable && !**s).collect();
            let usable: Vec<_> = all.iter().filter(|c| c.usable).collect();
            prop_assert_eq!(active.is_empty(), usable.is_empty());
            if all.iter().all(|c| c.priority.is_none()) {
                prop_assert!(standby.iter().all(|s| !s));
                return Ok(());
            }
            let number = |c: &Candidate| c.priority.map_or(u32::MAX, u32::from);
            let least = usable.iter().map(|c| number(c)).min();
            for (c, s) in all.iter().zip(&standby).filter(|(c, _)| c.usable) {
                prop_assert_eq!(!s, Some(number(c)) == least);
            }
        }

        #[test]
        fn those_that_stay_change_only_when_the_active_ones_do(
            all in prop::collection::vec(candidate(), 1..7), which in any::<prop::sample::Index>(),
        ) {
            let before = standby(&all);
            let i = which.index(all.len());
            let mut after = all.clone();
            after[i].usable = !after[i].usable;
            let changed = standby(&after) != before;
            let others_active = |c: &[Candidate], s: &[bool]| {
                (0..c.len()).any(|k| k != i && c[k].usable && !s[k])
            };
            // One that waits comes and goes unnoticed.
            if before[i] && others_active(&all, &before) {
                prop_assert!(!changed);
            }
        }
    }
}
