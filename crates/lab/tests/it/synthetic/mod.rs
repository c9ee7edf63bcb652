//! Results of the shape a real run has, made up from a seed: to look at the
//! table and the report, and to test them, without radios.

mod changing;
mod policy;

use std::collections::BTreeMap;

use braid_core::stats::Percentiles;
use braid_lab::report::RunFiles;
use braid_lab::summary::{CaseResult, EventRow, Host, PaperFigure, Summary, TimelineRow};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

pub(crate) use changing::{contention, interruption, walk};
pub(crate) use policy::followed;

/// An access of the made-up runs: name, Mbit/s, RTT in ms.
pub(crate) type Link = (&'static str, f64, f64);

/// The paper's three accesses.
pub(crate) const PAPER: [Link; 3] = [
    ("nr", 360.0, 20.2),
    ("wifi", 1250.0, 2.6),
    ("lifi", 12.7, 2.2),
];

/// Payload / IP bytes of a full TCP packet without and with MPTCP's option.
const TCP: f64 = 1448.0 / 1500.0;
const MPTCP: f64 = 1428.0 / 1500.0;

fn summary(scenario: &str, links: &[Link]) -> Summary {
    Summary {
        scenario: scenario.to_owned(),
        clock: "real".to_owned(),
        seed: 1,
        kernel: "6.18.0".to_owned(),
        version: "0.1.0".to_owned(),
        started: "2026-01-31T12:01:02Z".to_owned(),
        accesses: links.iter().map(|l| l.0.to_owned()).collect(),
        ..Summary::default()
    }
}

fn shares(parts: &[(&str, f64)]) -> BTreeMap<String, f64> {
    let all: f64 = parts.iter().map(|p| p.1).sum();
    parts.iter().map(|p| (p.0.to_owned(), p.1 / all)).collect()
}

fn paper(case: &str, field: &str, value: f64, figure: &str) -> PaperFigure {
    PaperFigure {
        case: case.to_owned(),
        field: field.to_owned(),
        value,
        source: format!("Navarro-Ortiz 2024, {figure}"),
    }
}

/// How much of a link's rate passes at `t` of the timeline.
type Shape = fn(link: usize, t: f64) -> f64;

/// Timeline rows of one case: ramp-up, then `shape` times the rate, with noise.
#[allow(clippy::needless_update, reason = "a new column needs no line here")]
fn timeline(case: &CaseResult, links: &[Link], end_s: f64, shape: Shape) -> Vec<TimelineRow> {
    let mut rng = Pcg64::seed_from_u64(u64::from(case.repeat) * 31 + case.name.len() as u64);
    let used = links
        .iter()
        .enumerate()
        .filter(|(_, l)| case.share.contains_key(l.0));
    let used: Vec<_> = used.collect();
    let mut out = Vec::new();
    for step in 1..=(end_s * 10.0) as u32 {
        let t = f64::from(step) / 10.0;
        for &(i, &(name, rate, rtt)) in &used {
            let open = shape(i, t);
            let ramp = (t / 0.6).min(1.0);
            let noise = 1.0 - 0.06 * rng.random::<f64>() * if i == 1 { 3.0 } else { 1.0 };
            let mbps = rate * open * ramp * noise * case.efficiency.unwrap_or(0.9).min(1.0);
            let queue = 0.35 * rng.random::<f64>() * rate * 1e6 / 8.0 * 0.05 * open;
            let queueing = queue * 8.0 / (rate * 1e3);
            out.push(TimelineRow {
                case: case.name.clone(),
                repeat: case.repeat,
                t_s: t,
                access: name.to_owned(),
                bytes: (mbps * 1e5 / 8.0) as u64,
                queue_bytes: queue as u64,
                lost_packets: if rng.random::<f64>() < 0.02 * open {
                    1 + step as u64 % 7
                } else {
                    0
                },
                rtt_ms: Some(rtt + queueing),
                cwnd: Some(((mbps * 1e3 * (rtt + queueing)) / 8.0 / 1448.0) as u32 + 10),
                pacing_mbps: Some(mbps * 1.2),
                retransmits: Some(step / 10),
                weight: case.weights.as_ref().and_then(|w| w.get(name).copied()),
                state: if open > 0.0 { "up" } else { "down" }.to_owned(),
                busy: (name == "wifi" && !case.media.is_empty())
                    .then(|| (0.55 + 0.3 * (t / 7.0).sin().abs() + 0.05 * noise).min(1.0)),
                ..TimelineRow::default()
            });
        }
    }
    out
}

/// `static`: bulk over each access alone, then MPTCP with three congestion
/// controls, `repeats` times; one case fails, one sees a host pause.
pub(crate) fn bulk(repeats: u32) -> RunFiles {
    let mut rng = Pcg64::seed_from_u64(7);
    let mut f = RunFiles {
        summary: summary("static", &PAPER),
        scenario: include_str!("static.toml").to_owned(),
        ..RunFiles::default()
    };
    let wire: f64 = PAPER.iter().map(|l| l.1).sum();
    for repeat in 1..=repeats {
        for (name, rate, _) in PAPER {
            let jitter = 1.0 - 0.004 * rng.random::<f64>();
            let goodput = rate * TCP * 0.985 * jitter;
            f.summary.cases.push(CaseResult {
                name: format!("tcp {name}"),
                engine: "tcp".to_owned(),
                cc: Some("cubic".to_owned()),
                access: Some(name.to_owned()),
                goodput_mbps: goodput,
                ceiling_mbps: Some(rate * TCP),
                efficiency: Some(goodput / (rate * TCP)),
                share: shares(&[(name, 1.0)]),
                packet_share: shares(&[(name, 1.0)]),
                ..bulk_case(repeat)
            });
        }
        for (cc, eff) in [("cubic", 0.902), ("reno", 0.951), ("bbr", 0.974)] {
            let ceiling = wire * MPTCP;
            let goodput = ceiling * eff * (1.0 - 0.01 * rng.random::<f64>());
            let lost = rng.random_range(100_000..3_000_000);
            f.summary.cases.push(CaseResult {
                name: format!("mptcp {cc}"),
                engine: "mptcp".to_owned(),
                cc: Some(cc.to_owned()),
                goodput_mbps: goodput,
                ceiling_mbps: Some(ceiling),
                efficiency: Some(goodput / ceiling),
                best_single_mbps: Some(1250.0 * TCP * 0.983),
                share: shares(&PAPER.map(|l| (l.0, l.1 * (0.98 + 0.02 * rng.random::<f64>())))),
                packet_share: shares(&PAPER.map(|l| (l.0, l.1))),
                retransmitted_bytes: Some(lost),
                reinjected_bytes: Some(lost / 9),
                ..bulk_case(repeat)
            });
        }
        f.summary.cases.push(CaseResult {
            name: "mptcp wvegas".to_owned(),
            engine: "mptcp".to_owned(),
            cc: Some("wvegas".to_owned()),
            failed: Some("congestion control \"wvegas\" is not in this kernel".to_owned()),
            repeat,
            traffic: "bulk".to_owned(),
            direction: "down".to_owned(),
            ..CaseResult::default()
        });
    }
    let paused = &mut f.summary.cases[4];
    paused.host = Host {
        late_wakes: 3,
        max_late_ms: 4.2,
    };
    f.summary.host = paused.host;
    f.summary.paper = vec![
        paper("tcp nr", "goodput_mbps", 342.0, "Figure 4"),
        paper("tcp wifi", "goodput_mbps", 1190.0, "Figure 4"),
        paper("tcp lifi", "goodput_mbps", 12.1, "Figure 4"),
        paper("default scheduler", "goodput_mbps", 181.0, "Figure 5"),
        paper("wrr 30:100:1", "goodput_mbps", 1360.0, "Figure 5"),
    ];
    for c in f.summary.cases.iter().filter(|c| c.failed.is_none()) {
        f.timeline.extend(timeline(c, &PAPER, 22.0, |_, _| 1.0));
    }
    f.events.push(EventRow {
        case: "mptcp reno".to_owned(),
        repeat: 1,
        t_s: 7.3,
        access: String::new(),
        what: "emulator: wake 4.2 ms late".to_owned(),
    });
    f
}

fn bulk_case(repeat: u32) -> CaseResult {
    CaseResult {
        traffic: "bulk".to_owned(),
        direction: "down".to_owned(),
        repeat,
        seconds: 20.0,
        gap_ms: Some(12.0 + f64::from(repeat)),
        retransmitted_bytes: Some(180_000),
        intact: Some(true),
        cpu_seconds: 6.4,
        ..CaseResult::default()
    }
}

/// `latency`: request-response with its distribution.
pub(crate) fn requests() -> RunFiles {
    let mut rng = Pcg64::seed_from_u64(11);
    let mut f = RunFiles {
        summary: summary("latency", &PAPER),
        scenario: "# Request-response latency.\n\nname = \"latency\"\n".to_owned(),
        ..RunFiles::default()
    };
    type Parts = &'static [(&'static str, f64)];
    let rows: [(&str, &str, Parts); 4] = [
        ("tcp nr", "tcp", &[("nr", 1.0)]),
        ("tcp wifi", "tcp", &[("wifi", 1.0)]),
        ("tcp lifi", "tcp", &[("lifi", 1.0)]),
        (
            "mptcp default",
            "mptcp",
            &[("nr", 0.0028), ("wifi", 0.3593), ("lifi", 0.6379)],
        ),
    ];
    for (name, engine, parts) in rows {
        let mut samples: Vec<f64> = (0..4000)
            .map(|_| {
                let mut pick = rng.random::<f64>();
                let mut base = 10.1;
                for (a, p) in parts {
                    if pick < *p {
                        base = PAPER.iter().find(|l| l.0 == *a).map_or(1.0, |l| l.2 / 2.0);
                        break;
                    }
                    pick -= p;
                }
                base + 0.12 - 0.09 * rng.random::<f64>().ln()
            })
            .collect();
        let latency = Percentiles::of(&mut samples);
        let cdf = (1..=200)
            .map(|i| (samples[i * 20 - 1], i as f64 / 200.0))
            .collect();
        f.summary.cases.push(CaseResult {
            name: name.to_owned(),
            engine: engine.to_owned(),
            cc: Some("cubic".to_owned()),
            access: (engine == "tcp").then(|| parts[0].0.to_owned()),
            traffic: "request-response".to_owned(),
            direction: "both".to_owned(),
            repeat: 1,
            seconds: 10.0,
            goodput_mbps: 0.003,
            share: shares(parts),
            packet_share: shares(parts),
            latency_ms: latency,
            latency_cdf: cdf,
            intact: Some(true),
            cpu_seconds: 0.3,
            ..CaseResult::default()
        });
    }
    f.summary.paper = vec![
        paper("tcp nr", "latency_ms.mean", 10.1, "Figure 7"),
        paper("tcp wifi", "latency_ms.mean", 1.28, "Figure 7"),
        paper("tcp lifi", "latency_ms.mean", 1.08, "Figure 7"),
        paper("mptcp default", "latency_ms.mean", 1.0, "Figure 7"),
        paper("mptcp default", "latency_ms.p90", 1.2, "Figure 7"),
        paper("mptcp default", "packet_share.nr", 0.0028, "Section 6.3"),
        paper("mptcp default", "packet_share.wifi", 0.3593, "Section 6.3"),
        paper("mptcp default", "packet_share.lifi", 0.6379, "Section 6.3"),
        paper("rr", "latency_ms.mean", 3.52, "Figure 7"),
        paper("rr", "latency_ms.p90", 5.95, "Figure 7"),
    ];
    for c in &f.summary.cases {
        f.timeline.extend(timeline(c, &PAPER, 10.0, |_, _| 0.0005));
    }
    f
}

/// Names that try to break out of wherever they are put.
pub(crate) fn hostile() -> RunFiles {
    let evil = "</script><script>window.pwned=1</script><img src=x onerror=pwned=1>\u{1b}[31m{{7*7}}&amp;\u{2028}";
    let mut f = bulk(1);
    f.summary.scenario = evil.to_owned();
    f.summary.kernel = evil.to_owned();
    f.summary.accesses = vec![evil.to_owned()];
    f.scenario = format!("# {evil}\nname = \"{evil}\"");
    let c = &mut f.summary.cases[0];
    c.name = evil.to_owned();
    c.access = Some(evil.to_owned());
    c.share = shares(&[(evil, 1.0)]);
    c.notes = vec![evil.to_owned()];
    f.summary.paper[3].case = evil.to_owned();
    f.summary.paper[3].source = evil.to_owned();
    f.summary.cases[6].failed = Some(evil.to_owned());
    for r in f.timeline.iter_mut().filter(|r| r.case == "tcp nr") {
        r.case = evil.to_owned();
        r.access = evil.to_owned();
    }
    f.events.push(EventRow {
        case: evil.to_owned(),
        repeat: 1,
        t_s: 3.0,
        access: evil.to_owned(),
        what: evil.to_owned(),
    });
    f
}
