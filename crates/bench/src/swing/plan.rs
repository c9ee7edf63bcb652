//! Pairs of links whose rate swings, and the runs over them.

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use braid_radio::swing::SwingingLink;
use toml::{Table, Value};

use crate::text;

/// Accesses of every pair.
pub(super) const ACCESSES: [&str; 2] = ["a", "b"];
const WARMUP: Duration = Duration::from_secs(2);
const MEASURED: Duration = Duration::from_secs(15);
/// Bulk over recorded drives.
const DRIVEN: Duration = Duration::from_secs(30);

/// An engine that is compared with itself, or with what stands for it, on either path alone.
pub(super) struct Engine {
    pub(super) name: &'static str,
    pub(super) slug: &'static str,
    /// Name of the case on one path, before ` on ACCESS`.
    pub(super) alone: &'static str,
    engine: &'static str,
    keys: &'static [(&'static str, &'static str)],
}

/// Engines that are compared.
pub(super) const ENGINES: [Engine; 3] = [
    Engine {
        name: "MPTCP",
        slug: "mptcp",
        alone: "TCP",
        engine: "mptcp",
        keys: &[],
    },
    Engine {
        name: "MP-QUIC datagram",
        slug: "datagram",
        alone: "QUIC datagram",
        engine: "mpquic",
        keys: &[("lane", "datagram")],
    },
    Engine {
        name: "MP-QUIC stream",
        slug: "stream",
        alone: "QUIC stream",
        engine: "mpquic",
        keys: &[("lane", "stream")],
    },
];

/// Cases of every pair.
#[derive(Debug, Default)]
pub(super) struct Cases<'a> {
    /// Congestion control, instead of the engines' own.
    pub(super) cc: Option<&'a str>,
    /// Slugs of the engines that are compared; empty: all.
    pub(super) only: &'a [String],
}

impl Cases<'_> {
    /// Whether these are what the bars ask for: every engine as it is by itself.
    pub(super) fn are_all(&self) -> bool {
        self.cc.is_none() && self.only.is_empty()
    }

    /// Returns the name of the run over `links`.
    pub(super) fn name(&self, links: &str) -> String {
        let only = self.only.iter().map(String::as_str);
        let parts = [links].into_iter().chain(self.cc).chain(only);
        parts.collect::<Vec<_>>().join("-")
    }

    fn tables(&self) -> impl Iterator<Item = Table> {
        let wanted = |e: &&Engine| self.only.is_empty() || self.only.iter().any(|o| o == e.slug);
        let all = ENGINES.iter().filter(wanted).flat_map(Engine::cases);
        all.map(|mut case| {
            if let Some(cc) = self.cc {
                case.insert("cc".into(), cc.into());
            }
            case
        })
    }
}

/// Returns a table of texts.
fn texts(keys: &[(&str, &str)]) -> Table {
    let of = |(k, v): &(&str, &str)| ((*k).to_owned(), Value::from(*v));
    keys.iter().map(of).collect()
}

/// Returns an access of these links.
fn access(down: Table, up: Table) -> Table {
    let mut access = texts(&[("kind", "other")]);
    access.insert("down".into(), down.into());
    access.insert("up".into(), up.into());
    access
}

impl Engine {
    /// The case over both paths, then those over one.
    fn cases(&self) -> impl Iterator<Item = Table> {
        let keys = || texts(self.keys);
        let on = move |access: &&str| {
            let name = format!("{} on {access}", self.alone);
            if self.engine == "mptcp" {
                return text::bulk(&name, "tcp", texts(&[("access", access)]));
            }
            let mut keys = keys();
            keys.insert("accesses".into(), vec![Value::from(*access)].into());
            text::bulk(&name, self.engine, keys)
        };
        [text::bulk(self.name, self.engine, keys())]
            .into_iter()
            .chain(ACCESSES.iter().map(on))
    }
}

fn begin(name: &str, seed: u32, measured: Duration) -> Table {
    let mut table = Table::new();
    table.insert("name".into(), name.into());
    table.insert("seed".into(), i64::from(seed).into());
    text::set_length(&mut table, WARMUP, measured);
    table
}

fn finish(mut table: Table, links: [Table; 2], cases: &Cases<'_>) -> Result<String> {
    let accesses = ACCESSES.into_iter().map(str::to_owned);
    let accesses: Table = accesses.zip(links.map(Value::Table)).collect();
    table.insert("access".into(), accesses.into());
    for case in cases.tables() {
        text::push(&mut table, "case", case);
    }
    text::to_text(&table)
}

