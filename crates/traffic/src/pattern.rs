//! The payload: a pseudo-random stream that every 8 bytes of which say where
//! they belong.
//!
//! The stream is a sequence of 64-bit little-endian words; word `i` is
//! `mix(key + i * GAMMA)`, the SplitMix64 generator (Steele, Lea, Flood 2014)
//! addressed by index. For a fixed key this is a bijection of `i`, so no two of
//! the 2^64 words are equal: a block that is swapped, repeated or shifted by a
//! multiple of 8 bytes differs from what is due in *every* word, and a flipped
//! bit is seen because each byte is compared. A shift by another distance
//! compares unrelated pseudo-random bytes and passes n bytes with probability
//! 256^-n. The two directions of a connection have different keys, so an echo
//! of one's own data does not pass either.
//!
//! Being a bijection it can be inverted: [`Pattern::locate`] tells where bytes
//! that stand in the wrong place belong. There is no table to keep in cache,
//! and a word costs two multiplications.

use braid_core::seed;
use rand::RngExt;
use serde::{Deserialize, Serialize};

const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
const M1: u64 = 0xbf58_476d_1ce4_e5b9;
const M2: u64 = 0x94d0_49bb_1331_11eb;
const WORD: usize = 8;
/// Words compared at a time, so that the comparison is free of branches.
const STRIDE: usize = 8;

/// The payload stream of one direction of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    key: u64,
}

impl Pattern {
    /// The stream of the direction named `label` in traffic with `seed`.
    pub fn new(seed: u64, label: &str) -> Self {
        Self {
            key: seed::stream(seed, label).random(),
        }
    }

    #[inline]
    fn word(self, index: u64) -> u64 {
        mix(self.key.wrapping_add(index.wrapping_mul(GAMMA)))
    }

    /// Writes the bytes of the stream that begin at byte `offset` into `buf`.
    pub fn fill(self, offset: u64, buf: &mut [u8]) {
        let (head, body) = buf.split_at_mut(head_len(offset, buf.len()));
        self.edge(offset, head);
        let first = (offset + head.len() as u64) / WORD as u64;
        let mut words = body.chunks_exact_mut(WORD);
        let mut index = first;
        for w in &mut words {
            w.copy_from_slice(&self.word(index).to_le_bytes());
            index += 1;
        }
        self.edge(index * WORD as u64, words.into_remainder());
    }

    fn edge(self, offset: u64, buf: &mut [u8]) {
        for (i, b) in buf.iter_mut().enumerate() {
            *b = self.byte(offset + i as u64);
        }
    }

    /// A check of `bytes` that a damaged copy passes with a chance of 2^-64.
    pub(crate) fn digest(self, bytes: &[u8]) -> u64 {
        bytes.chunks(WORD).fold(self.key, |h, piece| {
            let mut w = [0; WORD];
            w[..piece.len()].copy_from_slice(piece);
            mix(h.wrapping_add(GAMMA) ^ u64::from_le_bytes(w))
        })
    }

    pub(crate) fn byte(self, offset: u64) -> u8 {
        self.word(offset / WORD as u64).to_le_bytes()[(offset % WORD as u64) as usize]
    }

    /// Index in `buf` of the first byte that is not the one of the stream at
    /// `offset` and on; `None` when all are.
    pub fn first_bad(self, offset: u64, buf: &[u8]) -> Option<usize> {
        let head = head_len(offset, buf.len());
        if let Some(bad) = self.first_bad_bytewise(offset, &buf[..head]) {
            return Some(bad);
        }
        let mut at = head;
        let mut index = (offset + head as u64) / WORD as u64;
        for block in buf[head..].chunks_exact(WORD * STRIDE) {
            let mut difference = 0;
            for (k, w) in block.chunks_exact(WORD).enumerate() {
                let mut got = [0; WORD];
                got.copy_from_slice(w);
                difference |= u64::from_le_bytes(got) ^ self.word(index + k as u64);
            }
            if difference != 0 {
                break;
            }
            index += STRIDE as u64;
            at += block.len();
        }
        // The differing block, or the rest that is shorter than one.
        self.first_bad_bytewise(offset + at as u64, &buf[at..])
            .map(|i| at + i)
    }

    fn first_bad_bytewise(self, offset: u64, buf: &[u8]) -> Option<usize> {
        buf.iter()
            .enumerate()
            .position(|(i, b)| *b != self.byte(offset + i as u64))
    }

    /// Where in the stream `buf` begins, if its first 24 bytes are a piece of
    /// the stream within the first `limit` bytes.
    pub fn locate(self, buf: &[u8], limit: u64) -> Option<u64> {
        let probe = buf.get(..3 * WORD)?;
        (0..WORD).find_map(|shift| {
            let mut w = [0; WORD];
            w.copy_from_slice(&probe[shift..shift + WORD]);
            let index = unmix(u64::from_le_bytes(w))
                .wrapping_sub(self.key)
                .wrapping_mul(inverse(GAMMA));
            let offset = index
                .checked_mul(WORD as u64)?
                .checked_sub(shift as u64)
                .filter(|o| *o < limit)?;
            self.first_bad(offset, probe).is_none().then_some(offset)
        })
    }
}

/// Bytes until the next word boundary, at most `len`.
fn head_len(offset: u64, len: usize) -> usize {
    let into = (offset % WORD as u64) as usize;
    ((WORD - into) % WORD).min(len)
}

#[inline]
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(M1);
    z = (z ^ (z >> 27)).wrapping_mul(M2);
    z ^ (z >> 31)
}

fn unmix(mut z: u64) -> u64 {
    z = (z ^ (z >> 31) ^ (z >> 62)).wrapping_mul(inverse(M2));
    z = (z ^ (z >> 27) ^ (z >> 54)).wrapping_mul(inverse(M1));
    z ^ (z >> 30) ^ (z >> 60)
}

