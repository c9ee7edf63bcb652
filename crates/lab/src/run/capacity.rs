//! Capacity of the accesses of a case over its time, from its links and events alone: the same
//! model as the emulator's, in which nothing is sent.

use std::collections::BTreeMap;
use std::time::Duration;

use braid_core::Time;
use braid_radio::model::{DropCause, LinkId, Network, Sink, Span};

use super::sampler::data_links;
use crate::scenario::Case;

/// Capacity of each access in the direction of the measured data.
pub(super) struct Capacities {
    network: Network,
    links: BTreeMap<String, Vec<LinkId>>,
}

impl Capacities {
    /// Builds the links of `case` with all its events. Accesses that share a medium or a line
    /// are left out: none of them has a capacity of its own.
    pub(super) fn new(case: &Case) -> Self {
        let mut network = Network::new(0);
        let mut links = BTreeMap::new();
        for a in &case.accesses {
            if a.medium.is_some() || a.backhaul.is_some() {
                continue;
            }
            for (way, spec) in [("down", &a.down), ("up", &a.up)] {
                network.add_link(&format!("{}.{way}", a.name), spec);
            }
            let names = data_links(&a.name, case.traffic.direction());
            let mine = names.iter().filter_map(|n| network.link(n));
            links.insert(a.name.clone(), mine.collect());
        }
        for event in &case.events {
            let (down, up) = event.action.link_changes();
            for (changes, way) in [(down, "down"), (up, "up")] {
                let Some(link) = network.link(&format!("{}.{way}", event.access)) else {
                    continue;
                };
                for change in changes {
                    network.apply(link, event.at.into(), &change, &mut Nothing);
                }
            }
        }
        Self { network, links }
    }

    /// Returns the mean rate that an access could carry between two times since the start of
    /// the case, IP layer, Mbit/s; `None` where it has no limit of its own.
    pub(super) fn mean_mbps(&self, access: &str, from: Duration, to: Duration) -> Option<f64> {
        let seconds = to.saturating_sub(from).as_secs_f64();
        let links = self.links.get(access)?;
        let (from, to): (Time, Time) = (from.into(), to.into());
        let bits = links
            .iter()
            .map(|l| self.network.capacity_bits(*l, from, to));
        let mbps = bits.sum::<f64>() / seconds / 1e6;
        (seconds > 0.0 && mbps.is_finite()).then_some(mbps)
    }
}

/// Sink of links on which nothing is sent.
struct Nothing;

impl Sink for Nothing {
    fn deliver(&mut self, _: Time, _: Span) {}
    fn discard(&mut self, _: Span, _: DropCause) {}
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::scenario::{Action, Overrides, Scenario};

    #[test]
    fn the_walk_without_an_operator_has_the_capacity_of_its_trace() {
        let s = Scenario::load("walk-auto", &Overrides::default()).unwrap();
        let trace = include_str!("../../../../scenarios/traces/walk.csv");
        let rows = trace.lines().filter_map(|l| {
            let mut fields = l.split(',').map(str::parse::<f64>);
            Some([
                fields.next()?.ok()?,
                fields.next()?.ok()?,
                fields.next()?.ok()?,
            ])
        });
        let measured: Vec<_> = rows.filter(|r| r[0] >= 2.0).collect();
        assert_eq!(measured.len(), 248);
        for case in &s.cases {
            let capacities = Capacities::new(case);
            for (i, access) in [(1, "nr"), (2, "wifi")] {
                let mean = measured.iter().map(|r| r[i]).sum::<f64>() / 248.0;
                let found = capacities
                    .mean_mbps(access, case.warmup, case.duration)
                    .unwrap();
                assert!((found - mean).abs() < 1e-6, "{}: {found} {mean}", case.name);
            }
            // The operator is there in one case, and the policies were told nothing.
            let weights = case
                .events
                .iter()
                .filter(|e| matches!(e.action, Action::Weights(_)));
            let operator = case.name.ends_with("of the operator");
            assert_eq!(
                weights.count(),
                if operator { 20 } else { 0 },
                "{}",
                case.name
            );
            assert!(
                !(case.policy.decides() && case.weights.is_some()),
                "{}",
                case.name
            );
        }
        assert_eq!(s.cases.iter().filter(|c| c.policy.decides()).count(), 4);
    }

    #[test]
    fn capacity_follows_traces_events_and_outages() {
        let text = r#"
name = "t"
duration = "10 s"
[access.a]
kind = "5g"
down = { rate = [["0 s", "100 Mbit/s"], ["4 s", "10 Mbit/s"]] }
up = { rate = "7 Mbit/s" }
[access.b]
kind = "wifi"
down = { rate = "40 Mbit/s" }
[access.c]
kind = "lte"
backhaul = "line"
[backhaul.line]
down = { rate = "40 Mbit/s" }
[[event]]
at = "2 s"
access = "b"
set = "blackhole"
[[event]]
at = "3 s"
access = "b"
set = "up"
[[event]]
at = "5 s"
access = "b"
set = { rate = "8 Mbit/s" }
direction = "down"
[[case]]
name = "down"
engine = "mptcp"
traffic = "bulk"
[[case]]
name = "both"
engine = "mptcp"
traffic = { kind = "bulk", direction = "both" }
"#;
        let (origin, here) = (Path::new("t.toml"), Path::new("."));
        let s = Scenario::parse(text, origin, here, &Overrides::default()).unwrap();
        let mean = |case: usize, access: &str, from: u64, to: u64| {
            let ms = Duration::from_millis;
            Capacities::new(&s.cases[case]).mean_mbps(access, ms(from), ms(to))
        };
        assert_eq!(mean(0, "a", 0, 100), Some(100.0));
        assert_eq!(mean(0, "a", 3_500, 4_500), Some(55.0));
        assert_eq!(mean(0, "b", 1_500, 2_500), Some(20.0));
        assert_eq!(mean(0, "b", 2_100, 2_900), Some(0.0));
        assert_eq!(mean(0, "b", 4_000, 6_000), Some(24.0));
        assert_eq!(mean(1, "a", 5_000, 6_000), Some(17.0));
        // The uplink mirrors the downlink, and did not change.
        assert_eq!(mean(1, "b", 6_000, 7_000), Some(48.0));
        assert_eq!((mean(0, "c", 0, 100), mean(0, "a", 5, 5)), (None, None));
    }
}
