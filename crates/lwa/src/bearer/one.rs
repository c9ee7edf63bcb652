//! One bearer of an end: its two PDCP entities, its policies and what it has to report.

use std::time::Duration;

use braid_core::Time;

use super::config::{BearerConfig, ConfigError};
use crate::link::Link;
use crate::pdcp::{Received, Receiver, ReceiverConfig, Transmitter, TransmitterConfig};
use crate::reorder::{self, ReorderingTime};
use crate::steer::{self, Steering};
use crate::wire::SnSize;
use crate::wire::control::Control;
use crate::wire::data::DataHeader;
use crate::wire::lwaap::DrbId;

/// While half of the numbers are under way without a word, the newest is sent again so often.
const STALLED: Duration = Duration::from_millis(50);
/// An end marker is repeated so soon, and then at twice the interval each time.
pub(super) const MARKER_FIRST: Duration = Duration::from_millis(20);
const MARKER_LONGEST: Duration = Duration::from_secs(1);

/// End marker that is repeated until something behind it is confirmed.
#[derive(Debug)]
pub(super) struct Marker {
    pub(super) pdu: Control,
    /// First COUNT under the new key.
    first: u32,
    next_at: Time,
    interval: Duration,
}

#[derive(Debug)]
pub(super) struct Bearer {
    pub(super) drb: DrbId,
    pub(super) size: SnSize,
    pub(super) tx: Transmitter,
    pub(super) rx: Receiver,
    pub(super) steering: Box<dyn Steering>,
    pub(super) reordering: Box<dyn ReorderingTime>,
    /// Packets came since the last status report.
    pub(super) news: bool,
    /// The peer asked for a status report.
    pub(super) polled: bool,
    pub(super) marker: Option<Marker>,
    stalled_at: Option<Time>,
}

impl Bearer {
    pub(super) fn new(config: BearerConfig) -> Result<Self, ConfigError> {
        let steering = steer::parse(&config.steering)?;
        let reordering = reorder::parse(&config.reordering)?;
        Ok(Bearer {
            drb: config.drb,
            size: config.size,
            tx: Transmitter::new(TransmitterConfig {
                size: config.size,
                discard_after: config.discard_after,
                queue_packets: config.queue_packets,
                kept_bytes: config.buffer_bytes,
                key: config.send_key,
                first_count: config.first_count,
            }),
            rx: Receiver::new(ReceiverConfig {
                size: config.size,
                t_reordering: Some(reordering.time(Time::ZERO)),
                stored_bytes: config.buffer_bytes,
                key: config.receive_key,
                first_count: config.first_count,
            }),
            steering,
            reordering,
            news: false,
            polled: false,
            marker: None,
            stalled_at: None,
        })
    }

    /// Takes a data PDU.
    pub(super) fn data(&mut self, now: Time, link: Link, header: DataHeader, payload: &[u8]) {
        self.rx.set_t_reordering(Some(self.reordering.time(now)));
        match self.rx.data(now, link, header, payload) {
            Received::Taken(Some(late)) => self.reordering.late(now, late.0, true),
            Received::TooLate(Some(late)) => self.reordering.late(now, late.0, false),
            _ => {}
        }
        self.news = true;
        self.polled |= header.poll;
    }

    /// Starts to repeat the marker of a change of key.
    pub(super) fn mark(&mut self, now: Time, pdu: Control) {
        self.marker = Some(Marker {
            pdu,
            first: self.tx.next_count(),
            next_at: now + MARKER_FIRST,
            interval: MARKER_FIRST,
        });
    }

    /// Marker that is to be repeated now.
    fn repeat_marker(&mut self, now: Time) -> Option<Control> {
        let floor = self.tx.confirmed_below();
        let marker = self.marker.as_mut()?;
        if floor > marker.first {
            self.marker = None;
            return None;
        }
        if now < marker.next_at {
            return None;
        }
        marker.interval = (marker.interval * 2).min(MARKER_LONGEST);
        marker.next_at = now + marker.interval;
        Some(marker.pdu.clone())
    }

    pub(super) fn timeout(&self) -> Option<Time> {
        [
            self.tx.timeout(),
            self.rx.timeout(),
            self.marker.as_ref().map(|m| m.next_at),
            self.stalled_at,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Runs what is due, and returns an end marker to be repeated.
    pub(super) fn handle_timeout(&mut self, now: Time) -> Option<Control> {
        self.tx.handle_timeout(now);
        self.rx.handle_timeout(now);
        self.stalled_at = match self.stalled_at {
            _ if !self.tx.stalled() => None,
            Some(at) if now >= at => {
                self.tx.resend_last();
                Some(now + STALLED)
            }
            Some(at) => Some(at),
            None => Some(now + STALLED),
        };
        self.repeat_marker(now)
    }
}