/// The multiplicative inverse of an odd number modulo 2^64, by Newton's
/// iteration: each step doubles the correct bits, and an odd number is its own
/// inverse in the lowest three.
const fn inverse(a: u64) -> u64 {
    let mut x = a;
    let mut step = 0;
    while step < 5 {
        x = x.wrapping_mul(2u64.wrapping_sub(a.wrapping_mul(x)));
        step += 1;
    }
    x
}

/// The first byte received that was not the one sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Corruption {
    /// Offset in the received payload stream, bytes.
    pub offset: u64,
    /// The byte that is due there.
    pub expected: u8,
    /// The byte that came.
    pub found: u8,
    /// Where in the stream the bytes that came belong, when they are a piece of
    /// it that stands in the wrong place.
    pub belongs_at: Option<u64>,
}

/// Compares a received stream with the pattern, byte for byte.
#[derive(Clone, Debug)]
pub(crate) struct Verifier {
    pattern: Pattern,
    offset: u64,
    corruption: Option<Corruption>,
}

impl Verifier {
    pub(crate) fn new(pattern: Pattern) -> Self {
        Self {
            pattern,
            offset: 0,
            corruption: None,
        }
    }

    /// Takes the next bytes of the stream. After the first bad byte the rest is
    /// only counted.
    pub(crate) fn accept(&mut self, buf: &[u8]) {
        if self.corruption.is_none()
            && let Some(bad) = self.pattern.first_bad(self.offset, buf)
        {
            self.corruption = Some(Corruption {
                offset: self.offset + bad as u64,
                expected: self.pattern.byte(self.offset + bad as u64),
                found: buf[bad],
                // Data from ahead can be at most what the sender has written.
                belongs_at: self.pattern.locate(&buf[bad..], 1 << 48),
            });
        }
        self.offset += buf.len() as u64;
    }

    pub(crate) fn corruption(&self) -> Option<Corruption> {
        self.corruption
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stream(p: Pattern, offset: u64, len: usize) -> Vec<u8> {
        let mut v = vec![0; len];
        p.fill(offset, &mut v);
        v
    }

    fn found(p: Pattern, data: &[u8], cut: usize) -> Option<Corruption> {
        let mut v = Verifier::new(p);
        for piece in data.chunks(cut) {
            v.accept(piece);
        }
        v.corruption()
    }

    #[test]
    fn directions_and_seeds_differ() {
        let a = stream(Pattern::new(1, "down"), 0, 64);
        assert_ne!(a, stream(Pattern::new(1, "up"), 0, 64));
        assert_ne!(a, stream(Pattern::new(2, "down"), 0, 64));
    }

    proptest! {
        #[test]
        fn reads_alike_in_any_pieces(seed: u64, offset in 0u64..1 << 40, len in 0usize..5000, cut in 1usize..700) {
            let p = Pattern::new(seed, "down");
            let whole = stream(p, offset, len);
            let mut pieces = Vec::new();
            for at in (0..len).step_by(cut) {
                pieces.extend(stream(p, offset + at as u64, cut.min(len - at)));
            }
            prop_assert_eq!(&whole, &pieces);
            prop_assert_eq!(p.first_bad(offset, &whole), None);
        }

        #[test]
        fn catches_a_flipped_bit(seed: u64, len in 1usize..5000, at: prop::sample::Index, bit in 0u8..8, cut in 1usize..2000) {
            let p = Pattern::new(seed, "down");
            let mut data = stream(p, 0, len);
            let at = at.index(len);
            data[at] ^= 1 << bit;
            let c = found(p, &data, cut).expect("a flipped bit must be seen");
            prop_assert_eq!(c.offset, at as u64);
            prop_assert_eq!(c.found ^ c.expected, 1 << bit);
        }

        #[test]
        fn catches_swapped_blocks(seed: u64, block in 8usize..1500, a in 0usize..6, gap in 1usize..6, cut in 1usize..4000) {
            let p = Pattern::new(seed, "down");
            let mut data = stream(p, 0, block * 12);
            let b = a + gap;
            for i in 0..block {
                data.swap(a * block + i, b * block + i);
            }
            let c = found(p, &data, cut).expect("swapped blocks must be seen");
            prop_assert!(c.offset >= (a * block) as u64 && c.offset < (a * block + 8) as u64);
        }

        #[test]
        fn catches_a_lost_piece(seed: u64, at in 0usize..2000, lost in 1usize..2000) {
            let p = Pattern::new(seed, "down");
            let mut data = stream(p, 0, at);
            data.extend(stream(p, (at + lost) as u64, 4096));
            let c = found(p, &data, 1 << 20).expect("a shift must be seen");
            // The first bytes after the seam may be right by chance.
            let chance = c.offset - at as u64;
            prop_assert!(chance < 8);
            prop_assert_eq!(c.belongs_at, Some(c.offset + lost as u64));
        }

        #[test]
        fn catches_a_repeated_piece(seed: u64, at in 1usize..2000, again in 8usize..2000) {
            let p = Pattern::new(seed, "down");
            let back = again.min(at);
            let mut data = stream(p, 0, at);
            data.extend(stream(p, (at - back) as u64, 4096));
            let c = found(p, &data, 1 << 20).expect("a repetition must be seen");
            prop_assert!(c.offset - (at as u64) < 8);
            prop_assert_eq!(c.belongs_at, Some(c.offset - back as u64));
        }

        #[test]
        fn unmix_inverts_mix(z: u64) {
            prop_assert_eq!(unmix(mix(z)), z);
            prop_assert_eq!((z | 1).wrapping_mul(inverse(z | 1)), 1);
        }
    }
}
