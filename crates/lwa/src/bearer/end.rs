//! One end of aggregated bearers: received frames in, delivered packets and frames to send out.

use std::collections::VecDeque;

use braid_core::{Rate, Time};
use thiserror::Error;

use super::arrivals::Arrivals;
use super::config::{ConfigError, EndConfig, Framing};
use super::one::Bearer;
use super::outgoing::Outgoing;
use super::probes::Probes;
use crate::cipher::Eea2;
use crate::link::Link;
use crate::pdcp::{KeyError, PushError, ReceiverStats, TransmitterStats};
use crate::steer::LinkView;
use crate::wire::control::Control;
use crate::wire::data::Pdu;
use crate::wire::gtp::{GtpFrame, Message};
use crate::wire::lwaap::{self, DrbId};
use crate::wire::xw::XwFrame;

/// Counters of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndStats {
    /// Frames per link that could not be read, LTE first.
    pub unreadable: [u64; 2],
    /// Frames per link of a tunnel or bearer that is not ours, LTE first.
    pub foreign: [u64; 2],
    /// Packets per link that its far side reported lost, LTE first.
    pub lost: [u64; 2],
    /// Bytes per link of frames that left, LTE first.
    pub sent_bytes: [u64; 2],
    /// Times per link that it fell silent, LTE first.
    pub silences: [u64; 2],
}

/// Keys of one bearer at one end.
#[derive(Clone, Debug, Default)]
pub struct BearerKeys {
    /// Key of what this end sends; none for EEA0.
    pub send: Option<Eea2>,
    /// Key of what this end receives; none for EEA0.
    pub receive: Option<Eea2>,
}

