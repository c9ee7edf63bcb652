//! Netlink attributes: writing and reading, on rust-netlink's types.

use netlink_packet_core::{DefaultNla, Emitable, NLA_F_NESTED, NlasIterator};

/// Attributes in a buffer. Reading stops at the first malformed one.
#[derive(Clone, Copy)]
pub(crate) struct Attrs<'a>(pub(crate) &'a [u8]);

impl<'a> Attrs<'a> {
    /// Calls `each` with every attribute's kind and value.
    pub(crate) fn each(self, mut each: impl FnMut(u16, &'a [u8])) {
        let mut at = 0;
        for attribute in NlasIterator::new(self.0) {
            let Ok(attribute) = attribute else { return };
            let length = usize::from(attribute.length());
            // The value is taken from our buffer, which outlives the iterator.
            if let Some(value) = self.0.get(at + 4..at + length) {
                each(attribute.kind(), value);
            }
            at += length.next_multiple_of(4);
        }
    }

    /// The value of the first attribute of a kind.
    pub(crate) fn find(self, kind: u16) -> Option<&'a [u8]> {
        let mut found = None;
        self.each(|k, v| {
            if k == kind && found.is_none() {
                found = Some(v);
            }
        });
        found
    }
}

/// Text with or without its terminating zero.
pub(crate) fn text(value: &[u8]) -> String {
    let end = value.iter().position(|&b| b == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

/// An 8-bit value.
pub(crate) fn u8_of(value: &[u8]) -> Option<u8> {
    value.first().copied()
}

/// A 16-bit value in the machine's byte order.
pub(crate) fn u16_of(value: &[u8]) -> Option<u16> {
    value.first_chunk().map(|b| u16::from_ne_bytes(*b))
}

/// A 16-bit value in network byte order.
pub(crate) fn be16_of(value: &[u8]) -> Option<u16> {
    value.first_chunk().map(|b| u16::from_be_bytes(*b))
}

/// A 32-bit value in the machine's byte order.
pub(crate) fn u32_of(value: &[u8]) -> Option<u32> {
    value.first_chunk().map(|b| u32::from_ne_bytes(*b))
}

/// An attribute with a value of plain bytes.
pub(crate) fn bytes(kind: u16, value: &[u8]) -> DefaultNla {
    DefaultNla::new(kind, value.to_vec())
}

/// An attribute that holds attributes.
pub(crate) fn nest(kind: u16, inner: &[DefaultNla]) -> DefaultNla {
    DefaultNla::new(kind | NLA_F_NESTED, emit(inner))
}

/// The bytes of a row of attributes.
pub(crate) fn emit(attributes: &[DefaultNla]) -> Vec<u8> {
    let mut out = vec![0; attributes.buffer_len()];
    attributes.emit(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(
            rows in prop::collection::vec((1u16..200, prop::collection::vec(any::<u8>(), 0..40)), 0..8)
        ) {
            let written: Vec<_> = rows.iter().map(|(k, v)| bytes(*k, v)).collect();
            let flat = emit(&[nest(7, &written)]);
            let inner = Attrs(&flat).find(7).unwrap();
            let mut read = Vec::new();
            Attrs(inner).each(|k, v| read.push((k, v.to_vec())));
            prop_assert_eq!(read, rows);
        }

        #[test]
        fn garbage_does_not_panic(garbage in prop::collection::vec(any::<u8>(), 0..200)) {
            Attrs(&garbage).each(|_, v| { let _ = (text(v), u8_of(v), u16_of(v), be16_of(v), u32_of(v)); });
        }
    }
}
