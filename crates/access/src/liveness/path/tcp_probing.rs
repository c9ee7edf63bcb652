//! A path that is asked by TCP, and one that is asked in place of another.

use std::net::IpAddr;
use std::time::Duration;

use braid_core::Time;

use super::super::tcp_probe::TcpProbe;
use super::super::{FAST_RECOVERY_FOR, IDLE_POLL, TX_INTERVAL_ACTIVE};
use super::Path;

/// How long the answer on another path is waited for: there may be a queue, and the kernel
/// repeats a SYN after a second.
const CONTROL: Duration = Duration::from_secs(2);

impl Path {
    /// Returns whether the path is being probed for liveness over TCP.
    pub(super) fn tcp_probing(&self) -> bool {
        self.open > 0 && !self.answers && self.silent.is_none()
    }

    /// An answer came to `by`, which may have been asked in place of this one; says whether
    /// it was.
    pub(in super::super) fn heard(&mut self, by: IpAddr, number: u32, now: Time) -> bool {
        self.tcp_probes.heard(by, number, now)
    }

    /// `by` was asked as well.
    pub(in super::super) fn controlled(&mut self, by: IpAddr, number: u32) {
        self.tcp_probes.controlled(by, number);
    }

    /// The question by TCP to send, if one is due. `other` is when the liveliest other path
    /// had its last sign of life.
    pub(in super::super) fn tcp_probe(
        &mut self,
        now: Time,
        busy: bool,
        other: Option<Time>,
    ) -> Option<TcpProbe> {
        if self.tcp_probe_due(busy) > now {
            return None;
        }
        let first = match self.silent {
            None => !self.tcp_probing(),
            // Whoever answered on the other path may have gone since.
            Some(since) => now.since(since) > FAST_RECOVERY_FOR && self.in_a_row == 0,
        };
        if self.silent.is_none() {
            let carries =
                |t: Time| t > self.tcp_life + TX_INTERVAL_ACTIVE / 2 && now.since(t) < IDLE_POLL;
            if !other.is_some_and(carries) {
                // Nobody to compare with: what was asked before counts no more.
                self.tcp_probes.forget();
                self.close_all();
                return None;
            }
            if first {
                self.tcp_probes.forget();
            }
            let asked = self.first_open.map_or(Duration::ZERO, |t| now.since(t));
            if asked > self.detect_time() && self.tcp_probes.vouched().is_none() {
                if asked >= CONTROL {
                    self.tcp_probes.in_vain(now);
                    self.close_all();
                }
                return None;
            }
        }
        let to = self.tcp_probes.ask(now)?;
        self.opens(now);
        let number = self.send(now, true);
        Some(TcpProbe { number, to, first })
    }

    /// The number of a question that is asked in place of another path.
    pub(in super::super) fn send_control_probe(&mut self, now: Time) -> u32 {
        self.send(now, true)
    }

    pub(super) fn tcp_probe_due(&self, busy: bool) -> Time {
        match self.silent {
            _ if self.answers => Time::MAX,
            Some(since) if busy => self.tcp_probes.due_back(since, self.in_a_row > 0),
            None if self.sample.subflows > 0 => {
                let life = self.life.max(self.floor);
                self.tcp_probes
                    .due(life, self.detect_time(), self.tcp_probing())
            }
            _ => Time::MAX,
        }
    }

    /// The last sign of life on a path that carries, if any.
    pub(in super::super) fn carries(&self) -> Option<Time> {
        (self.silent.is_none() && self.sample.subflows > 0).then_some(self.tcp_life)
    }
}
