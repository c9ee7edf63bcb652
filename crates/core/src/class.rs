//! Classes of traffic, each with a steering of its own in each direction (ATSSS: steering mode and
//! its parameters, 3GPP TS 23.501 5.32.8, TS 24.193 6.1.3).
//!
//! Rules say which traffic is in which class ([`crate::rules`]). All classes share the paths of a
//! session, their congestion control and the accesses' roles.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::sched::{Thresholds, WrrMode};
use crate::weight;

/// Classes at most, the default among them.
pub const MAX_CLASSES: usize = 8;
/// Number of the class of what no rule puts into another.
pub const DEFAULT_NUMBER: u8 = 0;

/// Name of the mode of TS 23.501 for which there is `wrr`.
const LOAD_BALANCING: &str = "load-balancing";
/// Every mode.
pub const MODES: [&str; 10] = [
    "active-standby",
    "smallest-delay",
    LOAD_BALANCING,
    "priority-based",
    "redundant",
    "minrtt",
    "rr",
    "wrr",
    "blest",
    "ecf",
];
/// Modes that go by weights, and by an order.
const WEIGHTED: [&str; 2] = [LOAD_BALANCING, "wrr"];
const ORDERED: [&str; 2] = ["active-standby", "priority-based"];
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
    /// Greatest smoothed round-trip time of a path, milliseconds, 1 to 65535: one above carries
    /// nothing of the class while another is within.
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

    /// Returns the place of an access in the order of this class; `None` where it is that of the
    /// access.
    pub fn place(&self, access: &str) -> Option<u32> {
        let named = self.order.iter().position(|name| name == access);
        let place = u32::try_from(named.unwrap_or(self.order.len())).unwrap_or(u32::MAX);
        (!self.order.is_empty()).then_some(place)
    }

    /// Returns it with other names of accesses. Those without one are left out; where nobody would
    /// carry then, the shares are those of the accesses.
    #[must_use]
    pub fn renamed(&self, name: impl Fn(&str) -> Option<String>) -> Self {
        let weights = self.weights.iter();
        let weights = weights.filter_map(|(access, w)| Some((name(access)?, *w)));
        let mut new = Self {
            weights: weights.collect(),
            order: self.order.iter().filter_map(|n| name(n)).collect(),
            ..self.clone()
        };
        if !new.weights.values().any(|w| *w > 0.0) {
            new.weights.clear();
        }
        new
    }

    /// Lists the accesses that it names.
    pub fn accesses(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let weights = self.weights.keys().map(|name| ("weights", &**name));
        weights.chain(self.order.iter().map(|name| ("order", &**name)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::SCHEDULERS;

    fn read(text: &str) -> ClassSteering {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_is_wrong_with_a_steering_is_said_with_its_key() {
        for (text, key, words) in [
            (r#"{"mode": "fifo"}"#, "mode", "load-balancing"),
            (
                r#"{"mode": "minrtt", "weights": {"nr": 1}}"#,
                "weights",
                "minrtt has no weights: load-balancing and wrr have",
            ),
            (
                r#"{"mode": "wrr", "weights": {"nr": 0}}"#,
                "weights",
                "above 0",
            ),
            (
                r#"{"mode": "wrr", "weights": {"nr": -1}}"#,
                "weights",
                "0 to",
            ),
            (
                r#"{"mode": "wrr", "order": ["nr"]}"#,
                "order",
                "wrr has no order",
            ),
            (
                r#"{"mode": "active-standby", "order": ["nr", "nr"]}"#,
                "order",
                "\"nr\" is there twice",
            ),
            (
                r#"{"mode": "ecf", "wrr_mode": "strict"}"#,
                "wrr_mode",
                "no round robin",
            ),
            (
                r#"{"mode": "ecf", "max_rtt_ms": 0}"#,
                "max_rtt_ms",
                "1 to 65535",
            ),
            (
                r#"{"mode": "ecf", "max_loss_percent": 101}"#,
                "max_loss_percent",
                "up to 100",
            ),
        ] {
            let fault = read(text).check().unwrap_err();
            assert!(fault.key == key && fault.what.contains(words), "{fault:?}");
        }
        // Those of TS 23.501 first, and every scheduler.
        assert_eq!(MODES.len(), SCHEDULERS.len() + 1);
        for (name, _) in SCHEDULERS {
            let mode = format!(r#"{{"mode": "{name}", "max_rtt_ms": 80, "reinject": true}}"#);
            assert_eq!(read(&mode).check(), Ok(()));
            assert_eq!(read(&mode).scheduler(), *name);
        }
    }

    #[test]
    fn accesses_have_the_weights_and_places_of_the_class() {
        let balanced = read(r#"{"mode": "load-balancing", "weights": {"nr": 80, "wifi": 20}}"#);
        assert_eq!(balanced.check(), Ok(()));
        assert_eq!(balanced.scheduler(), "wrr");
        let weights = ["nr", "wifi", "lifi"].map(|n| balanced.weight(n));
        assert_eq!(weights, [Some(80.0), Some(20.0), Some(0.0)]);
        assert_eq!(balanced.place("nr"), None);
        let ordered = read(r#"{"mode": "priority-based", "order": ["wifi", "nr"]}"#);
        let places = ["nr", "wifi", "lifi"].map(|n| ordered.place(n));
        assert_eq!(places, [Some(1), Some(0), Some(2)]);
        assert_eq!(ordered.weight("nr"), None);
    }

    #[test]
    fn what_has_no_name_elsewhere_is_left_out() {
        let balanced = read(r#"{"mode": "wrr", "weights": {"nr": 1, "wifi": 0}}"#);
        let here = |only: &'static str| move |n: &str| (n == only).then(|| format!("car/{n}"));
        let weights = |only| balanced.renamed(here(only)).weights;
        assert_eq!(weights("nr"), [("car/nr".to_owned(), 1.0)].into());
        assert!(weights("wifi").is_empty(), "nobody would carry");
        let ordered = read(r#"{"mode": "active-standby", "order": ["wifi", "nr"]}"#);
        assert_eq!(ordered.renamed(here("nr")).order, ["car/nr"]);
    }

    #[test]
    fn a_class_keeps_its_number() {
        let numbers = |names: &str, before: &BTreeMap<String, u8>| {
            numbered(names.split(' ').filter(|n| !n.is_empty()), before)
        };
        let of = |all: &[(&str, u8)]| -> BTreeMap<String, u8> {
            all.iter()
                .map(|(name, n)| ((*name).to_owned(), *n))
                .collect()
        };
        let first = numbers("voice bulk", &BTreeMap::new());
        assert_eq!(first, of(&[("voice", 1), ("bulk", 2)]));
        let second = numbers("games bulk", &first);
        assert_eq!(second, of(&[("games", 3), ("bulk", 2)]));
        let full = numbers("a b c d e f g", &BTreeMap::new());
        assert_eq!(numbers("b c d e f g h", &full)["h"], 1);
        assert_eq!(numbers("a b c d e f g h", &full).len(), 7);
    }
}
