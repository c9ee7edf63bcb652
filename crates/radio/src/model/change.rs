//! Changes of a link while it runs, and what it could carry through them.

use std::sync::Arc;

use braid_core::Time;

use super::link::{Link, codel};
use super::rate::{Capacity, Server};
use super::spec::{InFlight, LinkChange, QueueSpec};
use super::train::{DropCause, Sink};

impl Link {
    /// Applies `change`; everything due by `now` must have been delivered.
    pub(super) fn apply(&mut self, now: Time, change: &LinkChange, sink: &mut dyn Sink) {
        self.commit(now, sink);
        match change {
            LinkChange::Rate(spec) => {
                self.server = Server::new(Arc::new(Capacity::new(spec)));
                // What waits in vain at the old rate begins now, not earlier.
                self.free = self.free.max(now);
                self.note_capacity(now);
            }
            LinkChange::Delay(spec) => self.delay.set_delay(spec),
            LinkChange::Jitter(jitter) => self.delay.set_jitter(*jitter),
            LinkChange::Loss(spec) => self.loss.set(spec),
            LinkChange::Queue(spec) => self.set_queue(now, *spec, sink),
            LinkChange::Mtu(mtu) => self.mtu = *mtu,
            LinkChange::Down => self.down(now, sink),
            LinkChange::Up => self.back_up(now),
        }
        self.commit(now, sink);
    }

    fn set_queue(&mut self, now: Time, spec: QueueSpec, sink: &mut dyn Sink) {
        self.limit = spec;
        self.codel = codel(spec);
        let (limit, ahead) = (self.limit_at(now), self.service.waiting(now));
        let stats = &mut self.stats;
        self.queue.trim(limit, ahead, |w| {
            stats.discard(w.span(), DropCause::QueueFull, sink);
        });
    }

    fn down(&mut self, now: Time, sink: &mut dyn Sink) {
        if !self.up {
            return;
        }
        self.up = false;
        self.note_capacity(now);
        if self.outage == InFlight::Held {
            return;
        }
        let mut lose = |span| self.stats.discard(span, DropCause::LinkDown, sink);
        while let Some(f) = self.line.pop() {
            lose(f.span);
        }
        while let Some(w) = self.taken.pop_front() {
            lose(w.span());
        }
        while let Some(w) = self.queue.pop(u32::MAX) {
            lose(w.span());
        }
        // Nothing is being served any more.
        self.service.end = now;
        self.free = now;
    }

    fn back_up(&mut self, now: Time) {
        if self.up {
            return;
        }
        self.up = true;
        self.free = self.free.max(now);
        self.server.idle();
        self.note_capacity(now);
    }

    fn note_capacity(&mut self, now: Time) {
        let capacity = self.up.then(|| Arc::clone(self.server.capacity()));
        match self.history.last_mut() {
            Some(last) if last.0 >= now => last.1 = capacity,
            _ => self.history.push((now, capacity)),
        }
    }

    /// Bits the link could carry from `from` until before `to`.
    pub(super) fn capacity_bits(&self, from: Time, to: Time) -> f64 {
        let ends = self.history.iter().skip(1).map(|&(t, _)| t);
        self.history
            .iter()
            .zip(ends.chain([Time::MAX]))
            .filter_map(|((start, capacity), end)| {
                let capacity = capacity.as_ref()?;
                Some(capacity.bits_between(from.max(*start), to.min(end)))
            })
            .sum()
    }
}
