//! Access selection descriptors (3GPP TS 24.193 6.1.3.2): which functionality steers, and how.
//!
//! Values and lengths are those of Release 16. Release 17 adds thresholds and who may choose the
//! shares, Release 18 Multipath QUIC and the mode `redundant` with its primary access. Their octets are
//! in no public source that could be read. So they are kept as they came, and nothing is made of them.

use super::reader::{DecodeError, Reader, wrong};
use super::{EncodeError, length8};

/// Access of a multi-access session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// 3GPP access.
    Threegpp,
    /// Non-3GPP access.
    NonThreegpp,
}

impl Side {
    /// Returns the other access.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Threegpp => Self::NonThreegpp,
            Self::NonThreegpp => Self::Threegpp,
        }
    }
}

/// Steering functionality (TS 23.501 5.32.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Functionality {
    /// Any that the device supports.
    Supported,
    /// Multipath TCP.
    Mptcp,
    /// ATSSS low-layer functionality.
    LowLayer,
    /// Functionality of a later release.
    Other(u8),
}

impl Functionality {
    fn of(octet: u8) -> Self {
        match octet {
            1 => Self::Supported,
            2 => Self::Mptcp,
            3 => Self::LowLayer,
            other => Self::Other(other),
        }
    }

    fn octet(self) -> u8 {
        match self {
            Self::Supported => 1,
            Self::Mptcp => 2,
            Self::LowLayer => 3,
            Self::Other(octet) => octet,
        }
    }
}

/// Steering mode with its information (TS 23.501 5.32.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All by one access; by the other while that is unavailable, if it is a standby.
    ActiveStandby {
        /// Access that carries.
        active: Side,
        /// Whether the other is its standby.
        standby: bool,
    },
    /// All by the access with the smaller round-trip time.
    SmallestDelay,
    /// Shares of both accesses.
    LoadBalancing {
        /// Tens of percent on the 3GPP access, 0 to 10.
        tens: u8,
    },
    /// All by one access until that is congested, the rest by the other.
    PriorityBased {
        /// Access of the high priority.
        high: Side,
    },
    /// Mode of a later release, or one with information that Release 16 does not have.
    Other {
        /// Steering mode.
        mode: u8,
        /// Octets behind it.
        information: Vec<u8>,
    },
}

/// Access selection descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Functionality that steers.
    pub functionality: Functionality,
    /// Steering mode.
    pub mode: Mode,
    /// Octets of a later release behind the information of the mode.
    pub later: Vec<u8>,
}

/// Octet of the share of load balancing without anything on the 3GPP access.
const NO_SHARE: u8 = 11;

impl Mode {
    /// Returns the mode with the information that it has in Release 16.
    fn of(mode: u8, information: Option<u8>) -> Option<Self> {
        use Side::{NonThreegpp, Threegpp};
        let active = |active, standby| Self::ActiveStandby { active, standby };
        Some(match (mode, information) {
            (1, Some(1)) => active(Threegpp, false),
            (1, Some(2)) => active(Threegpp, true),
            (1, Some(3)) => active(NonThreegpp, false),
            (1, Some(4)) => active(NonThreegpp, true),
            (2, None) => Self::SmallestDelay,
            (3, Some(share @ 1..=NO_SHARE)) => Self::LoadBalancing {
                tens: NO_SHARE - share,
            },
            (4, Some(1)) => Self::PriorityBased { high: Threegpp },
            (4, Some(2)) => Self::PriorityBased { high: NonThreegpp },
            _ => return None,
        })
    }

    /// Returns its octet and that of its information.
    fn octets(&self) -> Result<(u8, Vec<u8>), EncodeError> {
        use Side::{NonThreegpp, Threegpp};
        Ok(match self {
            Self::ActiveStandby { active, standby } => {
                let information = match (active, standby) {
                    (Threegpp, false) => 1,
                    (Threegpp, true) => 2,
                    (NonThreegpp, false) => 3,
                    (NonThreegpp, true) => 4,
                };
                (1, vec![information])
            }
            Self::SmallestDelay => (2, vec![]),
            Self::LoadBalancing { tens } => match NO_SHARE.checked_sub(*tens) {
                None | Some(0) => {
                    let what = "tens of percent on the 3GPP access";
                    let value = (*tens).into();
                    return Err(EncodeError::Value { what, value });
                }
                Some(share) => (3, vec![share]),
            },
            Self::PriorityBased { high: Threegpp } => (4, vec![1]),
            Self::PriorityBased { high: NonThreegpp } => (4, vec![2]),
            Self::Other { mode, information } => (*mode, information.clone()),
        })
    }

    /// Returns its octet.
    pub fn number(&self) -> u8 {
        match self {
            Self::ActiveStandby { .. } => 1,
            Self::SmallestDelay => 2,
            Self::LoadBalancing { .. } => 3,
            Self::PriorityBased { .. } => 4,
            Self::Other { mode, .. } => *mode,
        }
    }
}

impl Selection {
    /// Returns a descriptor of Release 16.
    pub fn new(functionality: Functionality, mode: Mode) -> Self {
        Self {
            functionality,
            mode,
            later: Vec::new(),
        }
    }

    /// Reads the descriptor that is next. Its length counts itself: 3 with smallest delay, else 4.
    pub(super) fn decode(from: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = from.offset();
        let length = from.u8("an access selection descriptor")?;
        let Some(left @ 2..) = length.checked_sub(1) else {
            let what = format!("{length}: an access selection descriptor has at least 3 octets");
            return Err(wrong(at, what));
        };
        let mut contents = from.part(left.into(), "an access selection descriptor")?;
        let functionality = Functionality::of(contents.u8("a steering functionality")?);
        let mode = contents.u8("a steering mode")?;
        let mut behind = contents.rest();
        let has_information = Mode::of(mode, None).is_none();
        let known = match (has_information, behind) {
            (true, [information, rest @ ..]) => {
                Mode::of(mode, Some(*information)).inspect(|_| behind = rest)
            }
            (true, []) => None,
            (false, _) => Mode::of(mode, None),
        };
        Ok(match known {
            Some(mode) => Self {
                functionality,
                mode,
                later: behind.to_vec(),
            },
            None => Self::new(
                functionality,
                Mode::Other {
                    mode,
                    information: behind.to_vec(),
                },
            ),
        })
    }

    /// Writes it behind what is there.
    pub(super) fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let (mode, information) = self.mode.octets()?;
        let bytes = 3 + information.len() + self.later.len();
        out.push(length8("an access selection descriptor", bytes)?);
        out.extend([self.functionality.octet(), mode]);
        out.extend(information);
        out.extend(&self.later);
        Ok(())
    }
}
