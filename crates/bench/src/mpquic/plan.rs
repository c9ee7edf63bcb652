//! Runs by which Multipath QUIC is measured.

use std::time::Duration;

use anyhow::{Context, Result};
use toml::{Table, Value};

use crate::mptcp::recovery::outages;
use crate::mptcp::weights_plan::{capacities, named, ratio};
use crate::text;

/// Both lanes.
pub(super) const LANES: [&str; 2] = ["stream", "datagram"];
/// The ratios of strict weights.
pub(super) const RATIOS: [[f64; 3]; 3] = [[1.0, 1.0, 1.0], [7.0, 2.0, 1.0], [30.0, 100.0, 1.0]];
/// The pair that is compared with what others publish.
pub(super) const PUBLISHED: &str = "300/10 + 80/30";
/// Trace that `walk-weights` reads.
pub(super) const WALK_TRACE: &str = "traces/walk.csv";
/// Outages of each access in a run.
pub(super) const OUTAGES: u32 = 10;
/// Part of packets that each access loses.
const LOSS: f64 = 0.01;

/// `LANE, by capacity`.
pub(super) fn by_capacity(lane: &str) -> String {
    format!("{lane}, by capacity")
}

/// `LANE, strict RATIO`.
pub(super) fn strict(lane: &str, weights: &[f64; 3]) -> String {
    format!("{lane}, strict {}", ratio(weights))
}

fn quic(name: &str, lane: &str, keys: Table) -> Table {
    let mut case = text::bulk(name, "mpquic", keys);
    case.insert("lane".into(), lane.into());
    case
}

fn begun(from: &str, name: &str, seed: u32, seconds: (u64, u64)) -> Result<Table> {
    let mut table = text::accesses_of(from, name)?;
    table.insert("seed".into(), i64::from(seed).into());
    let (warmup, measured) = seconds;
    text::set_length(
        &mut table,
        Duration::from_secs(warmup),
        Duration::from_secs(measured),
    );
    Ok(table)
}

/// One access that nothing limits.
pub(super) fn single(seed: u32) -> Result<String> {
    let mut table = begun("static", "mpquic-single", seed, (1, 5))?;
    let link = |rate: &str| {
        let mut link = Table::new();
        link.insert("rate".into(), rate.into());
        Value::Table(link)
    };
    let mut access = Table::new();
    access.insert("kind".into(), "other".into());
    access.insert("down".into(), link("100 Gbit/s"));
    let mut accesses = Table::new();
    accesses.insert("only".into(), Value::Table(access));
    table.insert("access".into(), Value::Table(accesses));
    for lane in LANES {
        text::push(&mut table, "case", quic(lane, lane, Table::new()));
    }
    text::to_text(&table)
}

/// The links of `static`: by capacity.
pub(super) fn capacity(seed: u32) -> Result<String> {
    let mut table = begun("static", "mpquic-static", seed, (2, 8))?;
    for lane in LANES {
        let keys = text::wrr("work-conserving", &capacities()?);
        text::push(&mut table, "case", quic(&by_capacity(lane), lane, keys));
    }
    text::to_text(&table)
}

/// Links of `static`: by capacity, and with strict weights.
pub(super) fn shares(seed: u32) -> Result<String> {
    let mut table: Table = capacity(seed)?.parse().context("read a scenario")?;
    for lane in LANES {
        for weights in &RATIOS {
            let keys = text::wrr("strict", &named(weights));
            text::push(&mut table, "case", quic(&strict(lane, weights), lane, keys));
        }
    }
    text::to_text(&table)
}

/// A pair: plain TCP on either access, and both lanes.
pub(super) fn pair(variant: &str, seed: u32) -> Result<String> {
    let mut table = text::pair(variant, "mpquic-pair")?;
    table.insert("seed".into(), i64::from(seed).into());
    text::set_length(&mut table, Duration::from_secs(3), Duration::from_secs(10));
    for access in ["a", "b"] {
        let keys = [("access", access), ("cc", "cubic")].map(|(k, v)| (k.to_owned(), v.into()));
        let case = text::bulk(&format!("TCP on {access}"), "tcp", Table::from_iter(keys));
        text::push(&mut table, "case", case);
    }
    for lane in LANES {
        text::push(&mut table, "case", quic(lane, lane, Table::new()));
    }
    text::to_text(&table)
}

/// The walk with weights that follow, as it comes with Braid.
pub(super) fn walk(seed: u32) -> Result<String> {
    let mut table = text::shipped_cases("walk-weights", seed, |c| text::is_of(c, "mpquic"))?;
    table.remove("paper");
    text::to_text(&table)
}

/// Outages of each access in turn.
pub(super) fn interruption(set: &str, seed: u32) -> Result<String> {
    let mut table = outages(set, OUTAGES, seed)?;
    let keys = text::wrr("work-conserving", &capacities()?);
    text::push(&mut table, "case", quic("datagram", "datagram", keys));
    text::to_text(&table)
}

/// Messages over the fastest access alone and copied on all, without loss and with.
pub(super) fn latency(seed: u32, lossy: bool) -> Result<String> {
    let mut table = begun("static", "mpquic-latency", seed, (1, 20))?;
    if lossy {
        let accesses = table.get_mut("access").and_then(Value::as_table_mut);
        for (_, links) in accesses.into_iter().flatten() {
            for (_, link) in links.as_table_mut().into_iter().flatten() {
                if let Some(link) = link.as_table_mut() {
                    link.insert("loss".into(), LOSS.into());
                }
            }
        }
    }
    let one = |name: &str| Value::Array(vec![name.into()]);
    for access in ["nr", "wifi", "lifi"] {
        let keys = Table::from_iter([("accesses".to_owned(), one(access))]);
        text::push(&mut table, "case", quic(access, "datagram", keys));
    }
    let keys = Table::from_iter([("scheduler".to_owned(), "redundant".into())]);
    text::push(&mut table, "case", quic("redundant", "datagram", keys));
    for case in table["case"].as_array_mut().into_iter().flatten() {
        if let Some(case) = case.as_table_mut() {
            case.insert("traffic".into(), "request-response".into());
        }
    }
    text::to_text(&table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mptcp::soak_plan;
    use braid_lab::scenario::shipped_trace;

    #[test]
    fn every_plan_is_a_scenario() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("traces")).unwrap();
        let trace = shipped_trace(WALK_TRACE).unwrap();
        std::fs::write(dir.path().join(WALK_TRACE), trace).unwrap();
        let cases = |text: Result<String>| {
            let s = text::parse_in(dir.path(), &text.unwrap()).unwrap();
            let names = s.cases.iter().map(|c| c.name.clone());
            names.collect::<Vec<_>>()
        };
        assert_eq!(cases(single(1)), LANES);
        assert_eq!(cases(shares(1)).len(), 2 + 6);
        assert_eq!(cases(walk(1)).len(), 1);
        assert_eq!(cases(interruption("down", 1)), ["datagram"]);
        for lossy in [false, true] {
            assert_eq!(
                cases(latency(1, lossy)),
                ["nr", "wifi", "lifi", "redundant"]
            );
        }
        let pairs = soak_plan::pairs().unwrap();
        assert!(pairs.iter().any(|p| p == PUBLISHED), "{pairs:?}");
        for variant in pairs {
            let names = cases(pair(&variant, 1));
            assert_eq!(names, ["TCP on a", "TCP on b", "stream", "datagram"]);
        }
    }
}
