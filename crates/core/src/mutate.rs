//! Octets like others, changed by a seed: what tests give to parsers for a short while, and
//! `fuzz/` for long.
//!
//! A mutator begins with octets that are right, so that most of a parser is reached, and changes them
//! in the ways that parsers fail at: lengths that are too great, ends that come too early, values at
//! the edges of their range.

use rand::RngExt;

use crate::seed::{Rng, stream};

/// Octets at most.
const MAX_LEN: usize = 4096;
/// Changes of one output at most.
const MAX_CHANGES: u32 = 6;
/// Values at the edges of ranges.
const EDGES: [u8; 9] = [0, 1, 2, 0x3f, 0x40, 0x7f, 0x80, 0xc0, 0xff];

/// Mutator of a corpus.
#[derive(Clone, Debug)]
pub struct Mutator {
    rng: Rng,
    corpus: Vec<Vec<u8>>,
}

impl Mutator {
    /// Makes the mutator of a corpus.
    pub fn new(seed: u64, corpus: impl IntoIterator<Item = Vec<u8>>) -> Self {
        Self {
            rng: stream(seed, "mutate"),
            corpus: corpus.into_iter().collect(),
        }
    }

    fn below(&mut self, n: usize) -> usize {
        match n {
            0 => 0,
            n => self.rng.random_range(0..n),
        }
    }

    fn one(&mut self) -> Vec<u8> {
        let i = self.below(self.corpus.len());
        self.corpus.get(i).cloned().unwrap_or_default()
    }

    /// Returns a part of the octets: its begin and its end.
    fn part(&mut self, octets: &[u8]) -> (usize, usize) {
        let (a, b) = (self.below(octets.len() + 1), self.below(octets.len() + 1));
        (a.min(b), a.max(b))
    }

    fn change(&mut self, octets: &mut Vec<u8>) {
        let at = self.below(octets.len());
        let (begin, end) = self.part(octets);
        match self.below(8) {
            0 => {
                let bit = self.below(8);
                if let Some(octet) = octets.get_mut(at) {
                    *octet ^= 1 << bit;
                }
            }
            1 => {
                let edge = EDGES[self.below(EDGES.len())];
                if let Some(octet) = octets.get_mut(at) {
                    *octet = edge;
                }
            }
            2 => {
                let any = self.rng.random();
                octets.insert(begin, any);
            }
            3 => octets.truncate(begin),
            4 => drop(octets.drain(begin..end)),
            5 => {
                let part = octets[begin..end].to_vec();
                octets.splice(at..at, part);
            }
            6 => {
                let other = self.one();
                let (from, to) = self.part(&other);
                octets.splice(begin..end, other[from..to].iter().copied());
            }
            _ => {
                // A length one too great or too small.
                let up = self.below(2) == 0;
                if let Some(octet) = octets.get_mut(at) {
                    *octet = match up {
                        true => octet.wrapping_add(1),
                        false => octet.wrapping_sub(1),
                    };
                }
            }
        }
        octets.truncate(MAX_LEN);
    }
}

impl Iterator for Mutator {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut octets = self.one();
        for _ in 0..self.rng.random_range(1..=MAX_CHANGES) {
            self.change(&mut octets);
        }
        Some(octets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_changes_the_same_and_within_bounds() {
        let corpus = || [vec![1, 2, 3, 4], vec![7; MAX_LEN], vec![]];
        let some = |seed| Mutator::new(seed, corpus()).take(2000).collect::<Vec<_>>();
        let first = some(1);
        assert_eq!(first, some(1));
        assert_ne!(first, some(2));
        assert!(first.iter().all(|o| o.len() <= MAX_LEN));
        let changed = first.iter().filter(|o| !corpus().contains(o)).count();
        // An empty part may be put in, or taken out.
        assert!(changed > 1000, "{changed}");
        let none = Mutator::new(1, []).take(100).all(|o| o.len() < 100);
        assert!(none);
    }
}