/// Returns the scenario of a drive in a file of the format `paired`: 10 ms and 25 ms one way, and
/// 80 ms of queue.
pub(super) fn drive(trace: &str, cases: &Cases<'_>) -> Result<String> {
    let link = |(column, delay): (&str, &str)| -> Table {
        let down = [
            ("trace", trace),
            ("format", "paired"),
            ("column", column),
            ("delay", delay),
            ("queue", "80 ms"),
        ];
        let up = [("rate", "50 Mbit/s"), ("delay", delay), ("queue", "80 ms")];
        access(texts(&down), texts(&up))
    };
    let links = [("nr", "10 ms"), ("lte", "25 ms")].map(link);
    finish(begin("swing-drive", 1, DRIVEN), links, cases)
}

/// Returns the link as scenarios have it.
fn table(link: &SwingingLink) -> Table {
    let step = |(at, mbps): &(u64, f64)| {
        let step = [format!("{at} ms"), format!("{mbps:.3} Mbit/s")];
        Value::from(step.map(Value::from).to_vec())
    };
    let mut down = Table::new();
    let rates: Vec<Value> = link.rates.iter().map(step).collect();
    down.insert("rate".into(), rates.into());
    down.insert("loss".into(), link.loss.into());
    let mut up = Table::new();
    let rate = format!("{:.3} Mbit/s", link.uplink());
    up.insert("rate".into(), rate.into());
    for way in [&mut down, &mut up] {
        way.insert("delay".into(), format!("{:.3} ms", link.delay).into());
        way.insert("queue".into(), format!("{:.0} ms", link.queue).into());
    }
    access(down, up)
}

/// A random pair.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Random {
    seed: u32,
    links: [SwingingLink; 2],
}

impl Random {
    pub(super) fn draw(seed: u32) -> Self {
        let links = ACCESSES.map(|name| SwingingLink::draw(seed.into(), name, WARMUP + MEASURED));
        Self { seed, links }
    }

    pub(super) fn scenario(&self, cases: &Cases<'_>) -> Result<String> {
        let mut all = begin("swing", self.seed, MEASURED);
        let links = ACCESSES.iter().zip(&self.links);
        for (access, (begin, end)) in links.filter_map(|(a, l)| Some((a, l.outage?))) {
            for (at, set) in [(begin, "blackhole"), (end, "up")] {
                let at = format!("{at} ms");
                let event = texts(&[("at", &at), ("access", access), ("set", set)]);
                text::push(&mut all, "event", event);
            }
        }
        finish(all, [table(&self.links[0]), table(&self.links[1])], cases)
    }
}

impl fmt::Display for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} + {}", self.links[0], self.links[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_and_a_congestion_control_can_be_chosen() {
        let only = ["mptcp".to_owned()];
        let cases = Cases {
            cc: Some("swing"),
            only: &only,
        };
        assert!(!cases.are_all() && Cases::default().are_all());
        assert_eq!(cases.name("pair-0001"), "pair-0001-swing-mptcp");
        let dir = tempfile::tempdir().unwrap();
        let text = Random::draw(1).scenario(&cases).unwrap();
        let s = text::parse_in(dir.path(), &text).unwrap();
        let names: Vec<_> = s.cases.iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["MPTCP", "TCP on a", "TCP on b"]);
        assert!(s.cases.iter().all(|c| c.cc.as_deref() == Some("swing")));
    }

    #[test]
    fn every_plan_is_a_scenario() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("d"), "1.0 361 32.0\n2.0 703 44.5\n").unwrap();
        let cases = |text: Result<String>| {
            let s = text::parse_in(dir.path(), &text.unwrap()).unwrap();
            let names = s.cases.iter().map(|c| c.name.clone());
            names.collect::<Vec<_>>()
        };
        let every = Cases::default();
        let names = cases(drive("d", &every));
        assert_eq!(names.len(), 9);
        for engine in &ENGINES {
            assert!(names.contains(&engine.name.to_owned()), "{names:?}");
            for access in ACCESSES {
                assert!(names.contains(&format!("{} on {access}", engine.alone)));
            }
        }
        for seed in 0..100 {
            let random = Random::draw(seed).scenario(&every);
            assert_eq!(cases(random), names, "seed {seed}");
        }
    }
}
