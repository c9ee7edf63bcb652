//! The Internet checksum (RFC 1071).

/// A one's complement sum being collected. Every piece but the last has an
/// even number of bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum(u64);

impl Sum {
    /// Adds `bytes`; an odd last byte counts as if a zero followed.
    pub(crate) fn add(mut self, bytes: &[u8]) -> Self {
        // Words are added in the machine's byte order and swapped at the end
        // (RFC 1071 2(B)); four bytes at a time, the carries stay in the upper half.
        let (words, rest) = bytes.as_chunks::<4>();
        for w in words {
            self.0 += u64::from(u32::from_ne_bytes(*w));
        }
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        self.0 += u64::from(u32::from_ne_bytes(last));
        self
    }

    /// Adds one 16-bit word given in host order.
    pub(crate) fn word(self, w: u16) -> Self {
        self.add(&w.to_be_bytes())
    }

    /// The sum folded to 16 bits, not complemented.
    pub(crate) fn folded(self) -> u16 {
        let mut s = self.0;
        while s > 0xffff {
            s = (s & 0xffff) + (s >> 16);
        }
        u16::from_be(s as u16)
    }

    /// The checksum field's value.
    pub(crate) fn checksum(self) -> u16 {
        !self.folded()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rfc1071_example() {
        let s = Sum::default().add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(s.folded(), 0xddf2);
    }

    proptest! {
        #[test]
        fn equals_the_sum_of_words(data in proptest::collection::vec(any::<u8>(), 0..300), cut in 0usize..150) {
            let mut plain = 0u32;
            for c in data.chunks(2) {
                plain += u32::from(c[0]) << 8 | u32::from(*c.get(1).unwrap_or(&0));
                plain = (plain & 0xffff) + (plain >> 16);
            }
            let cut = (cut * 2).min(data.len());
            let s = Sum::default().add(&data[..cut]).add(&data[cut..]);
            // Zero has two forms in one's complement.
            prop_assert_eq!(u32::from(s.folded()) % 0xffff, plain % 0xffff);
        }
    }
}
