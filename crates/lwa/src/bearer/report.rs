//! Control frames of an end: reports, markers, answers, and the link they leave over.

use std::time::Duration;

use braid_core::Time;

use super::config::Framing;
use super::end::End;
use crate::link::Link;
use crate::wire::control::Control;
use crate::wire::gtp::{GtpFrame, MAX_RANGES, Message};
use crate::wire::lwaap;
use crate::wire::xw::XwFrame;

/// Control frames that may wait for a link; beyond, the oldest goes, so that a flood of probes
/// takes no memory.
const CONTROL_FRAMES: usize = 256;
/// LTE counts as dead for answers when it brought nothing for so long while Wi-Fi did.
const DEAF: Duration = Duration::from_millis(500);

impl End {
    /// Link that answers and reports leave over: LTE while it works.
    pub(super) fn answer_link(&self, now: Time) -> Link {
        let [lte, wlan] = self.last_heard.map(|t| now.since(t));
        let deaf = lte >= DEAF && wlan < DEAF;
        if self.up[1] && (!self.up[0] || deaf || self.outgoing[0].is_silent()) {
            Link::Wlan
        } else {
            Link::Lte
        }
    }

    pub(super) fn queue_control(&mut self, link: Link, frame: Vec<u8>) {
        if self.control.len() >= CONTROL_FRAMES {
            self.control.pop_front();
        }
        self.control.push_back((link, frame));
    }

    /// Queues a control PDU of a bearer, on `link` or on the one that reports use.
    pub(super) fn send_control(
        &mut self,
        now: Time,
        index: usize,
        pdu: &Control,
        link: Option<Link>,
    ) {
        let link = link.unwrap_or_else(|| self.answer_link(now));
        let bearer = &self.bearers[index];
        let mut payload = Vec::new();
        lwaap::encode(bearer.drb, &mut payload);
        pdu.encode(bearer.size, &mut payload);
        let frame = match self.config.framing[link.index()] {
            Framing::Ethernet => payload,
            Framing::Gtp => self.tunnelled(link, None, &payload),
        };
        self.queue_control(link, frame);
    }

    /// G-PDU of the tunnel of `tunnel`.
    pub(super) fn tunnelled(&self, tunnel: Link, xw: Option<XwFrame>, payload: &[u8]) -> Vec<u8> {
        let mut frame = Vec::with_capacity(payload.len() + 24);
        GtpFrame {
            message: Message::Gpdu,
            teid: self.teid(tunnel),
            sequence: None,
            xw,
            payload,
        }
        .encode(&mut frame);
        frame
    }

    /// Sends the reports that are due.
    pub(super) fn report(&mut self, now: Time) {
        if now >= self.delivery_at {
            for tunnel in Link::ALL {
                let arrivals = &mut self.arrivals[tunnel.index()];
                if !arrivals.has_news() {
                    continue;
                }
                self.delivery_at = now + self.config.delivery_interval;
                let mut status = arrivals.status(now, self.config.desired_buffer_bytes);
                status.lost.truncate(MAX_RANGES);
                let frame = self.tunnelled(tunnel, Some(XwFrame::Status(status)), &[]);
                let link = self.answer_link(now);
                if self.config.framing[link.index()] == Framing::Gtp {
                    self.queue_control(link, frame);
                }
            }
        }
        for index in 0..self.bearers.len() {
            let bearer = &mut self.bearers[index];
            let due = bearer.polled || (bearer.news && now >= self.status_at);
            if !due {
                continue;
            }
            (bearer.polled, bearer.news) = (false, false);
            let report = bearer.rx.status_report();
            let lwa = bearer.rx.lwa_status_report();
            self.send_control(now, index, &report, None);
            if let (Some(lwa), Framing::Ethernet) = (lwa, self.config.framing[1]) {
                self.send_control(now, index, &lwa, None);
            }
        }
        if now >= self.status_at {
            self.status_at = now + self.config.status_interval;
        }
    }
}
