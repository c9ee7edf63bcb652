//! How long the application waits when an access is lost, and how soon the
//! access is used again: the path manager of the daemon, each access in turn.

use std::time::Duration;

use anyhow::Result;
use braid_lab::summary::Recovery;
use clap::Args;
use toml::Table;

use super::recovery_service;
use super::weights_plan::{MODES, capacities};
use crate::figures::{Worst, show};
use crate::report::{Comparison, Report};
use crate::runs::{RunArgs, Runs};
use crate::text;

/// How to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Outages of each access and sort
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    outages: u32,
    #[command(flatten)]
    runs: RunArgs,
}

/// As many as paper 000 made.
const FULL: u32 = 200;
/// Outages of each access in one run of the lab: no more is lost when it is cut.
const PER_RUN: u32 = 10;
/// For so many outages of one access there is one run of each fault that concerns more.
const OUTAGES_PER_SERVICE_RUN: u32 = 20;
/// Length of an outage.
const OUTAGE: Duration = Duration::from_millis(1000);
/// From one outage to the next, of the next access. With three accesses each is
/// up for 5.6 s: after less than 5 s the daemon would hesitate longer to trust
/// one that was silent.
const EVERY: Duration = Duration::from_millis(2200);
/// Until the connection has settled.
const BEGIN: Duration = Duration::from_secs(4);
/// Gaps that are shorter are not listed one by one.
pub(crate) const LEAST_GAP_MS: f64 = 50.0;

/// A sort of outage, and its bars at p95, ms.
struct Sort {
    set: &'static str,
    title: &'static str,
    gap_ms: f64,
    reuse_ms: Option<f64>,
    /// Whether nothing but the daemon's own looking tells of it.
    is_silent: bool,
}

const SORTS: [Sort; 2] = [
    Sort {
        set: "down",
        title: "interface down",
        gap_ms: 150.0,
        reuse_ms: Some(100.0),
        is_silent: false,
    },
    Sort {
        set: "blackhole",
        title: "silent",
        gap_ms: 400.0,
        reuse_ms: None,
        is_silent: true,
    },
];

/// Scheduler that divides the data, and what its runs are called.
struct Scheduler {
    slug: &'static str,
    title: &'static str,
    keys: fn() -> Result<Table>,
}

const SCHEDULERS: [Scheduler; 2] = [
    Scheduler {
        slug: "-weights",
        title: "weights",
        keys: || Ok(text::wrr(MODES[0], &capacities()?)),
    },
    Scheduler {
        slug: "",
        title: "stock",
        keys: || Ok(Table::from_iter([("cc".to_owned(), "cubic".into())])),
    },
];

/// Accesses; mean time until data flowed again in the paper, ms (Navarro-Ortiz et al.
/// 2024, Figure 8); least round trip in `recovery`, ms.
const PAPER: [(&str, f64, f64); 3] = [
    ("wifi", 393.3, 2.48),
    ("nr", 517.2, 20.12),
    ("lifi", 504.8, 2.08),
];
/// A silent access is to be taken out so long, and three least round trips, after the last
/// sign of life: up to half a round trip after the outage began.
const OUT_MS: f64 = 100.0;

