//! Detector of dead paths of the stream lane, at either end. The device ends them, and the proxy
//! leaves them until it does: the library's own idle time of a path is off ([`crate::transport`]).
//!
//! What waits on a dead path, and all acknowledgements if it is the peer's first, are held up by
//! it. Nothing may arrive there any more, or nothing at the peer, whose own pings arrive then.

use std::time::{Duration, Instant};

use crate::transport::STREAM_PATH_IDLE;

/// A path on which something arrived within this lives: pings are 1 s apart.
const HEARS: Duration = Duration::from_secs(1);
/// Round trips that an acknowledgement may take longer than on another path.
const SLOWER: u32 = 3;

/// Knowledge of a path that is validated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    /// Time since the inspection that found something new on it.
    pub(super) silent_for: Duration,
    /// Send time of the newest packet that the peer has acknowledged; when the path began before
    /// there is one.
    pub(super) proved: Instant,
    /// Smoothed round-trip time.
    pub(super) srtt: Duration,
}

impl Evidence {
    /// Returns whether nothing arrives here any more, while something does on another path.
    fn is_deaf(&self, all: &[Self]) -> bool {
        self.silent_for >= STREAM_PATH_IDLE && all.iter().any(|o| o.silent_for < HEARS)
    }

    /// Returns whether nothing arrives at the peer any more, while what was sent later on another
    /// path did. Acknowledgements of all paths travel on one, so that one that is lost says
    /// nothing of a single path.
    fn is_mute(&self, all: &[Self]) -> bool {
        let patience = STREAM_PATH_IDLE + SLOWER * self.srtt;
        let later = |o: &Self| o.proved.saturating_duration_since(self.proved) >= patience;
        all.iter().any(later)
    }
}

/// Returns which of all paths that are validated are dead: never all of them, as one that carries
/// upwards and one that carries downwards are a session.
pub(super) fn dead(all: &[Evidence]) -> Vec<bool> {
    let dead = |e: &Evidence| e.is_deaf(all) || e.is_mute(all);
    let some_live = !all.iter().all(dead);
    all.iter().map(|e| some_live && dead(e)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn a_path_is_dead_in_either_direction_only_beside_one_that_lives() {
        let begin = Instant::now();
        let path = |silent_for, proved| Evidence {
            silent_for,
            proved: begin + proved,
            srtt: S / 10,
        };
        let (zero, alive) = (Duration::ZERO, path(Duration::ZERO, 60 * S));
        let deaf = path(3 * S, 60 * S);
        let mute = path(zero, 56 * S);
        assert_eq!(dead(&[alive, deaf, mute]), [false, true, true]);
        assert_eq!(dead(&[deaf]), [false]);
        assert_eq!(dead(&[mute, mute]), [false, false]);
        assert_eq!(dead(&[path(3 * S, zero), path(4 * S, zero)]), [false; 2]);
        // One carries upwards, the other downwards.
        assert_eq!(dead(&[deaf, mute]), [false; 2]);
        // A ping of a second ago is on its way, over a longer path.
        let slow = Evidence {
            srtt: 2 * S,
            ..path(zero, 53 * S)
        };
        assert_eq!(dead(&[alive, slow]), [false, false]);
    }

    proptest! {
        #[test]
        fn never_all_are_dead(all in prop::collection::vec((0_u64..6, 0_u64..9, 0_u64..3), 1..6)) {
            let begin = Instant::now();
            let seconds = Duration::from_secs;
            let evidence = |(silent_for, proved, srtt)| Evidence {
                silent_for: seconds(silent_for),
                proved: begin + seconds(proved),
                srtt: seconds(srtt),
            };
            let all: Vec<Evidence> = all.into_iter().map(evidence).collect();
            prop_assert!(dead(&all).contains(&false), "{all:?}");
        }
    }
}
