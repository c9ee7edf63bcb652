//! Plan of the probes of one access: when the next one is due and what it may cost.

use std::collections::VecDeque;
use std::time::Duration;

use rand::RngExt;
use serde::{Deserialize, Serialize};

use crate::Time;
use crate::control::{Direction, PerDirection, ProbeResult, ProbeSettings, ProbeSpending};
use crate::seed;

/// Least remainder of a budget that is worth a probe: less passes within slow start on any
/// access above 10 Mbit/s, and says nothing.
pub const MIN_PROBE_BYTES: u64 = 1_000_000;

/// Share of the interval by which the next probe is early or late at most, so that devices
/// that began together do not stay together.
const JITTER: f64 = 0.2;

/// Latest first probe of an access that becomes usable. Weights wait for it.
const FIRST_WITHIN: Duration = Duration::from_secs(30);

/// Time after a probe's end at which its result is given up.
const RESULT_WITHIN: Duration = Duration::from_secs(10);

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);
const MONTH: Duration = Duration::from_secs(30 * 24 * 3600);

/// Order to run one probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeOrder {
    /// Name of the access.
    pub access: String,
    /// Direction of the data.
    pub direction: Direction,
    /// Parallel flows.
    pub flows: u32,
    /// Length of the transfer, milliseconds.
    pub duration_ms: u64,
    /// Bytes after which the transfer must stop, whatever its length.
    pub max_bytes: u64,
}

/// Plan of one access. One probe runs at a time.
#[derive(Debug)]
pub struct ProbePlan {
    access: String,
    settings: ProbeSettings,
    rng: seed::Rng,
    /// Next probe of each direction; absent while the access is not usable.
    due: Option<PerDirection<Time>>,
    /// Earliest next probe by what the last one cost.
    not_before: Time,
    running: Option<Running>,
    hour: Spending,
    day: Spending,
    month: Spending,
}

#[derive(Debug)]
struct Running {
    direction: Direction,
    max_bytes: u64,
    until: Time,
}

impl ProbePlan {
    /// Plans for `access`; `seed` is that of the device.
    pub fn new(seed: u64, access: &str, settings: ProbeSettings) -> Self {
        Self {
            access: access.to_owned(),
            settings,
            rng: seed::stream(seed, &format!("probe {access}")),
            due: None,
            not_before: Time::ZERO,
            running: None,
            hour: Spending::over(HOUR),
            day: Spending::over(DAY),
            month: Spending::over(MONTH),
        }
    }

    /// Takes over new settings; budgets remember what was spent.
    pub fn set_settings(&mut self, settings: ProbeSettings) {
        if settings.directions != self.settings.directions {
            self.due = None;
        }
        self.settings = settings;
    }

    /// Starts (true) or stops planning: an access that is off is not probed.
    pub fn set_usable(&mut self, now: Time, usable: bool) {
        if !usable {
            self.due = None;
        } else if self.due.is_none() {
            let within = self.interval().min(FIRST_WITHIN);
            let (rng, wanted) = (&mut self.rng, self.settings.directions);
            self.due = Some(PerDirection::from_fn(|d| {
                let first = now + within.mul_f64(rng.random::<f64>());
                match wanted.get(d) {
                    true => first,
                    false => Time::MAX,
                }
            }));
        }
    }

    /// Takes in what probes cost before this plan began.
    pub fn on_spending(&mut self, at: Time, spending: &ProbeSpending) {
        self.day.add(at, spending.day_bytes);
        self.month.add(at, spending.bytes);
    }

    /// Takes in the result of a probe. Results that were not ordered, or came late, count too.
    pub fn on_result(&mut self, at: Time, result: &ProbeResult) {
        let ordered = |r: &Running| r.direction == result.direction;
        if self.running.as_ref().is_some_and(ordered) {
            self.running = None;
        }
        self.charge(at, result.bytes);
    }

    fn charge(&mut self, at: Time, bytes: u64) {
        self.hour.add(at, bytes);
        self.day.add(at, bytes);
        self.month.add(at, bytes);
        // Spread over the hour: a budget spent in its first minutes leaves weights without
        // news for the rest. The budgets of day and month are not spread, they are limits.
        let share = bytes as f64 / self.settings.bytes_per_hour.max(1) as f64;
        self.not_before = at + HOUR.mul_f64(share.min(1.0));
    }

