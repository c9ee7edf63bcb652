//! How soon service is back where probes mislead: all accesses silent for longer than a
//! session may wait, and a path whose MTU drops while no ICMP message tells of it.

use std::time::Duration;

use anyhow::Result;
use braid_lab::report::RunFiles;
use braid_lab::summary::TimelineRow;
use toml::Table;

use crate::figures::{Worst, show};
use crate::report::{Comparison, Report};
use crate::runs::Runs;
use crate::text;

/// Accesses of the scenario.
const ACCESSES: [&str; 2] = ["nr", "wifi"];

/// An engine, and for how long all accesses are silent.
struct Engine {
    name: &'static str,
    silent: Duration,
}

/// MP-QUIC ends a session after 30 s without an answer, and the lab's transfer with it: how soon
/// it has another one after longer outages is a property of its own, over simulated time
/// (`crates/mpquic/src/sim/restored.rs`).
const ENGINES: [Engine; 2] = [
    Engine {
        name: "mptcp",
        silent: Duration::from_secs(40),
    },
    Engine {
        name: "mpquic",
        silent: Duration::from_secs(25),
    },
];
/// Until the connection has settled.
const BEGIN: Duration = Duration::from_secs(4);
/// Length of a drop of the path MTU, and the rest after it.
const DROP: Duration = Duration::from_secs(8);
const REST: Duration = Duration::from_secs(4);
/// MTU of the dropped path, bytes: between the 1280 of IPv6 and the 1500 of the interface.
const MTU: u32 = 1400;
/// Bar: service is back, and an access carries again, within this.
const BACK_MS: f64 = 3000.0;
/// An access carries again from this share of what it carried before.
const AGAIN: f64 = 0.5;
/// Mean over this before a drop, s.
const BEFORE_S: f64 = 2.0;
/// Bytes of a packet that was lost, at most.
const PACKET: u64 = 1500;

/// Runs `pieces` of each kind, or takes those that there are, and judges them.
pub(super) fn judge(runs: &mut Runs, report: &mut Report, pieces: u32) -> Result<()> {
    let total = runs.done() + 2 * ENGINES.len() * pieces as usize;
    let mut rows = Vec::new();
    let mut all = Vec::new();
    for engine in &ENGINES {
        let name = engine.name;
        let silence = format!("all silent for {} s", engine.silent.as_secs());
        let drop = format!("path MTU drops to {MTU}");
        let mut made = |what: &str, scenario: fn(&Engine, u32) -> Result<String>| {
            let piece = |n| {
                runs.piece(
                    &format!("{what}-{name}-{n:03}"),
                    &scenario(engine, n)?,
                    total,
                )
            };
            (1..=pieces).map(piece).collect::<Result<Vec<_>>>()
        };
        let silent = made("all-silent", all_silent)?;
        let dropped = made("mtu", mtu_drops)?;
        let gaps = silent.iter().map(|f| service_gap(f, engine)).collect();
        rows.push(row(report, name, &silence, "service is back", gaps));
        let again = silent.iter().flat_map(used_again).collect();
        rows.push(row(
            report,
            name,
            &silence,
            "each access is used again",
            again,
        ));
        let after = dropped.iter().flat_map(carries_again).collect();
        rows.push(row(report, name, &drop, "the access carries again", after));
        all.extend(silent.into_iter().chain(dropped));
    }
    report.every_byte(all.iter().flat_map(|f| &f.summary.cases));
    report.comparisons.push(Comparison::new(
        "Where probes mislead: ms after the end of the silence, or after the drop, median / p95 / worst",
        ["engine", "fault", "until", "times", "ms"],
        rows,
    ));
    Ok(())
}

fn row(report: &mut Report, engine: &str, fault: &str, until: &str, all: Vec<f64>) -> Vec<String> {
    let worst = Worst::of(&all);
    let measured = worst.map_or_else(
        || "no outage".to_owned(),
        |w| format!("{} ms of {}", show(w.p95), w.n),
    );
    report.bar(
        &format!("{engine}, {fault}: {until}, p95"),
        &format!("at most {BACK_MS} ms"),
        measured,
        worst.is_some_and(|w| w.p95 <= BACK_MS),
    );
    let figures = worst.map_or_else(String::new, |w| {
        format!("{} / {} / {}", show(w.median), show(w.p95), show(w.worst))
    });
    let n = worst.map_or(0, |w| w.n).to_string();
    vec![engine.into(), fault.into(), until.into(), n, figures]
}

/// The application's longest gap beyond the silence, ms; infinite where the case failed, or
/// had no gap, which is a run without an outage.
fn service_gap(files: &RunFiles, engine: &Engine) -> f64 {
    let cases = || files.summary.cases.iter();
    let gaps = cases().flat_map(|c| &c.recoveries).filter_map(|r| r.gap_ms);
    match gaps.reduce(f64::max) {
        Some(gap) if cases().all(|c| c.failed.is_none()) => gap - engine.silent.as_secs_f64() * 1e3,
        _ => f64::INFINITY,
    }
}

/// When each access was used again after the silence, ms.
fn used_again(files: &RunFiles) -> Vec<f64> {
    let all = files.summary.cases.iter().flat_map(|c| &c.recoveries);
    all.map(|r| r.reuse_ms.unwrap_or(f64::INFINITY)).collect()
}