/// Why something could not be done with a bearer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EndError {
    /// No such bearer.
    #[error("bearer {0}: is not set up at this end")]
    Unknown(u8),
    /// The packet was not accepted.
    #[error(transparent)]
    Push(#[from] PushError),
    /// The key was not changed.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Node or UE: the bearers of one UE over its two links.
#[derive(Debug)]
pub struct End {
    pub(super) config: EndConfig,
    /// Count of re-establishments: tunnels of an earlier one are foreign.
    pub(super) epoch: u32,
    pub(super) bearers: Vec<Bearer>,
    /// Bearer whose turn it is.
    pub(super) turn: usize,
    pub(super) outgoing: [Outgoing; 2],
    pub(super) arrivals: [Arrivals; 2],
    probes: Probes,
    pub(super) up: [bool; 2],
    phy_rate: [Option<Rate>; 2],
    pub(super) last_heard: [Time; 2],
    pub(super) control: VecDeque<(Link, Vec<u8>)>,
    pub(super) delivery_at: Time,
    pub(super) status_at: Time,
    pub(super) stats: EndStats,
}

impl End {
    /// An end with both links up.
    pub fn new(mut config: EndConfig) -> Result<Self, ConfigError> {
        let mut bearers: Vec<Bearer> = Vec::new();
        for bearer in std::mem::take(&mut config.bearers) {
            if bearers.iter().any(|b| b.drb == bearer.drb) {
                return Err(ConfigError::Twice(bearer.drb.get()));
            }
            bearers.push(Bearer::new(bearer)?);
        }
        let Some(first) = bearers.first() else {
            return Err(ConfigError::Empty);
        };
        // The bearer that wants probes most often decides how they are smoothed.
        let mut probes = Probes::new(config.probe_interval, first.steering.newest_weight());
        let eager = bearers.iter().map(|b| &b.steering);
        let eager = eager.filter_map(|s| Some((s.probe_interval()?, s.newest_weight())));
        if let Some((interval, weight)) = eager.min_by_key(|e| e.0) {
            probes = Probes::new(interval, weight);
        }
        Ok(End {
            config,
            epoch: 0,
            bearers,
            turn: 0,
            outgoing: Default::default(),
            arrivals: Default::default(),
            probes,
            up: [true; 2],
            phy_rate: [None; 2],
            last_heard: [Time::ZERO; 2],
            control: VecDeque::new(),
            delivery_at: Time::ZERO,
            status_at: Time::ZERO,
            stats: EndStats::default(),
        })
    }

    /// Queues an IP packet on bearer `drb`.
    pub fn push(&mut self, now: Time, drb: DrbId, packet: Vec<u8>) -> Result<(), EndError> {
        Ok(self.bearer(drb)?.tx.push(now, packet)?)
    }

    /// Next delivered packet and its bearer; packets of one bearer come in order.
    pub fn pop(&mut self) -> Option<(DrbId, Vec<u8>)> {
        (self.bearers.iter_mut()).find_map(|b| b.rx.pop().map(|packet| (b.drb, packet)))
    }

    /// Sets whether `link` exists. What is unconfirmed on a link that goes away is sent again
    /// over the other one (data recovery).
    pub fn set_link(&mut self, now: Time, link: Link, up: bool) {
        let was = std::mem::replace(&mut self.up[link.index()], up);
        if was && !up {
            self.recover(link);
        }
        if up {
            self.outgoing[link.index()].alive(now);
        }
    }

    /// Sets the rate of `link`'s radio, for steering by it.
    pub fn set_phy_rate(&mut self, link: Link, rate: Option<Rate>) {
        self.phy_rate[link.index()] = rate;
    }

    /// Counters of the end.
    pub fn stats(&self) -> EndStats {
        self.stats
    }

    /// Counters of a bearer.
    pub fn bearer_stats(&self, drb: DrbId) -> Option<(TransmitterStats, ReceiverStats)> {
        let bearer = self.bearers.iter().find(|b| b.drb == drb)?;
        Some((bearer.tx.stats(), bearer.rx.stats()))
    }

    /// Packets of a bearer that wait for a link.
    pub fn waiting_packets(&self, drb: DrbId) -> Option<usize> {
        let bearer = self.bearers.iter().find(|b| b.drb == drb)?;
        Some(bearer.tx.waiting_packets())
    }

    /// Re-establishes all bearers by the keys that `keys` names for each: new tunnels, what is
    /// unconfirmed is sent again, status reports follow. Both ends must do it, the receiver of
    /// data first.
    pub fn reestablish(&mut self, now: Time, keys: impl Fn(DrbId) -> BearerKeys) {
        self.epoch += 1;
        self.outgoing = Default::default();
        self.arrivals = Default::default();
        self.control.clear();
        for link in Link::ALL {
            self.outgoing[link.index()].alive(now);
        }
        for index in 0..self.bearers.len() {
            let bearer = &mut self.bearers[index];
            let keys = keys(bearer.drb);
            bearer.marker = None;
            bearer.tx.reestablish(keys.send);
            bearer.rx.reestablish(now, keys.receive);
            let report = bearer.rx.status_report();
            self.send_control(now, index, &report, None);
        }
    }

    /// Holds the key ready that the peer's end marker will announce. Until the marker comes,
    /// packets of the bearer are kept undelivered, so stage it shortly before the peer changes.
    pub fn stage_key(&mut self, drb: DrbId, key: Option<Eea2>) -> Result<(), EndError> {
        Ok(self.bearer(drb)?.rx.stage_key(key)?)
    }

    /// Whether a staged key still waits for its end marker.
    pub fn awaits_marker(&self, drb: DrbId) -> bool {
        (self.bearers.iter()).any(|b| b.drb == drb && b.rx.awaits_marker())
    }

    /// Ciphers by `key` from the next new packet on. The end marker leaves on both links before
    /// it, and again until the peer confirms a packet under the new key. The peer must have
    /// staged the key.
    pub fn change_key(&mut self, now: Time, drb: DrbId, key: Option<Eea2>) -> Result<(), EndError> {
        let index = self.index(drb)?;
        let marker = self.bearers[index].tx.change_key(key)?;
        self.bearers[index].mark(now, marker.clone());
        for link in Link::ALL {
            self.send_control(now, index, &marker, Some(link));
        }
        Ok(())
    }

    fn index(&self, drb: DrbId) -> Result<usize, EndError> {
        (self.bearers.iter().position(|b| b.drb == drb)).ok_or(EndError::Unknown(drb.get()))
    }

    fn bearer(&mut self, drb: DrbId) -> Result<&mut Bearer, EndError> {
        let index = self.index(drb)?;
        Ok(&mut self.bearers[index])
    }

    /// Takes a frame that came over `link`.
    pub fn receive(&mut self, now: Time, link: Link, frame: &[u8]) {
        self.last_heard[link.index()] = now;
        if self.config.framing[link.index()] == Framing::Ethernet {
            self.receive_lwaap(now, link, frame);
            return;
        }
        let Ok(frame) = GtpFrame::decode(frame) else {
            self.stats.unreadable[link.index()] += 1;
            return;
        };
        match (frame.message, frame.sequence) {
            (Message::EchoRequest, Some(sequence)) => {
                let mut answer = Vec::new();
                GtpFrame::echo_response(sequence).encode(&mut answer);
                self.queue_control(self.answer_link(now), answer);
            }
            (Message::EchoResponse, Some(sequence)) => {
                if let Some((probed, rtt)) = self.probes.answered(now, sequence) {
                    self.outgoing[probed.index()].alive(now);
                    for bearer in &mut self.bearers {
                        bearer.reordering.round_trip(now, probed, rtt);
                    }
                }
            }
            (Message::Gpdu, _) => {
                let tunnel = (frame.teid.wrapping_sub(self.teid(Link::Lte))) as usize;
                let Some(&tunnel) = Link::ALL.get(tunnel) else {
                    self.stats.foreign[link.index()] += 1;
                    return;
                };
                match &frame.xw {
                    Some(XwFrame::UserData { sn }) => {
                        self.arrivals[tunnel.index()].arrived(now, *sn);
                    }
                    Some(XwFrame::Status(status)) => {
                        let lost = self.outgoing[tunnel.index()].status(now, status);
                        self.stats.lost[tunnel.index()] += lost.len() as u64;
                        self.lost(&lost);
                    }
                    None => {}
                }
                if !frame.payload.is_empty() {
                    self.receive_lwaap(now, link, frame.payload);
                }
            }
            _ => self.stats.unreadable[link.index()] += 1,
        }
    }

    fn receive_lwaap(&mut self, now: Time, link: Link, pdu: &[u8]) {
        let Ok((drb, pdu)) = lwaap::decode(pdu) else {
            self.stats.unreadable[link.index()] += 1;
            return;
        };
        let Some(bearer) = self.bearers.iter_mut().find(|b| b.drb == drb) else {
            self.stats.foreign[link.index()] += 1;
            return;
        };
        match Pdu::decode(bearer.size, pdu) {
            Ok(Pdu::Data { header, payload }) => bearer.data(now, link, header, payload),
            Ok(Pdu::Control(Control::Status(report))) => bearer.tx.status(&report),
            Ok(Pdu::Control(Control::LwaStatus(status))) => {
                let through = bearer.tx.lwa_status(&status);
                if let (Some(count), Framing::Ethernet) = (through, self.config.framing[1]) {
                    self.outgoing[1].through(now, drb.get(), count);
                }
            }
            Ok(Pdu::Control(Control::EndMarker { lsn })) => bearer.rx.end_marker(now, lsn),
            Err(_) => self.stats.unreadable[link.index()] += 1,
        }
    }

    fn lost(&mut self, lost: &[(u8, u32)]) {
        if !self.config.resend_lost {
            return;
        }
        for &(drb, count) in lost {
            if let Some(bearer) = self.bearers.iter_mut().find(|b| b.drb.get() == drb) {
                bearer.tx.resend(count, None);
            }
        }
    }

    fn recover(&mut self, link: Link) {
        for bearer in &mut self.bearers {
            bearer.tx.recover(link);
        }
    }

    /// Tunnel of `link`.
    pub(super) fn teid(&self, link: Link) -> u32 {
        (self.config.teid)
            .wrapping_add(self.epoch.wrapping_mul(2))
            .wrapping_add(link.index() as u32)
    }

    pub(super) fn views(&self, room: [bool; 2]) -> [LinkView; 2] {
        let healthy = [0, 1].map(|i| self.up[i] && !self.outgoing[i].is_silent());
        Link::ALL.map(|link| {
            let i = link.index();
            let outgoing = &self.outgoing[i];
            LinkView {
                // Where both are silent nothing better is known.
                usable: healthy[i] || (self.up[i] && !healthy[1 - i]),
                room: room[i],
                phy_rate: self.phy_rate[i],
                slrtt: self.probes.slrtt(link),
                delivery_rate: outgoing.flow.rate(),
                min_delay: outgoing.flow.min_delay(),
                report_interval: outgoing.flow.report_interval(),
                draining: outgoing.flow.draining(),
                in_flight_bytes: outgoing.bytes(),
                desired_bytes: outgoing.desired_bytes(),
            }
        })
    }

    pub(super) fn is_up(&self, link: Link) -> bool {
        self.up[link.index()]
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due next.
    pub fn timeout(&self) -> Time {
        if self.bearers.iter().any(|b| b.polled) {
            return Time::ZERO;
        }
        let mut next = self.probes.timeout();
        if self.arrivals.iter().any(Arrivals::has_news) {
            next = next.min(self.delivery_at);
        }
        if self.bearers.iter().any(|b| b.news) {
            next = next.min(self.status_at);
        }
        let timers = self.bearers.iter().filter_map(Bearer::timeout);
        let links = self.outgoing.iter().filter_map(Outgoing::timeout);
        timers.chain(links).fold(next, Time::min)
    }

    /// Runs what is due: timers of PDCP, probes, reports.
    pub fn handle_timeout(&mut self, now: Time) {
        for link in Link::ALL {
            let probed = self.config.framing[link.index()] == Framing::Gtp;
            if self.outgoing[link.index()].handle_timeout(now, probed) {
                self.stats.silences[link.index()] += 1;
                self.recover(link);
            }
        }
        for index in 0..self.bearers.len() {
            if let Some(marker) = self.bearers[index].handle_timeout(now) {
                for link in Link::ALL {
                    self.send_control(now, index, &marker, Some(link));
                }
            }
        }
        if self.probes.due(now) {
            for link in Link::ALL {
                if self.up[link.index()] && self.config.framing[link.index()] == Framing::Gtp {
                    let mut probe = Vec::new();
                    GtpFrame::echo_request(self.probes.send(now, link)).encode(&mut probe);
                    self.queue_control(link, probe);
                }
            }
        }
        self.report(now);
    }
}
