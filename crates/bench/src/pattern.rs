//! Payload of which every byte can be checked at the far end.

/// Bytes of the pattern that payloads are cut out of: a prime, so that no
/// power-of-two distance maps it onto itself, and small enough for a cache.
const PERIOD: usize = 131_071;
/// Bytes of a block of a stream; each begins with its number.
pub(crate) const BLOCK: usize = 64 * 1024;
/// Bytes of the number at the head of a datagram or block.
pub(crate) const NUMBER: usize = 8;

/// A long random-looking sequence, and pieces of it.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(Vec<u8>);

impl Pattern {
    pub(crate) fn new() -> Self {
        // xorshift64 (Marsaglia 2003), a fixed seed: both ends have the same.
        let mut x = 0x9e37_79b9_7f4a_7c15_u64;
        let mut v = Vec::with_capacity(PERIOD + BLOCK + 8);
        while v.len() < PERIOD {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            v.extend(x.to_le_bytes());
        }
        v.truncate(PERIOD);
        // The start once more, so that a piece from anywhere is contiguous.
        v.extend_from_within(..BLOCK);
        Self(v)
    }

    fn piece(&self, number: u64, bytes: usize) -> &[u8] {
        let at = (number.wrapping_mul(7919) % PERIOD as u64) as usize;
        &self.0[at..at + bytes]
    }

    /// Makes `out` (up to [`BLOCK`] bytes) the unit `number`.
    pub(crate) fn fill(&self, number: u64, out: &mut [u8]) {
        let (head, body) = out.split_at_mut(NUMBER);
        head.copy_from_slice(&number.to_le_bytes());
        body.copy_from_slice(self.piece(number, body.len()));
    }

    /// Whether `bytes` are those from `offset` on of the unit `number`.
    pub(crate) fn matches(&self, number: u64, offset: usize, bytes: &[u8]) -> bool {
        let head = number.to_le_bytes();
        let in_head = NUMBER.saturating_sub(offset).min(bytes.len());
        let (a, b) = bytes.split_at(in_head);
        let body = (offset + in_head).saturating_sub(NUMBER);
        (a.is_empty() || a == &head[offset..offset + in_head])
            && b == &self.piece(number, body + b.len())[body..]
    }

    /// The number of the datagram `d`, if every byte of it is right.
    pub(crate) fn check(&self, d: &[u8]) -> Option<u64> {
        let number = u64::from_le_bytes(*d.first_chunk()?);
        self.matches(number, 0, d).then_some(number)
    }
}

/// Checks a stream of blocks numbered from 0, piece by piece.
#[derive(Debug)]
pub(crate) struct StreamCheck {
    pattern: Pattern,
    at: u64,
    /// Pieces that were wrong.
    pub(crate) bad: u64,
}

impl StreamCheck {
    pub(crate) fn new() -> Self {
        Self {
            pattern: Pattern::new(),
            at: 0,
            bad: 0,
        }
    }

    /// Bytes seen.
    pub(crate) fn bytes(&self) -> u64 {
        self.at
    }

    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let offset = (self.at % BLOCK as u64) as usize;
            let (now, later) = bytes.split_at(bytes.len().min(BLOCK - offset));
            if !self.pattern.matches(self.at / BLOCK as u64, offset, now) {
                self.bad += 1;
            }
            self.at += now.len() as u64;
            bytes = later;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_byte_anywhere_is_found() {
        let p = Pattern::new();
        let mut d = [0; 1472];
        p.fill(12_345, &mut d);
        assert_eq!(p.check(&d), Some(12_345));
        for i in 0..d.len() {
            d[i] ^= 1;
            assert_eq!(p.check(&d), None, "byte {i}");
            d[i] ^= 1;
        }
        assert_eq!(p.check(&d[..5]), None);
    }

    #[test]
    fn a_stream_in_any_pieces_is_right_and_a_gap_is_not() {
        let p = Pattern::new();
        let mut all = vec![0; 3 * BLOCK];
        for (i, b) in all.chunks_mut(BLOCK).enumerate() {
            p.fill(i as u64, b);
        }
        let mut whole = StreamCheck::new();
        for piece in all.chunks(1003) {
            whole.add(piece);
        }
        assert_eq!((whole.bad, whole.bytes()), (0, 3 * BLOCK as u64));
        let mut gap = StreamCheck::new();
        gap.add(&all[..2000]);
        gap.add(&all[2001..]);
        assert!(gap.bad > 0);
    }
}