/// When each access carried again after its path MTU had dropped, ms.
fn carries_again(files: &RunFiles) -> Vec<f64> {
    let dropped = format!("MTU {MTU}");
    let drops = files.events.iter().filter(|e| e.what == dropped);
    drops
        .map(|e| {
            let mine = files.timeline.iter().filter(|r| r.access == e.access);
            again_after(&mine.collect::<Vec<_>>(), e.t_s)
        })
        .collect()
}

/// From `drop_s` to the end of the first interval in which `rows` of an access carry
/// [`AGAIN`] of what they did before, ms; infinite if they never do within [`DROP`].
fn again_after(rows: &[&TimelineRow], drop_s: f64) -> f64 {
    // What is longer than the MTU leaves the link and is lost.
    let arrived = |r: &&TimelineRow| r.bytes.saturating_sub(PACKET * r.lost_packets) as f64;
    let before: Vec<f64> = rows
        .iter()
        .filter(|r| r.t_s <= drop_s && r.t_s > drop_s - BEFORE_S)
        .map(arrived)
        .collect();
    let mean = before.iter().sum::<f64>() / before.len().max(1) as f64;
    let until = drop_s + DROP.as_secs_f64();
    // The interval in which it dropped carried before it did.
    let mut after = rows
        .iter()
        .filter(|r| r.t_s > drop_s + 0.1 && r.t_s <= until);
    let found = after.find(|r| mean > 0.0 && arrived(r) >= AGAIN * mean);
    found.map_or(f64::INFINITY, |r| (r.t_s - drop_s) * 1e3)
}

fn base(name: &str, engine: &Engine, seed: u32, length: Duration) -> Result<Table> {
    let mut table = text::accesses_of("recovery", name)?;
    if let Some(accesses) = table.get_mut("access").and_then(|a| a.as_table_mut()) {
        accesses.retain(|name, _| ACCESSES.contains(&name));
    }
    table.insert("seed".into(), i64::from(seed).into());
    text::set_length(&mut table, Duration::from_secs(2), length);
    let mut keys = Table::new();
    keys.insert("cc".into(), "cubic".into());
    if engine.name == "mptcp" {
        keys.insert("path_manager".into(), "braid".into());
    }
    text::push(
        &mut table,
        "case",
        text::bulk(engine.name, engine.name, keys),
    );
    Ok(table)
}

fn event(table: &mut Table, at: Duration, access: &str, set: toml::Value) {
    let mut event = Table::new();
    event.insert("at".into(), format!("{} ms", at.as_millis()).into());
    event.insert("access".into(), access.into());
    event.insert("set".into(), set);
    text::push(table, "event", event);
}

/// All accesses fall silent at once, and come back at once.
fn all_silent(engine: &Engine, seed: u32) -> Result<String> {
    let end = BEGIN + engine.silent;
    let length = end + Duration::from_secs(6);
    let mut table = base("recovery-all-silent", engine, seed, length)?;
    for access in ACCESSES {
        event(&mut table, BEGIN, access, "blackhole".into());
        event(&mut table, end, access, "up".into());
    }
    text::to_text(&table)
}

/// The path MTU of each access in turn drops, and is back.
fn mtu_drops(engine: &Engine, seed: u32) -> Result<String> {
    let length = BEGIN + (DROP + REST) * ACCESSES.len() as u32;
    let mut table = base("recovery-mtu", engine, seed, length)?;
    let mtu = |bytes: u32| Table::from_iter([("mtu".to_owned(), i64::from(bytes).into())]);
    for (k, access) in (0..).zip(ACCESSES) {
        let at = BEGIN + (DROP + REST) * k;
        event(&mut table, at, access, mtu(MTU).into());
        event(&mut table, at + DROP, access, mtu(65_535).into());
    }
    text::to_text(&table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_lab::scenario::Action;

    #[test]
    fn the_faults_are_what_the_bars_say() {
        for engine in &ENGINES {
            let silent = text::parse(&all_silent(engine, 1).unwrap()).unwrap();
            let [case] = &silent.cases[..] else {
                panic!("one case")
            };
            let at = |action: Action| {
                let of = case.events.iter().filter(|e| e.action == action);
                of.map(|e| e.at).collect::<Vec<_>>()
            };
            let end = BEGIN + engine.silent;
            assert_eq!(
                (at(Action::Blackhole), at(Action::Up)),
                (vec![BEGIN; 2], vec![end; 2])
            );
            assert!(case.duration >= end + Duration::from_secs(5));
            let mtu = text::parse(&mtu_drops(engine, 1).unwrap()).unwrap();
            let labels: Vec<_> = mtu.cases[0]
                .events
                .iter()
                .map(|e| e.label.as_str())
                .collect();
            assert_eq!(labels, ["MTU 1400", "MTU 65535", "MTU 1400", "MTU 65535"]);
        }
    }

    #[test]
    fn an_access_carries_again_from_half_of_what_it_did() {
        let row = |t_s: f64, bytes: u64, lost_packets: u64| TimelineRow {
            t_s,
            bytes,
            lost_packets,
            ..TimelineRow::default()
        };
        let rows = [
            row(3.9, 100_000, 0),
            row(4.0, 100_000, 0),
            row(4.1, 90_000, 0),
            row(4.2, 90_000, 60),
            row(4.3, 49_000, 0),
            row(4.4, 50_000, 0),
        ];
        let rows: Vec<&TimelineRow> = rows.iter().collect();
        assert!((again_after(&rows, 4.0) - 400.0).abs() < 1e-6);
        assert_eq!(again_after(&rows[..5], 4.0), f64::INFINITY);
    }
}
