//! What paths are expected to carry before anything was sent on them: the device knows of
//! its accesses, and tells the proxy, which sends most.

use braid_core::Rate;
use noq_proto::PathId;

use super::Connection;
use crate::congestion::Jump;

/// Bytes per second.
fn bytes(rate: Rate) -> u64 {
    rate.as_bps() / 8
}

impl Connection {
    /// Tells the peer what the path of an access may carry to this end.
    pub(super) fn tell_expected(&mut self, access: usize) {
        let rate = self.accesses[access].expected.down.map(bytes);
        let device = self.is_client();
        let Some(lane) = self.lane.as_mut().filter(|_| device) else {
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
        for (id, rate) in news {
            let Some(path) = self.paths.iter_mut().find(|p| p.id == id) else {
                self.expected.insert(id, rate);
                continue;
            };
            path.expected = Some(rate);
            let slot = path.slot;
            if !path.established {
                continue;
            }
            let fresh = {
                let slot = &self.shared.lock()[slot];
                slot.slow_start && slot.lost == 0
            };
            if fresh && let Some(jump) = self.expected_jump(id) {
                self.shared.lock()[slot].resume(jump);
            }
        }
    }

    /// What a path begins with by that.
    pub(super) fn expected_jump(&self, id: PathId) -> Option<Jump> {
        let path = self.paths.iter().find(|p| p.id == id)?;
        let own = path.access.and_then(|i| self.accesses[i].expected.up);
        let rate = match self.is_client() {
            true => own.map(bytes),
            false => path.expected,
        };
        Jump::to(rate? as f64, self.quic.rtt(id)?)
    }
}
