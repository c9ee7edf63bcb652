//! Packets in a ratio, spread evenly.

use crate::link::Link;

/// Chooses by a ratio such that after each packet the links' shares are as near to it as whole
/// packets allow.
#[derive(Clone, Debug, Default)]
pub(super) struct Ratio {
    /// Share of LTE that is owed, in packets.
    lead: f64,
}

impl Ratio {
    /// Link that is behind its share, LTE's share of all packets being `lte` (0 to 1).
    pub(super) fn next(&self, lte: f64) -> Link {
        if self.lead + lte >= 0.5 {
            Link::Lte
        } else {
            Link::Wlan
        }
    }

    /// A packet left over `link`.
    pub(super) fn sent(&mut self, lte: f64, link: Link) {
        self.lead += lte - if link == Link::Lte { 1.0 } else { 0.0 };
        // While one link was unusable the debt would grow without end.
        self.lead = self.lead.clamp(-1.0, 1.0);
    }
}
