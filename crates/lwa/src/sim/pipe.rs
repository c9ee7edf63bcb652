//! One direction of a simulated link.

use std::time::Duration;

use braid_core::seed::{self, Rng};
use braid_core::{Rate, Time};
use rand::RngExt;

/// Settings of a one-way link.
#[derive(Clone, Debug)]
pub(super) struct PipeConfig {
    pub(super) rate: Rate,
    pub(super) delay: Duration,
    /// Each frame is later by up to so much, so that frames overtake each other.
    pub(super) jitter: Duration,
    pub(super) loss: f64,
    pub(super) copies: f64,
    /// Nothing arrives that is sent between these.
    pub(super) outages: Vec<(Time, Time)>,
    /// Frames that wait in the link's queue, as a time at its rate.
    pub(super) queue: Duration,
    /// The rate is multiplied by a number between this and one, drawn every 50 ms.
    pub(super) slowest: f64,
}

#[derive(Debug)]
pub(super) struct Pipe {
    config: PipeConfig,
    seed: u64,
    rng: Rng,
    busy_until: Time,
}

impl Pipe {
    pub(super) fn new(config: PipeConfig, seed: u64) -> Self {
        let rng = seed::stream(seed, "frames");
        Pipe {
            config,
            seed,
            rng,
            busy_until: Time::ZERO,
        }
    }

    pub(super) fn has_room(&self, now: Time) -> bool {
        self.busy_until.since(now) < self.config.queue
    }

    pub(super) fn room_at(&self, now: Time) -> Time {
        let at = self.busy_until - self.config.queue + Duration::from_nanos(1);
        at.max(now + Duration::from_nanos(1))
    }

    /// Rate at `at`: the same for a seed, whatever was sent.
    pub(super) fn rate(&self, at: Time) -> Rate {
        if self.config.slowest >= 1.0 {
            return self.config.rate;
        }
        let slot = at.as_nanos() / 50_000_000;
        let mut rng = seed::stream(self.seed ^ slot.wrapping_mul(0x9e37_79b9_7f4a_7c15), "rate");
        let part: f64 = rng.random();
        let slowest = self.config.slowest;
        self.config.rate.scaled(slowest + (1.0 - slowest) * part)
    }

    /// Sends a frame of `bytes`: when it arrives, and its copies.
    pub(super) fn send(&mut self, now: Time, bytes: usize) -> Vec<Time> {
        let start = self.busy_until.max(now);
        let bytes = bytes as u64 + 28;
        self.busy_until = start + self.rate(start).time_for(bytes).unwrap_or_default();
        let c = &self.config;
        let away = c.outages.iter().any(|o| o.0 <= now && now < o.1);
        let lost = self.rng.random::<f64>() < c.loss;
        let copied = self.rng.random::<f64>() < c.copies;
        let count = if away || lost {
            0
        } else {
            1 + usize::from(copied)
        };
        (0..count)
            .map(|_| {
                let late = c.jitter.mul_f64(self.rng.random());
                self.busy_until + c.delay + late
            })
            .collect()
    }
}
