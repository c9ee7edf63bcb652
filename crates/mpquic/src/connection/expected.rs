//! Rates that paths are expected to carry before anything was sent on them: the device knows of
//! its accesses, and tells the proxy, which sends most.

use braid_core::Rate;
use noq_proto::PathId;

use super::Connection;
use crate::congestion::Jump;
use crate::lane::Expectation;

/// Words about paths that are not here yet, at most: as many as there are paths.
const MOST: usize = 64;

/// A path that has losses behind it begins anew when so many times as much is expected of it
/// as since it began: less is what congestion control finds by itself, and errors of what a
/// device measures.
const RISE: f64 = 1.25;

/// Bytes per second.
fn bytes(rate: Rate) -> u64 {
    rate.as_bps() / 8
}

impl Connection {
    /// Tells the peer what the path of an access may carry to this end, where that is known
    /// or `known` before.
    pub(super) fn tell_expected(&mut self, access: usize, known: bool) {
        let rate = self.accesses[access].expected.down.map(bytes);
        let device = self.is_client();
        let Some(lane) = self.lane.as_mut().filter(|_| device) else {
            return;
        };
        let Some(rate) = rate.or(known.then_some(0)) else {
            return;
        };
        for path in self.paths.iter().filter(|p| p.access == Some(access)) {
            lane.expect(path.id, rate);
        }
    }

    /// Takes the rates that the peer has told.
    pub(super) fn hear_expected(&mut self) {
        let news = match &mut self.lane {
            Some(lane) => lane.expected(),
            None => return,
        };
        // Of a device that is not known anything could be heard.
        if self.is_client() || !self.heeds {
            return;
        }
        for (id, news) in news {
            let path = self.paths.iter_mut().find(|p| p.id == id);
            let Some(path) = path else {
                news.join(&mut self.expected, id);
                // Numbers of paths only grow.
                if self.expected.len() > MOST {
                    self.expected.pop_first();
                }
                continue;
            };
            if path.expected.is_none_or(|e| e < news) {
                path.expected = Some(news);
                self.expect_anew(id);
            }
        }
    }

    /// Applies a change of the rate that is expected of a path: it counts while the path is fresh,
    /// and later where it rises.
    pub(super) fn expect_anew(&mut self, id: PathId) {
        let rate = self.expected_rate(id);
        let Some(path) = self.paths.iter_mut().find(|p| p.id == id) else {
            return;
        };
        if !path.established {
            return;
        }
        let rises = rate.zip(path.foreseen);
        let rises = rises.is_some_and(|(now, least)| now as f64 >= RISE * least as f64);
        let least = path.foreseen.filter(|_| !rises);
        path.foreseen = rate.map(|now| least.map_or(now, |l| l.min(now)));
        let slot = path.slot;
        let jump = self.expected_jump(id);
        let mut slots = self.shared.lock();
        let slot = &mut slots[slot];
        match (jump, rate) {
            (Some(jump), _) if slot.slow_start && slot.lost == 0 => slot.resume(jump),
            (_, Some(rate)) if rises => slot.renew(rate as f64),
            _ => slot.stay(),
        }
    }

    /// Returns the jump that a path begins with by what is expected of it.
    pub(super) fn expected_jump(&self, id: PathId) -> Option<Jump> {
        Jump::to(self.expected_rate(id)? as f64, self.quic.rtt(id)?)
    }

    /// Returns the rate expected of a path that this end sends on, bytes per second.
    pub(super) fn expected_rate(&self, id: PathId) -> Option<u64> {
        let path = self.paths.iter().find(|p| p.id == id)?;
        let own = path.access.and_then(|i| self.accesses[i].expected.up);
        let heard = |e: Expectation| (e.rate > 0).then_some(e.rate);
        match self.is_client() {
            true => own.map(bytes),
            false => path.expected.and_then(heard),
        }
    }

    /// The paths of an access.
    pub(super) fn ids_of(&self, access: usize) -> Vec<PathId> {
        let mine = self.paths.iter().filter(|p| p.access == Some(access));
        mine.map(|p| p.id).collect()
    }
}
