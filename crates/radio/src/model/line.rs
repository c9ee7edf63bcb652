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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_by_arrival_and_keeps_the_order_of_equals() {
        let mut line = Line::default();
        for (id, due) in [(0, 5), (1, 9), (2, 5), (3, 1), (4, 9)] {
            line.push(Flight {
                due: Time::from_nanos(due),
                span: Span {
                    id,
                    first: 0,
                    end: 2,
                },
                bytes: 1,
            });
        }
        assert_eq!(
            (line.packets(), line.due()),
            (10, Some(Time::from_nanos(1)))
        );
        let order: Vec<u32> = std::iter::from_fn(|| line.pop())
            .map(|f| f.span.id)
            .collect();
        assert_eq!(order, [3, 0, 2, 1, 4]);
        assert_eq!(line.packets(), 0);
    }
}
