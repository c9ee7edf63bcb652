//! The loop in simulated time where the kernel lets packets carry their times:
//! it looks ahead.
//!
//! Everything is held for up to a millisecond after it has come out of its
//! model, see [`super::compensation`]. So what arrives within that time is
//! known already, and is handed to the kernel with the time at which it is due;
//! and what is sent can be read later, as it says when that was. A turn for
//! each millisecond does the same as one for each packet.

use anyhow::{Context, Result};
use nix::errno::Errno;

use super::port::Read;
use super::ring::{Ring, SLOTS};
use super::run::Loop;
use super::timer::monotonic_ns;

impl Loop {
    /// [`Loop::run_simulated`] by means of `ring`.
    pub(crate) fn run_ahead(&mut self, mut ring: Ring) -> Result<()> {
        const FAILED: &str = "cannot exchange packets with the kernel";
        let mut wants = Wants::new(self.ports.len());
        let mut now = monotonic_ns();
        // Nothing was sent in the last turn: the next packet may take a while.
        let mut quiet = false;
        while !self.stop {
            self.turns += 1;
            // Well before the end of that time, as waking up is not exact.
            let ahead = self.out.slack() / 8 * 7;
            let look_out = quiet || ahead == 0;
            let until = match look_out {
                true => self.next_event(ahead),
                false => {
                    let next = self.next_event(ahead).unwrap_or(u64::MAX);
                    Some(next.min(now.saturating_add(ahead)))
                }
            };
            let writes = self.out.batch(&self.ports, now);
            let failed = ring.exchange(&writes, look_out, until).context(FAILED)?;
            let failed: Vec<_> = failed
                .iter()
                .map(|&(i, e)| (writes[i].link, writes[i].packets, e))
                .collect();
            drop(writes);
            self.out.written(&failed);

            let called = ring.called();
            if called || !look_out {
                quiet = !self.read_all(&mut ring, &mut wants).context(FAILED)?;
            }
            now = monotonic_ns().max(now);
            self.catch_up(now);
            if ring.rung() {
                self.obey();
            }
            self.stop |= ring.signalled();
        }
        Ok(())
    }

    /// Takes in everything that has been sent; says whether there was anything.
    fn read_all(&mut self, ring: &mut Ring, wants: &mut Wants) -> std::io::Result<bool> {
        let mut any = false;
        loop {
            let arrivals = ring.read(wants.get())?;
            wants.begin();
            for a in arrivals {
                match a.read {
                    Read::Bytes(n) => {
                        any = true;
                        wants.found(a.port);
                        let Some(&link) = self.feeds.get(a.port) else {
                            continue;
                        };
                        // What comes first in time has to be done first.
                        self.catch_up(a.at);
                        let spare = self.out.buffers.spare_box();
                        std::mem::swap(spare, ring.buffer(a.slot));
                        self.take_in(a.port, link, n, a.at);
                        let spare = self.out.buffers.spare_box();
                        std::mem::swap(spare, ring.buffer(a.slot));
                    }
                    Read::Empty => {}
                    Read::Gone(e) => {
                        if wants.give_up(a.port) {
                            ring.forget(&self.ports[a.port]);
                            self.give_up(a.port, Errno::desc(e));
                        }
                    }
                }
            }
            if !wants.more() {
                return Ok(any);
            }
        }
    }
}

/// How many packets to try to read from each port. An attempt that finds none
/// costs little, but another round costs a system call.
#[derive(Debug)]
struct Wants {
    wants: Vec<usize>,
    found: Vec<usize>,
    gone: Vec<bool>,
    most: usize,
}

impl Wants {
    fn new(ports: usize) -> Self {
        Self {
            wants: vec![1; ports],
            found: vec![0; ports],
            gone: vec![false; ports],
            most: (SLOTS / ports.max(1)).max(1),
        }
    }

    fn get(&self) -> &[usize] {
        &self.wants
    }

    fn begin(&mut self) {
        self.found.fill(0);
    }

    fn found(&mut self, port: usize) {
        self.found[port] += 1;
    }

    /// Reads nothing from `port` any more; says whether that is new.
    fn give_up(&mut self, port: usize) -> bool {
        !std::mem::replace(&mut self.gone[port], true)
    }

    /// After a round: whether there may be more, for another one.
    fn more(&mut self) -> bool {
        let mut more = false;
        for ((want, &found), &gone) in self.wants.iter_mut().zip(&self.found).zip(&self.gone) {
            let full = found == *want && found > 0;
            more |= full && !gone;
            *want = match (gone, full) {
                (true, _) => 0,
                (_, true) => (2 * found).min(self.most),
                // Slowly back to what comes in a turn, and one to see the end.
                _ => (found + 1)
                    .max(*want - want.div_ceil(8))
                    .min(self.most)
                    .max(1),
            };
        }
        more
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever comes, it is all read, with room in the ring for each round.
        #[test]
        fn everything_is_read(turns in prop::collection::vec([0usize..200, 0..200, 0..200], 1..20)) {
            let mut wants = Wants::new(3);
            for mut left in turns {
                loop {
                    let tries = wants.get().to_vec();
                    prop_assert!(tries.iter().all(|&n| n > 0) && tries.iter().sum::<usize>() <= SLOTS);
                    wants.begin();
                    for (port, &tries) in tries.iter().enumerate() {
                        let found = tries.min(left[port]);
                        (0..found).for_each(|_| wants.found(port));
                        left[port] -= found;
                    }
                    if !wants.more() {
                        break;
                    }
                }
                prop_assert_eq!(left, [0; 3]);
            }
        }
    }

    #[test]
    fn steady_ports_take_one_round_and_gone_ones_none() {
        let mut wants = Wants::new(2);
        assert!(wants.give_up(1) && !wants.give_up(1));
        let mut rounds = 0;
        for _ in 0..10 {
            let mut left = 10;
            rounds = 0;
            loop {
                rounds += 1;
                let tries = wants.get()[0];
                wants.begin();
                let found = tries.min(left);
                (0..found).for_each(|_| wants.found(0));
                left -= found;
                if !wants.more() {
                    break;
                }
            }
        }
        assert_eq!((rounds, wants.get()[1]), (1, 0));
    }
}
