//! Classes of traffic, each with a steering of its own in each direction (ATSSS: steering mode and
//! its parameters, 3GPP TS 23.501 5.32.8, TS 24.193 6.1.3).
//!
//! Rules say which traffic is in which class ([`crate::rules`]). All classes share the paths of a
//! session, their congestion control and the accesses' roles.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::sched::{Redundant, Scheduler, Thresholds, WrrMode, by_name};
use crate::weight;

/// Classes at most, the default among them.
pub const MAX_CLASSES: usize = 8;
/// Number of the class of what no rule puts into another.
pub const DEFAULT_NUMBER: u8 = 0;

/// Name of the mode of TS 23.501 for which there is `wrr`.
const LOAD_BALANCING: &str = "load-balancing";
/// Every mode.
pub const MODES: [&str; 10] = [
    ACTIVE_STANDBY,
    "smallest-delay",
    LOAD_BALANCING,
    "priority-based",
    REDUNDANT,
    "minrtt",
    "rr",
    "wrr",
    "blest",
    "ecf",
];
/// Mode that may have a primary access.
const REDUNDANT: &str = "redundant";
/// Mode that may be without a standby.
const ACTIVE_STANDBY: &str = "active-standby";
/// Modes that go by weights, and by an order.
const WEIGHTED: [&str; 2] = [LOAD_BALANCING, "wrr"];
const ORDERED: [&str; 2] = [ACTIVE_STANDBY, "priority-based"];
/// Greatest round-trip time of a threshold, milliseconds: TS 24.193 has two bytes.
const MAX_RTT_MS: u32 = 65_535;

/// Steering of one class in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassSteering {
    /// Steering mode: one of [`MODES`]. `load-balancing` is the scheduler `wrr`.
    pub mode: String,
    /// Treatment of full windows by round robin; absent: work-conserving.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrr_mode: Option<WrrMode>,
    /// Shares by access, 0 or more; an access that is not named has 0. Empty: those of the accesses.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, f64>,
    /// Accesses in the order of priority; those that are not named come last. Empty: the order of the
    /// accesses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// Whether other accesses carry while the active one does not work; absent: yes. Without a standby,
    /// `order` names the active access alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standby: Option<bool>,
    /// Access of `redundant` on which every packet leaves; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<String>,
    /// Greatest smoothed round-trip time of a path, milliseconds, 1 to 65535: one above carries
    /// nothing of the class while another is within. With `redundant`, it says when copies are made
    /// ([`Redundant`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rtt_ms: Option<u32>,
    /// Greatest share of packets lost on a path, percent, above 0 and up to 100; as `max_rtt_ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_loss_percent: Option<f64>,
    /// Send again on a faster path what holds the receiver up, while nothing else waits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reinject: bool,
}

/// Fault of a steering: the key, and what is wrong with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Key.
    pub key: &'static str,
    /// Description, in words.
    pub what: String,
}

impl ClassSteering {
    /// Returns the name of the packet scheduler.
    pub fn scheduler(&self) -> &str {
        match &*self.mode {
            LOAD_BALANCING => "wrr",
            other => other,
        }
    }

    /// Makes the packet scheduler; `None` where nobody knows the mode.
    pub fn make(&self) -> Option<Box<dyn Scheduler>> {
        match &*self.mode {
            REDUNDANT => Some(Box::new(Redundant {
                primary: self.primary.is_some(),
                thresholds: !self.thresholds().is_empty(),
            })),
            _ => by_name(self.scheduler(), self.round_robin()),
        }
    }

    /// Whether paths above the thresholds carry nothing. `redundant` goes by them otherwise.
    pub fn leaves_out(&self) -> bool {
        self.mode != REDUNDANT
    }

    /// Whether the first access of the order carries and no other, whatever happens.
    pub fn is_confined(&self) -> bool {
        self.standby == Some(false)
    }

    /// Returns the treatment of full windows by round robin.
    pub fn round_robin(&self) -> WrrMode {
        self.wrr_mode.unwrap_or(WrrMode::WorkConserving)
    }

    /// Returns the thresholds.
    pub fn thresholds(&self) -> Thresholds {
        Thresholds {
            rtt: self.max_rtt_ms.map(|ms| Duration::from_millis(ms.into())),
            loss: self.max_loss_percent.map(|p| p / 100.0),
        }
    }

    /// Returns the weight of an access in this class; `None` where it is that of the access.
    pub fn weight(&self, access: &str) -> Option<f64> {
        let named = self.weights.get(access).copied();
        (!self.weights.is_empty()).then(|| named.unwrap_or(0.0))
    }

    /// Returns the place of an access in the order of this class, where a primary access is the first;
    /// `None` where it is that of the access.
    pub fn place(&self, access: &str) -> Option<u32> {
        if let Some(primary) = &self.primary {
            return Some((primary != access).into());
        }
        let named = self.order.iter().position(|name| name == access);
        let place = u32::try_from(named.unwrap_or(self.order.len())).unwrap_or(u32::MAX);
        (!self.order.is_empty()).then_some(place)
    }

