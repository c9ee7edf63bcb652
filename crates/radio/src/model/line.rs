//! Packets under way to the far end of a link.

use std::collections::VecDeque;

use braid_core::Time;

use super::train::Span;

#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    pub(super) due: Time,
    pub(super) span: Span,
    pub(super) bytes: u64,
}

/// Sorted by arrival; at the same time in sending order.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    flights: VecDeque<Flight>,
    packets: u64,
}

impl Line {
    pub(super) fn push(&mut self, flight: Flight) {
        self.packets += u64::from(flight.span.packets());
        match self.flights.back() {
            // Only with reordering; then the place is near the end.
            Some(last) if last.due > flight.due => {
                let i = self.flights.partition_point(|f| f.due <= flight.due);
                self.flights.insert(i, flight);
            }
            _ => self.flights.push_back(flight),
        }
    }

    /// When the next packets arrive.
    pub(super) fn due(&self) -> Option<Time> {
        self.flights.front().map(|f| f.due)
    }

    /// The next packets to arrive.
    pub(super) fn pop(&mut self) -> Option<Flight> {
        let flight = self.flights.pop_front()?;
        self.packets -= u64::from(flight.span.packets());
        Some(flight)
    }

    pub(super) fn packets(&self) -> u64 {
        self.packets
    }
}
