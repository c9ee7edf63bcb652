//! Attributes that the message crate has no names for, by their numbers in
//! include/uapi/linux/netfilter/nf_tables.h.

use netlink_packet_core::{DefaultNla, Emitable, NLA_F_NESTED};

/// Makes an attribute with a number in network order.
pub(super) fn number(kind: u16, value: u32) -> DefaultNla {
    debug_assert_eq!(kind & NLA_F_NESTED, 0);
    DefaultNla::new(kind, value.to_be_bytes().into())
}

/// Makes an attribute with text, which ends with a zero.
pub(super) fn text(kind: u16, text: &str) -> DefaultNla {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    DefaultNla::new(kind, bytes)
}

/// Makes an attribute that holds attributes.
pub(super) fn nested(kind: u16, inner: &[DefaultNla]) -> DefaultNla {
    let mut bytes = vec![0; inner.buffer_len()];
    inner.emit(&mut bytes);
    DefaultNla::new(kind | NLA_F_NESTED, bytes)
}

/// Makes an attribute with the value of a register.
pub(super) fn value(kind: u16, value: Vec<u8>) -> DefaultNla {
    nested(kind, &[DefaultNla::new(1, value)])
}
