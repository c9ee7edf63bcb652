//! A path that is asked by TCP, and one that is asked in place of another.

use std::net::IpAddr;
use std::time::Duration;

use braid_core::Time;

use super::super::knock::Knock;
use super::super::{ASK, EAGER, REST};
use super::Path;

/// How long the answer on another path is waited for: there may be a queue, and the kernel
/// repeats a SYN after a second.
const CONTROL: Duration = Duration::from_secs(2);

impl Path {
    /// Returns whether the path is being probed for liveness over TCP.
    pub(super) fn knocking(&self) -> bool {
        self.open > 0 && !self.answers && self.silent.is_none()
    }

    /// An answer came to `by`, which may have been asked in place of this one; says whether
    /// it was.
    pub(in super::super) fn heard(&mut self, by: IpAddr, number: u32, now: Time) -> bool {
        self.knocks.heard(by, number, now)
    }

    /// `by` was asked as well.
    pub(in super::super) fn controlled(&mut self, by: IpAddr, number: u32) {
        self.knocks.controlled(by, number);
    }

    /// The question by TCP to send, if one is due. `other` is when the liveliest other path
    /// had its last sign of life.
    pub(in super::super) fn knock(
        &mut self,
        now: Time,
        busy: bool,
        other: Option<Time>,
    ) -> Option<Knock> {
        if self.knock_due(busy) > now {
            return None;
        }
        let first = match self.silent {
            None => !self.knocking(),
            // Whoever answered on the other path may have gone since.
            Some(since) => now.since(since) > EAGER && self.in_a_row == 0,
        };
        if self.silent.is_none() {
            let carries = |t: Time| t > self.tcp_life + ASK / 2 && now.since(t) < REST;
            if !other.is_some_and(carries) {
                // Nobody to compare with: what was asked before counts no more.
                self.knocks.forget();
                self.close_all();
                return None;
            }
            if first {
                self.knocks.forget();
            }
            let asked = self.first_open.map_or(Duration::ZERO, |t| now.since(t));
            if asked > self.limit() && self.knocks.vouched().is_none() {
                if asked >= CONTROL {
                    self.knocks.in_vain(now);
                    self.close_all();
                }
                return None;
            }
        }
        let to = self.knocks.ask(now)?;
        self.opens(now);
        let number = self.send(now, true);
        Some(Knock { number, to, first })
    }

    /// The number of a question that is asked in place of another path.
    pub(in super::super) fn stand_in(&mut self, now: Time) -> u32 {
        self.send(now, true)
    }

    pub(super) fn knock_due(&self, busy: bool) -> Time {
        match self.silent {
            _ if self.answers => Time::MAX,
            Some(since) if busy => self.knocks.due_back(since, self.in_a_row > 0),
            None if self.sample.subflows > 0 => {
                let life = self.life.max(self.floor);
                self.knocks.due(life, self.limit(), self.knocking())
            }
            _ => Time::MAX,
        }
    }

    /// The last sign of life on a path that carries, if any.
    pub(in super::super) fn carries(&self) -> Option<Time> {
        (self.silent.is_none() && self.sample.subflows > 0).then_some(self.tcp_life)
    }
}
