//! What the congestion controllers of one connection share: the scheduler reads the
//! windows of its paths from it, coupled controllers those of their siblings.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use braid_core::cc::Facts;

/// One path's controller, as seen from outside.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    /// Its path has not ended.
    pub(crate) alive: bool,
    /// It belongs to a path that the scheduler gives data to; the gate of another is
    /// always open.
    pub(crate) scheduled: bool,
    /// The scheduler has data leave here now.
    pub(crate) open: bool,
    /// Only acknowledgements of the datagram lane leave now, which no window holds back,
    /// as it does not those of QUIC (RFC 9002 7).
    pub(crate) exempt: bool,
    /// Congestion window, bytes.
    pub(crate) window: u64,
    /// Bytes on their way that are acknowledged one day.
    pub(crate) in_flight: u64,
    /// It had room, and nothing was sent: for want of data, or because the scheduler had
    /// another carry it. Acknowledgements may not open such a window (RFC 9002 7.8).
    /// What the library thinks of that is wrong for a path that is held back.
    pub(crate) idle: bool,
    /// Bytes of a full UDP payload.
    pub(crate) mtu: u64,
    pub(crate) srtt: Duration,
    /// Mean deviation of the round-trip time (RFC 9002 5.3).
    pub(crate) rttvar: Duration,
    /// Rate at which the controller wants to be sent, bytes per second, if it says.
    pub(crate) pacing: Option<u64>,
    pub(crate) slow_start: bool,
    /// When the newest of the packets was sent that have been acknowledged.
    pub(crate) newest: Option<Instant>,
    /// Packets lost since it began.
    pub(crate) lost: u64,
    /// For coupled controllers; none until a round-trip time is known.
    pub(crate) facts: Option<Facts>,
}

impl Slot {
    fn new(window: u64, mtu: u64) -> Self {
        Self {
            alive: true,
            scheduled: false,
            open: true,
            exempt: false,
            window,
            in_flight: 0,
            idle: false,
            mtu,
            srtt: Duration::ZERO,
            rttvar: Duration::ZERO,
            pacing: None,
            slow_start: true,
            newest: None,
            lost: 0,
            facts: None,
        }
    }
}

/// The slots of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared(Arc<Mutex<Vec<Slot>>>);

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        // Nothing that is done under the lock leaves a slot half written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new slot; its number is never used again.
    pub(super) fn add(&self, window: u64, mtu: u64) -> usize {
        let mut slots = self.lock();
        slots.push(Slot::new(window, mtu));
        slots.len() - 1
    }

    /// Does something with a slot.
    pub(super) fn with<T>(&self, number: usize, f: impl FnOnce(&mut Slot) -> T) -> T {
        f(&mut self.lock()[number])
    }
}