/// Runs the outages, or takes those that there are; false if a bar was missed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let mut runs = Runs::new(&options.runs, "recovery")?;
    let pieces = options.outages.div_ceil(PER_RUN);
    let total = pieces as usize * SORTS.len() * SCHEDULERS.len();
    let mut report = Report::default();
    let mut rows = Vec::new();
    for scheduler in &SCHEDULERS {
        for sort in &SORTS {
            let mut seen: Vec<Recovery> = Vec::new();
            let mut wrong = 0;
            for n in 1..=pieces {
                let count = PER_RUN.min(options.outages - (n - 1) * PER_RUN);
                let files = runs.piece(
                    &format!("{}{}-{n:03}", sort.set, scheduler.slug),
                    &scenario(sort.set, scheduler, count, n)?,
                    total,
                )?;
                for case in &files.summary.cases {
                    if case.failed.is_some() || case.intact != Some(true) {
                        wrong += 1;
                    }
                    seen.extend(case.recoveries.iter().cloned());
                }
            }
            report.bar(
                &format!("{}, {}: every byte", scheduler.title, sort.title),
                "right in every run",
                format!("{wrong} of {pieces} runs failed or had a wrong byte"),
                wrong == 0,
            );
            for paper in PAPER {
                let wanted = options.outages;
                rows.push(judge(&mut report, sort, scheduler, paper, &seen, wanted));
            }
        }
    }
    report.comparisons.push(Comparison::new(
        format!(
            "Outages of {} s, one access after the other: ms, median / p95 / worst",
            OUTAGE.as_secs_f64()
        ),
        [
            "scheduler",
            "outage",
            "access",
            "outages",
            "taken out after",
            "application's longest gap",
            "used again after",
            "the paper's mean",
        ],
        rows,
    ));
    report.note(format!(
        "a gap of {LEAST_GAP_MS} ms means: at most that. The time until an access is used again \
         ends with the first 1000 bytes of data handed to its link"
    ));
    let times = options.outages.div_ceil(OUTAGES_PER_SERVICE_RUN);
    recovery_service::judge(&mut runs, &mut report, times)?;
    runs.finish(report, "recovery", options.outages >= FULL)
}

/// The bars of one access and sort, and its row of the table.
fn judge(
    report: &mut Report,
    sort: &Sort,
    scheduler: &Scheduler,
    (access, paper, rtt_ms): (&str, f64, f64),
    seen: &[Recovery],
    wanted: u32,
) -> Vec<String> {
    let of = || seen.iter().filter(|r| r.access == access);
    let gaps: Vec<f64> = of().map(|r| r.gap_ms.unwrap_or(LEAST_GAP_MS)).collect();
    let reuse: Vec<f64> = of().map(|r| r.reuse_ms.unwrap_or(f64::INFINITY)).collect();
    let name = format!("{}, {}, {access}", scheduler.title, sort.title);
    let out: Vec<f64> = of().map(|r| r.out_ms.unwrap_or(f64::INFINITY)).collect();
    let (gap, used, out) = (Worst::of(&gaps), Worst::of(&reuse), Worst::of(&out));
    let mut bar = |what: &str, most: f64, figures: Option<Worst>| {
        let enough = figures.is_some_and(|w| w.n >= wanted as usize);
        let measured = figures.map_or_else(
            || "no outage".to_owned(),
            |w| format!("{} ms of {} outages", show(w.p95), w.n),
        );
        report.bar(
            &format!("{name}: {what}, p95"),
            &format!("at most {most} ms, {wanted} outages"),
            measured,
            enough && figures.is_some_and(|w| w.p95 <= most),
        );
    };
    bar("longest gap", sort.gap_ms, gap);
    if let Some(most) = sort.reuse_ms {
        bar("used again", most, used);
    }
    if sort.is_silent {
        bar("taken out", (OUT_MS + 3.5 * rtt_ms).round(), out);
    }
    let cell = |w: Option<Worst>| {
        w.map_or_else(String::new, |w| {
            format!("{} / {} / {}", show(w.median), show(w.p95), show(w.worst))
        })
    };
    vec![
        scheduler.title.to_owned(),
        sort.title.to_owned(),
        access.to_owned(),
        gap.map_or(0, |w| w.n).to_string(),
        cell(out),
        cell(gap),
        cell(used),
        // Its interfaces went down.
        sort.reuse_ms
            .map_or_else(String::new, |_| paper.to_string()),
    ]
}

/// Case `braid` of scenario `recovery`, with `count` outages of each access.
fn scenario(set: &str, scheduler: &Scheduler, count: u32, seed: u32) -> Result<String> {
    let mut table = outages(set, count, seed)?;
    let mut keys = Table::new();
    keys.insert("path_manager".into(), "braid".into());
    keys.extend((scheduler.keys)()?);
    text::push(&mut table, "case", text::mptcp("braid", keys));
    text::to_text(&table)
}

