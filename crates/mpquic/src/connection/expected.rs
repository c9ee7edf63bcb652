//! What paths are expected to carry before anything was sent on them: the device knows of
//! its accesses, and tells the proxy, which sends most.

use braid_core::Rate;
use noq_proto::PathId;

use super::Connection;
use crate::congestion::Jump;
use crate::lane::Expectation;

/// Words about paths that are not here yet, at most: as many as there are paths.
const MOST: usize = 64;

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

    /// What the peer has told of it.
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

    /// What is expected of a path has changed: counts while the path is fresh.
    pub(super) fn expect_anew(&mut self, id: PathId) {
        let path = self.paths.iter().find(|p| p.id == id);
        let Some(slot) = path.filter(|p| p.established).map(|p| p.slot) else {
            return;
        };
        let jump = self.expected_jump(id);
        let mut slots = self.shared.lock();
        let slot = &mut slots[slot];
        match jump {
            Some(jump) if slot.slow_start && slot.lost == 0 => slot.resume(jump),
            _ => slot.stay(),
        }
    }

    /// What a path begins with by that.
    pub(super) fn expected_jump(&self, id: PathId) -> Option<Jump> {
        let path = self.paths.iter().find(|p| p.id == id)?;
        let own = path.access.and_then(|i| self.accesses[i].expected.up);
        let heard = |e: Expectation| (e.rate > 0).then_some(e.rate);
        let rate = match self.is_client() {
            true => own.map(bytes),
            false => path.expected.and_then(heard),
        };
        Jump::to(rate? as f64, self.quic.rtt(id)?)
    }

    /// The paths of an access.
    pub(super) fn ids_of(&self, access: usize) -> Vec<PathId> {
        let mine = self.paths.iter().filter(|p| p.access == Some(access));
        mine.map(|p| p.id).collect()
    }
}
