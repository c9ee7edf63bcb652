//! Quantities that a trace has over time: rates, and beside them delays and losses.

use std::time::Duration;

use super::{Capacity, Trace};

/// Quantity of a column. A [`Trace`] holds each as a rate: a millisecond of delay, or a loss
/// of 1, as 1 Mbit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Capacity at the IP layer, Mbit/s.
    Rate,
    /// Propagation delay one way, ms.
    Delay,
    /// Probability that a packet is lost, 0 to 1.
    Loss,
}

impl Quantity {
    /// Every quantity.
    pub const ALL: [Self; 3] = [Self::Rate, Self::Delay, Self::Loss];

    /// End of the name of a column of our CSV.
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Rate => "_mbps",
            Self::Delay => "_ms",
            Self::Loss => "_loss",
        }
    }

    /// Noun for messages.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Delay => "delay",
            Self::Loss => "loss",
        }
    }

    /// Unit in which [`Quantity::max`] counts, for messages.
    pub(crate) const fn expected(self) -> &'static str {
        match self {
            Self::Rate => "Mbit/s, 0 to 1000000",
            Self::Delay => "milliseconds, 0 to 60000",
            Self::Loss => "a fraction, 0 to 1",
        }
    }

    /// Greatest value: 1 Tbit/s, 60 s, or every packet.
    pub(crate) const fn max(self) -> f64 {
        match self {
            Self::Rate => 1e6,
            Self::Delay => 60e3,
            Self::Loss => 1.0,
        }
    }
}

impl Trace {
    /// Values of the column at `index` and when each begins to hold, in the unit of its
    /// quantity; neighbours differ. They repeat after [`Trace::span`].
    ///
    /// # Panics
    /// When there is no such column, or the trace consists of delivery opportunities.
    pub fn values(&self, index: usize) -> Vec<(Duration, f64)> {
        let Capacity::Steps {
            starts, columns, ..
        } = &self.capacity
        else {
            panic!("delivery opportunities have no values");
        };
        let rates = columns[index].rates.iter().map(|r| r.as_mbps());
        let mut points: Vec<_> = starts.iter().copied().zip(rates).collect();
        points.dedup_by_key(|p| p.1);
        points
    }
}