/// Scenario `recovery` with `count` outages of each access, and no case.
pub(crate) fn outages(set: &str, count: u32, seed: u32) -> Result<Table> {
    let mut table = text::accesses_of("recovery", &format!("recovery-{set}"))?;
    table.insert("seed".into(), i64::from(seed).into());
    let steps = count * PAPER.len() as u32;
    let at = |step: u32| BEGIN + EVERY * step;
    text::set_length(
        &mut table,
        Duration::from_secs(2),
        at(steps) - Duration::from_secs(2),
    );
    for step in 0..steps {
        let access = PAPER[step as usize % PAPER.len()].0;
        for (at, set) in [(at(step), set), (at(step) + OUTAGE, "up")] {
            let mut event = Table::new();
            event.insert("at".into(), format!("{} ms", at.as_millis()).into());
            event.insert("access".into(), access.into());
            event.insert("set".into(), set.into());
            text::push(&mut table, "event", event);
        }
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_lab::scenario::{Action, PathManager};

    #[test]
    fn each_access_is_up_for_more_than_five_seconds_between() {
        let of = |s: &Scheduler| text::parse(&scenario("blackhole", s, 4, 1).unwrap()).unwrap();
        let [weights, stock] = [of(&SCHEDULERS[0]), of(&SCHEDULERS[1])];
        let [case, stock] = [&weights.cases[0], &stock.cases[0]];
        assert!(case.weights.is_some() && stock.weights.is_none());
        assert_eq!(
            (stock.cc.as_deref(), stock.path_manager),
            (Some("cubic"), case.path_manager)
        );
        assert_eq!(case.path_manager, PathManager::Braid);
        assert_eq!(case.accesses.len(), PAPER.len());
        for (access, ..) in PAPER {
            let mine: Vec<_> = case.events.iter().filter(|e| e.access == access).collect();
            assert_eq!(mine.len(), 8);
            for pair in mine.windows(2) {
                let apart = pair[1].at - pair[0].at;
                if pair[0].action == Action::Up {
                    assert!(apart > Duration::from_millis(5300), "{apart:?}");
                } else {
                    assert_eq!((pair[0].action.clone(), apart), (Action::Blackhole, OUTAGE));
                }
            }
        }
        let last = case.events.last().unwrap().at;
        assert!(case.duration >= last + Duration::from_secs(1));
    }

    #[test]
    fn too_few_outages_or_one_that_never_ended_miss_the_bar() {
        let one = |gap, reuse| Recovery {
            access: "nr".into(),
            up_s: 1.0,
            reuse_ms: reuse,
            gap_ms: gap,
            out_ms: Some(120.0),
        };
        let judge = |seen: &[Recovery], wanted| {
            let mut report = Report::default();
            let row = judge(
                &mut report,
                &SORTS[0],
                &SCHEDULERS[0],
                PAPER[1],
                seen,
                wanted,
            );
            (report.all_met(), row)
        };
        let mut seen = vec![one(None, Some(20.0)); 19];
        assert!(judge(&seen, 19).0);
        assert!(!judge(&seen, 20).0);
        seen.push(one(Some(500.0), None));
        let (met, row) = judge(&seen, 20);
        assert!(met, "{row:?}");
        assert!(
            row[5].ends_with("/ 500") && row[6].ends_with("never"),
            "{row:?}"
        );
        seen.push(one(Some(500.0), None));
        assert!(!judge(&seen, 20).0);
    }

    #[test]
    fn a_silent_access_that_is_taken_out_late_misses_the_bar() {
        let met = |out_ms| {
            let seen = vec![
                Recovery {
                    access: "wifi".into(),
                    out_ms,
                    ..Recovery::default()
                };
                2
            ];
            let mut report = Report::default();
            judge(&mut report, &SORTS[1], &SCHEDULERS[0], PAPER[0], &seen, 2);
            report.all_met()
        };
        assert!(met(Some(108.0)));
        assert!(!met(Some(110.0)) && !met(None));
    }
}
