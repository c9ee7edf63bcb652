//! Flows that the kernel tracks (conntrack).

use std::io;

use netlink_packet_core::DefaultNla;
use netlink_packet_netfilter::conntrack::{ConntrackAttribute, ConntrackMessage};
use netlink_packet_netfilter::{NetfilterHeader, NetfilterMessage, NetfilterProtoFamily};
use thiserror::Error;

use crate::nft::{FLOW_NUMBER, NetfilterSocket, in_mark};

/// Attribute of the bits of a mark that count (CTA_MARK_MASK).
const MARK_MASK: u16 = 21;

/// Why flows could not be forgotten.
#[derive(Debug, Error)]
#[error("forget the flows of a rule (conntrack): {0}")]
pub struct ConntrackError(#[from] io::Error);

/// Makes the kernel forget the flows of the rule with this number: they begin anew.
///
/// # Errors
/// What the kernel refuses.
pub(crate) fn forget(rule: u8) -> Result<(), ConntrackError> {
    forget_marked(in_mark(rule), FLOW_NUMBER)
}

/// Makes the kernel forget the flows of all rules.
///
/// # Errors
/// What the kernel refuses.
pub(crate) fn forget_all() -> Result<(), ConntrackError> {
    // The kernel compares for equality: each number has one of the bits.
    let bits = (0..u32::BITS)
        .map(|b| 1 << b)
        .filter(|bit| FLOW_NUMBER & bit != 0);
    bits.into_iter().try_for_each(|bit| forget_marked(bit, bit))
}

fn forget_marked(mark: u32, mask: u32) -> Result<(), ConntrackError> {
    let mask = DefaultNla::new(MARK_MASK, mask.to_be_bytes().into());
    let attributes = vec![
        ConntrackAttribute::CtaMark(mark),
        ConntrackAttribute::Other(mask),
    ];
    let header = NetfilterHeader::new(NetfilterProtoFamily::Unspec, 0, 0);
    let message = NetfilterMessage::new(header, ConntrackMessage::Delete(attributes));
    match NetfilterSocket::open()?.request(message) {
        // There was none; or the kernel has no such messages (CONFIG_NF_CT_NETLINK), and flows go on
        // as they began.
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENOENT | libc::EINVAL)) => Ok(()),
        done => Ok(done?),
    }
}
