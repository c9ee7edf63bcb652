//! The two links under a bearer.

use std::fmt;

/// One of the two links that a bearer is split over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Link {
    /// Anchor: the cellular access. Answers and reports leave here while it works.
    Lte,
    /// Wireless LAN beside it.
    Wlan,
}

impl Link {
    /// Both, the anchor first.
    pub const ALL: [Link; 2] = [Link::Lte, Link::Wlan];

    /// Place in arrays that hold one entry per link.
    pub const fn index(self) -> usize {
        match self {
            Link::Lte => 0,
            Link::Wlan => 1,
        }
    }

    /// Other one of the two.
    pub const fn other(self) -> Link {
        match self {
            Link::Lte => Link::Wlan,
            Link::Wlan => Link::Lte,
        }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Link::Lte => "lte",
            Link::Wlan => "wifi",
        })
    }
}