    /// Returns the bytes that probes may still move at `now`.
    pub fn remaining(&mut self, now: Time) -> u64 {
        let ProbeSettings {
            bytes_per_hour,
            bytes_per_day,
            bytes_per_month,
            ..
        } = self.settings;
        let hour = bytes_per_hour.saturating_sub(self.hour.total(now));
        let day = bytes_per_day.saturating_sub(self.day.total(now));
        let month = bytes_per_month.saturating_sub(self.month.total(now));
        hour.min(day).min(month)
    }

    /// Returns the moment of the next probe, budget permitting; `None` while the access is not
    /// usable, or no direction is wanted.
    pub fn due(&self) -> Option<Time> {
        let due = self.due.as_ref()?;
        let first = due.down.min(due.up);
        (first < Time::MAX).then(|| first.max(self.not_before))
    }

    /// Whether a probe runs at `now`.
    pub fn is_running(&self, now: Time) -> bool {
        self.running.as_ref().is_some_and(|r| r.until > now)
    }

    /// Orders the probe that is due at `now`, if one is and the budget allows it. While traffic
    /// fills the access (`full`), none is run: the traffic tells the capacity, a probe would have a
    /// share of it, and cost the traffic more than that. Acknowledgements share the other direction.
    pub fn next(&mut self, now: Time, full: bool) -> Option<ProbeOrder> {
        if let Some(running) = self.running.take_if(|r| r.until <= now) {
            // Without a result it may have moved all that it was allowed to.
            self.charge(now, running.max_bytes);
        }
        if self.is_running(now) || self.due()? > now {
            return None;
        }
        let max_bytes = self.remaining(now).min(self.settings.bytes_per_probe);
        if max_bytes < MIN_PROBE_BYTES {
            return None;
        }
        let due = self.due.as_ref()?;
        let direction = if due.down <= due.up {
            Direction::Down
        } else {
            Direction::Up
        };
        let factor = 1.0 + JITTER * (2.0 * self.rng.random::<f64>() - 1.0);
        let next = now + self.interval().mul_f64(factor);
        *self.due.as_mut()?.get_mut(direction) = next;
        if full {
            return None;
        }
        let duration = Duration::from_millis(self.settings.duration_ms);
        self.running = Some(Running {
            direction,
            max_bytes,
            until: now + duration + RESULT_WITHIN,
        });
        Some(ProbeOrder {
            access: self.access.clone(),
            direction,
            flows: self.settings.flows,
            duration_ms: self.settings.duration_ms,
            max_bytes,
        })
    }

    fn interval(&self) -> Duration {
        Duration::from_millis(self.settings.interval_ms)
    }
}

/// Bytes spent within a sliding window of time.
#[derive(Debug)]
pub struct Spending {
    window: Duration,
    entries: VecDeque<Entry>,
    total: u64,
}

/// Spending of a sixtieth of the window, which keeps the number of entries small. It leaves
/// the window with its last byte, so that no budget is exceeded.
#[derive(Debug)]
struct Entry {
    first: Time,
    last: Time,
    bytes: u64,
}

impl Spending {
    /// Begins without any; `window` is its length.
    pub fn over(window: Duration) -> Self {
        Self {
            window,
            entries: VecDeque::new(),
            total: 0,
        }
    }

    /// Adds bytes that were spent at `at`, which never goes back.
    pub fn add(&mut self, at: Time, bytes: u64) {
        self.total = self.total.saturating_add(bytes);
        let slice = self.window / 60;
        match self.entries.back_mut() {
            Some(e) if at.since(e.first) < slice => {
                e.last = e.last.max(at);
                e.bytes = e.bytes.saturating_add(bytes);
            }
            _ => self.entries.push_back(Entry {
                first: at,
                last: at,
                bytes,
            }),
        }
    }

    /// Returns the bytes that the window has at `now`.
    pub fn total(&mut self, now: Time) -> u64 {
        while let Some(e) = self.entries.front()
            && now.since(e.last) >= self.window
        {
            self.total = self.total.saturating_sub(e.bytes);
            self.entries.pop_front();
        }
        self.total
    }
}
