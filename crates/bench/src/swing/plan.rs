//! Pairs of links whose rate swings, and the runs over them.

use std::fmt;
use std::time::Duration;

use anyhow::Result;
use braid_core::seed::{Rng, stream};
use rand::RngExt;
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
    /// Name of the case on one path, before ` on ACCESS`.
    pub(super) alone: &'static str,
    engine: &'static str,
    keys: &'static [(&'static str, &'static str)],
}

/// Engines with their defaults.
pub(super) const ENGINES: [Engine; 3] = [
    Engine {
        name: "MPTCP",
        alone: "TCP",
        engine: "mptcp",
        keys: &[],
    },
    Engine {
        name: "MP-QUIC datagram",
        alone: "QUIC datagram",
        engine: "mpquic",
        keys: &[("lane", "datagram")],
    },
    Engine {
        name: "MP-QUIC stream",
        alone: "QUIC stream",
        engine: "mpquic",
        keys: &[("lane", "stream")],
    },
];

impl Engine {
    /// The case over both paths, then those over one.
    fn cases(&self) -> impl Iterator<Item = Table> {
        let keys = || -> Table {
            let of = |(k, v): &(&str, &str)| ((*k).to_owned(), Value::from(*v));
            self.keys.iter().map(of).collect()
        };
        let on = move |access: &&str| {
            let name = format!("{} on {access}", self.alone);
            if self.engine == "mptcp" {
                let keys = [("access".to_owned(), Value::from(*access))];
                return text::bulk(&name, "tcp", keys.into_iter().collect());
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

fn finish(mut table: Table, links: [Table; 2]) -> Result<String> {
    let accesses = ACCESSES.into_iter().map(str::to_owned);
    let accesses: Table = accesses.zip(links.map(Value::Table)).collect();
    table.insert("access".into(), accesses.into());
    for mut case in ENGINES.iter().flat_map(Engine::cases) {
        case.insert("cc".into(), "cubic".into());
        text::push(&mut table, "case", case);
    }
    text::to_text(&table)
}

/// Returns the scenario of a drive in a file of the format `paired`: 10 ms and 25 ms one way, and
/// 80 ms of queue.
pub(super) fn drive(trace: &str) -> Result<String> {
    let link = |(column, delay): (&str, &str)| -> Table {
        let down = [
            ("trace", trace),
            ("format", "paired"),
            ("column", column),
            ("delay", delay),
            ("queue", "80 ms"),
        ];
        let up = [("rate", "50 Mbit/s"), ("delay", delay), ("queue", "80 ms")];
        let table = |keys: &[(&str, &str)]| -> Value {
            let of = |(k, v): &(&str, &str)| ((*k).to_owned(), Value::from(*v));
            Value::Table(keys.iter().map(of).collect())
        };
        Table::from_iter([
            ("kind".to_owned(), Value::from("other")),
            ("down".to_owned(), table(&down)),
            ("up".to_owned(), table(&up)),
        ])
    };
    let links = [("nr", "10 ms"), ("lte", "25 ms")].map(link);
    finish(begin("swing-drive", 1, DRIVEN), links)
}

/// A random pair.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Random {
    seed: u32,
    links: [Link; 2],
}

/// A link whose rate changes by up to ten times within a second.
#[derive(Clone, Debug, PartialEq)]
struct Link {
    /// Times from which on it has these rates, ms and Mbit/s.
    rates: Vec<(u64, f64)>,
    /// Middle of its rates, Mbit/s.
    middle: f64,
    /// One way, ms.
    delay: f64,
    /// Queue at the momentary rate, ms.
    queue: f64,
    /// Part of packets that is lost.
    loss: f64,
    /// When it is silent, ms.
    outage: Option<(u64, u64)>,
}

/// Draws between `a` and `b`, equally often in each octave.
fn log(rng: &mut Rng, a: f64, b: f64) -> f64 {
    a * (b / a).powf(rng.random::<f64>())
}

impl Link {
    fn draw(seed: u32, name: &str) -> Self {
        let rng = &mut stream(seed.into(), &format!("swing {name}"));
        let middle = log(rng, 3.0, 160.0);
        let end = (WARMUP + MEASURED).as_millis() as u64;
        let (mut at, mut rates) = (0, Vec::new());
        while at < end {
            let rate = log(rng, middle / 10f64.sqrt(), middle * 10f64.sqrt());
            rates.push((at, rate.clamp(1.0, 500.0)));
            at += log(rng, 100.0, 1000.0) as u64;
        }
        let delay = log(rng, 1.0, 150.0);
        let queue = log(rng, 20.0, 300.0);
        let lossy = rng.random_range(0..2) == 0;
        let loss = log(rng, 1e-5, 1e-2);
        let silent = rng.random_range(0..4) == 0;
        let (begin, length) = (log(rng, 4000.0, 12_000.0), log(rng, 300.0, 3000.0));
        Self {
            rates,
            middle,
            delay,
            queue,
            loss: if lossy { loss } else { 0.0 },
            outage: silent.then_some((begin as u64, (begin + length) as u64)),
        }
    }

    fn table(&self) -> Table {
        let step = |(at, mbps): &(u64, f64)| {
            let step = [format!("{at} ms"), format!("{mbps:.3} Mbit/s")];
            Value::from(step.map(Value::from).to_vec())
        };
        let mut down = Table::new();
        let rates: Vec<Value> = self.rates.iter().map(step).collect();
        down.insert("rate".into(), rates.into());
        down.insert("loss".into(), self.loss.into());
        let mut up = Table::new();
        let up_mbps = (self.middle / 5.0).max(2.0);
        up.insert("rate".into(), format!("{up_mbps:.3} Mbit/s").into());
        for link in [&mut down, &mut up] {
            link.insert("delay".into(), format!("{:.3} ms", self.delay).into());
            link.insert("queue".into(), format!("{:.0} ms", self.queue).into());
        }
        Table::from_iter([
            ("kind".to_owned(), Value::from("other")),
            ("down".to_owned(), down.into()),
            ("up".to_owned(), up.into()),
        ])
    }
}

impl Random {
    pub(super) fn draw(seed: u32) -> Self {
        let links = ACCESSES.map(|name| Link::draw(seed, name));
        Self { seed, links }
    }

    pub(super) fn scenario(&self) -> Result<String> {
        let mut table = begin("swing", self.seed, MEASURED);
        let links = ACCESSES.iter().zip(&self.links);
        for (access, (begin, end)) in links.filter_map(|(a, l)| Some((a, l.outage?))) {
            for (at, set) in [(begin, "blackhole"), (end, "up")] {
                let event = [
                    ("at", format!("{at} ms")),
                    ("access", (*access).to_owned()),
                    ("set", set.to_owned()),
                ];
                let event = event.map(|(k, v)| (k.to_owned(), Value::from(v)));
                text::push(&mut table, "event", event.into_iter().collect());
            }
        }
        finish(table, [self.links[0].table(), self.links[1].table()])
    }
}

impl fmt::Display for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, l) in self.links.iter().enumerate() {
            let plus = if i == 0 { "" } else { " + " };
            write!(f, "{plus}{:.0} Mbit/s, {:.0} ms", l.middle, l.delay)?;
            write!(f, ", queue {:.0} ms", l.queue)?;
            if l.loss > 0.0 {
                write!(f, ", loss {:.2} %", l.loss * 100.0)?;
            }
            if let Some((begin, end)) = l.outage {
                write!(f, ", silent {:.1} s", (end - begin) as f64 / 1e3)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_is_a_scenario() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("d"), "1.0 361 32.0\n2.0 703 44.5\n").unwrap();
        let cases = |text: Result<String>| {
            let s = text::parse_in(dir.path(), &text.unwrap()).unwrap();
            let names = s.cases.iter().map(|c| c.name.clone());
            names.collect::<Vec<_>>()
        };
        let names = cases(drive("d"));
        assert_eq!(names.len(), 9);
        for engine in &ENGINES {
            assert!(names.contains(&engine.name.to_owned()), "{names:?}");
            for access in ACCESSES {
                assert!(names.contains(&format!("{} on {access}", engine.alone)));
            }
        }
        for seed in 0..100 {
            assert_eq!(cases(Random::draw(seed).scenario()), names, "seed {seed}");
        }
    }

    #[test]
    fn draws_stay_within_what_was_asked() {
        let links: Vec<Link> = (0..1000).flat_map(|s| Random::draw(s).links).collect();
        for l in &links {
            let rates = || l.rates.iter().map(|r| r.1);
            assert!(rates().all(|r| (1.0..=500.0).contains(&r)));
            let most = rates().fold(0.0, f64::max);
            assert!(most <= 10.001 * rates().fold(f64::INFINITY, f64::min));
            assert!(l.rates.windows(2).all(|w| w[1].0 - w[0].0 <= 1000));
            assert!((1.0..=150.0).contains(&l.delay) && (20.0..=300.0).contains(&l.queue));
            assert!((0.0..=0.01).contains(&l.loss));
        }
        let silent = links.iter().filter(|l| l.outage.is_some()).count();
        assert!((400..600).contains(&silent), "{silent} of 2000");
        assert_eq!(Random::draw(7), Random::draw(7));
        assert_ne!(Random::draw(7).links, Random::draw(8).links);
    }
}
