//! Rate and delay of a link, from what was delivered when.
//!
//! A sample of the rate spans from the last delivery before a packet was sent to its own, as in
//! BBR (draft-cardwell-iccrg-bbr-congestion-control); the rate is the greatest of the last
//! 400 ms in which the link had a queue. Without a queue a sample says how much was sent, not how
//! much could be: it may only raise the rate.

use std::time::Duration;

use braid_core::{Rate, Time};

const BUCKET: Duration = Duration::from_millis(100);
const BUCKETS: usize = 4;
/// The shortest delay is measured anew after so long, with less in flight for a moment.
const MIN_VALID: Duration = Duration::from_secs(10);
const LONGEST_INTERVAL: Duration = Duration::from_millis(50);
const DRAIN: Duration = Duration::from_millis(200);

/// State of the link when a packet was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) bytes: u64,
    pub(super) at: Time,
    delivered: u64,
    delivered_at: Time,
    /// When the packet was sent whose delivery was the last then.
    sent_base: Time,
}

/// Estimates of one link.
#[derive(Debug, Default)]
pub(super) struct Flow {
    delivered: u64,
    delivered_at: Time,
    sent_base: Time,
    buckets: [u64; BUCKETS],
    bucket_since: Time,
    min_delay: Option<(Duration, Time)>,
    /// End of a measurement of the shortest delay, and the shortest so far in it.
    drain: Option<(Time, Option<Duration>)>,
    smoothed: Option<Duration>,
    /// Smoothed time between reports.
    interval: Duration,
}

impl Flow {
    /// A packet left; `idle` says that none was in flight.
    pub(super) fn sent(&mut self, now: Time, bytes: u64, idle: bool) -> Sample {
        if idle {
            self.delivered_at = now;
            self.sent_base = now;
        }
        Sample {
            bytes,
            at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            sent_base: self.sent_base,
        }
    }

    /// `bytes` were delivered.
    pub(super) fn delivered(&mut self, bytes: u64) {
        self.delivered += bytes;
    }

    /// The newest of what was delivered is `sample`.
    pub(super) fn measure(&mut self, now: Time, sample: &Sample) {
        let since_last = now.since(self.delivered_at).min(LONGEST_INTERVAL);
        self.interval = (self.interval * 7 + since_last) / 8;
        self.delivered_at = now;
        self.sent_base = sample.at;
        let delay = now.since(sample.at);
        self.smoothed = Some(self.smoothed.map_or(delay, |s| (s * 7 + delay) / 8));
        self.measure_delay(now, delay);
        let interval = (now.since(sample.delivered_at)).max(sample.at.since(sample.sent_base));
        if interval < Duration::from_micros(100) {
            return;
        }
        let bytes = self.delivered - sample.delivered;
        let bps = (bytes as f64 * 8.0 / interval.as_secs_f64()) as u64;
        let queued =
            (self.min_delay).is_some_and(|(min, _)| delay > min * 5 / 4 + Duration::from_millis(2));
        if queued && now.since(self.bucket_since) >= BUCKET {
            self.buckets.rotate_right(1);
            self.buckets[0] = 0;
            self.bucket_since = now;
        }
        if queued || bps > self.greatest() {
            self.buckets[0] = self.buckets[0].max(bps);
        }
    }

    fn measure_delay(&mut self, now: Time, delay: Duration) {
        if let Some((until, least)) = &mut self.drain {
            *least = Some(least.map_or(delay, |l| l.min(delay)));
            if now >= *until {
                self.min_delay = least.map(|l| (l, now));
                self.drain = None;
            }
            return;
        }
        match self.min_delay {
            Some((min, at)) if delay > min => {
                if now.since(at) > MIN_VALID {
                    self.drain = Some((now + DRAIN, None));
                }
            }
            _ => self.min_delay = Some((delay, now)),
        }
    }

    fn greatest(&self) -> u64 {
        self.buckets.iter().copied().max().unwrap_or(0)
    }

    /// Rate at which the link delivers while busy; none before it has shown one.
    pub(super) fn rate(&self) -> Option<Rate> {
        let bps = self.greatest();
        (bps > 0).then(|| Rate::from_bps(bps))
    }

    /// Shortest time from sending to the report of delivery.
    pub(super) fn min_delay(&self) -> Option<Duration> {
        self.min_delay.map(|m| m.0)
    }

    /// Smoothed time between reports while packets were in flight.
    pub(super) fn report_interval(&self) -> Duration {
        self.interval
    }

    /// Whether its shortest delay is being measured, with less in flight.
    pub(super) fn draining(&self) -> bool {
        self.drain.is_some()
    }

    /// Smoothed time from sending to the report of delivery.
    pub(super) fn smoothed_delay(&self) -> Option<Duration> {
        self.smoothed
    }
}