    /// Returns it with other names of accesses. Those without one are left out; where nobody would
    /// carry then, the shares are those of the accesses. What is confined to an access without one, or
    /// has it as primary, keeps its name: no other access is to take its place.
    #[must_use]
    pub fn renamed(&self, name: impl Fn(&str) -> Option<String>) -> Self {
        let weights = self.weights.iter();
        let weights = weights.filter_map(|(access, w)| Some((name(access)?, *w)));
        let mut new = Self {
            weights: weights.collect(),
            order: self.order.iter().filter_map(|n| name(n)).collect(),
            primary: self.primary.as_ref().map(|n| name(n).unwrap_or(n.clone())),
            ..self.clone()
        };
        if new.order.is_empty() && self.is_confined() {
            new.order.clone_from(&self.order);
        }
        if !new.weights.values().any(|w| *w > 0.0) {
            new.weights.clear();
        }
        new
    }

    /// Lists the accesses that it names.
    pub fn accesses(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let weights = self.weights.keys().map(|name| ("weights", &**name));
        let order = self.order.iter().map(|name| ("order", &**name));
        let primary = self.primary.iter().map(|name| ("primary", &**name));
        weights.chain(order).chain(primary)
    }

    /// Checks what can be told without the accesses.
    ///
    /// # Errors
    /// The first fault.
    pub fn check(&self) -> Result<(), Fault> {
        let fault = |key, what: String| Err(Fault { key, what });
        let mode = &*self.mode;
        if !MODES.contains(&mode) {
            let known = MODES.join(", ");
            return fault(
                "mode",
                format!("unknown mode \"{mode}\": there are {known}"),
            );
        }
        let has = |modes: &[&str]| modes.contains(&mode);
        if !self.weights.is_empty() && !has(&WEIGHTED) {
            let what = format!("{mode} has no weights: {} have", WEIGHTED.join(" and "));
            return fault("weights", what);
        }
        if self.wrr_mode.is_some() && !has(&WEIGHTED) && mode != "rr" {
            return fault("wrr_mode", format!("{mode} is no round robin"));
        }
        if !self.order.is_empty() && !has(&ORDERED) {
            let what = format!("{mode} has no order: {} have", ORDERED.join(" and "));
            return fault("order", what);
        }
        if self.standby.is_some() && mode != ACTIVE_STANDBY {
            let what = format!("{mode} has no standby: {ACTIVE_STANDBY} has");
            return fault("standby", what);
        }
        if self.is_confined() && self.order.len() != 1 {
            let what = "without a standby one access carries: expected its name alone in `order`";
            return fault("standby", what.into());
        }
        if self.primary.is_some() && mode != REDUNDANT {
            let what = format!("{mode} has no primary access: {REDUNDANT} has");
            return fault("primary", what);
        }
        let mut weights = self.weights.iter();
        if let Err(what) = weights.try_for_each(|(name, w)| weight::check(name, *w)) {
            return fault("weights", what);
        }
        if let Err(what) = weight::check_all(self.weights.values().copied()) {
            return fault("weights", what);
        }
        let twice = |(i, name): &(usize, &String)| self.order[..*i].contains(name);
        if let Some((_, name)) = self.order.iter().enumerate().find(twice) {
            return fault("order", format!("\"{name}\" is there twice"));
        }
        if let Some(ms) = self.max_rtt_ms.filter(|ms| !(1..=MAX_RTT_MS).contains(ms)) {
            let what = format!("{ms}: expected milliseconds, 1 to {MAX_RTT_MS}");
            return fault("max_rtt_ms", what);
        }
        let share = |p: &f64| *p > 0.0 && *p <= 100.0;
        if let Some(p) = self.max_loss_percent.filter(|p| !share(p)) {
            let what = format!("{p}: expected percent, above 0 and up to 100");
            return fault("max_loss_percent", what);
        }
        Ok(())
    }
}

/// Numbers classes by their names, 1 to 7. A name that had a number before keeps it: traffic under
/// way goes by numbers. Names beyond the seventh get none.
pub fn numbered<'a>(
    names: impl Iterator<Item = &'a str> + Clone,
    before: &BTreeMap<String, u8>,
) -> BTreeMap<String, u8> {
    let kept = names.clone().filter_map(|name| {
        let number = before.get(name)?;
        Some((name.to_owned(), *number))
    });
    let mut all: BTreeMap<String, u8> = kept.collect();
    for name in names {
        if all.contains_key(name) {
            continue;
        }
        let is_taken = |n: &u8| all.values().any(|taken| taken == n);
        // Numbers of classes that go now come last.
        let was = |n: &u8| before.values().any(|b| b == n);
        let every = || (1..MAX_CLASSES as u8).filter(|n| !is_taken(n));
        let Some(number) = every().find(|n| !was(n)).or_else(|| every().next()) else {
            break;
        };
        all.insert(name.to_owned(), number);
    }
    all
}
