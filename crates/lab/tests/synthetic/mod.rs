//! Results of the shape a real run has, made up from a seed: to look at the
//! table and the report, and to test them, without radios.
#![allow(dead_code, unreachable_pub, reason = "each test uses its own part")]

use std::collections::BTreeMap;

use braid_core::stats::Percentiles;
use braid_lab::report::RunFiles;
use braid_lab::summary::{
    CaseResult, EventRow, Host, MediumUse, PaperFigure, Recovery, Summary, TimelineRow,
};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// An access of the made-up runs: name, Mbit/s, RTT in ms.
pub type Link = (&'static str, f64, f64);

/// The paper's three accesses.
pub const PAPER: [Link; 3] = [
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
            });
        }
    }
    out
}

/// `static`: bulk over each access alone, then MPTCP with three congestion
/// controls, `repeats` times; one case fails, one sees a host pause.
pub fn bulk(repeats: u32) -> RunFiles {
    let mut rng = Pcg64::seed_from_u64(7);
    let mut f = RunFiles {
        summary: summary("static", &PAPER),
        scenario: STATIC_TOML.to_owned(),
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
pub fn requests() -> RunFiles {
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

/// `interruption`: each access down 5 s and up again, `times` times.
pub fn interruption(times: u32) -> RunFiles {
    let mut rng = Pcg64::seed_from_u64(13);
    let mut f = RunFiles {
        summary: summary("interruption", &PAPER),
        scenario: "# Each access goes down for 5 s and comes up again.\nname = \"interruption\"\n"
            .to_owned(),
        ..RunFiles::default()
    };
    let mut c = CaseResult {
        name: "mptcp cubic".to_owned(),
        engine: "mptcp".to_owned(),
        cc: Some("cubic".to_owned()),
        goodput_mbps: 1093.0,
        ceiling_mbps: Some(1180.0),
        efficiency: Some(1093.0 / 1180.0),
        share: shares(&PAPER.map(|l| (l.0, l.1))),
        packet_share: shares(&PAPER.map(|l| (l.0, l.1))),
        reinjected_bytes: Some(4_100_000),
        ..bulk_case(1)
    };
    let mut t = 10.0;
    for _ in 0..times {
        for (a, mean) in [("nr", 517.0), ("wifi", 393.0), ("lifi", 505.0)] {
            let ms = mean + 120.0 * (rng.random::<f64>() - 0.5);
            for (dt, what) in [(0.0, "down"), (5.0, "up")] {
                f.events.push(EventRow {
                    case: c.name.clone(),
                    repeat: 1,
                    t_s: t + dt,
                    access: a.to_owned(),
                    what: what.to_owned(),
                });
            }
            c.recoveries.push(Recovery {
                access: a.to_owned(),
                up_s: t + 5.0,
                reuse_ms: (rng.random::<f64>() > 0.05).then_some(ms),
                gap_ms: Some(40.0 + 200.0 * rng.random::<f64>()),
            });
            t += 15.0;
        }
    }
    c.seconds = t;
    f.timeline = timeline(&c, &PAPER, t, |i, t| {
        let k = ((t - 10.0) / 15.0).floor();
        let down = t >= 10.0 && (t - 10.0) % 15.0 < 5.0 && k as usize % 3 == i;
        if down { 0.0 } else { 1.0 }
    });
    f.summary.cases.push(c);
    f.summary.paper = [("nr", 517.2), ("wifi", 393.3), ("lifi", 504.8)]
        .map(|(a, v)| {
            paper(
                "mptcp cubic",
                &format!("recoveries.{a}.reuse_ms"),
                v,
                "Figure 8",
            )
        })
        .to_vec();
    f
}

/// `walk`: Wi-Fi falls and recovers beside steady 5G; video, a stream at a
/// constant rate, and bulk with weights.
pub fn walk() -> RunFiles {
    let links: [Link; 2] = [("nr", 340.0, 20.2), ("wifi", 900.0, 3.0)];
    let mut f = RunFiles {
        summary: summary("walk", &links),
        scenario: "# Wi-Fi falls and recovers.\nname = \"walk\"\n".to_owned(),
        ..RunFiles::default()
    };
    let share = shares(&[("nr", 0.41), ("wifi", 0.59)]);
    let weighted = CaseResult {
        name: "bulk, weights follow".to_owned(),
        engine: "mptcp".to_owned(),
        cc: Some("bbr".to_owned()),
        weights: Some(BTreeMap::from([
            ("nr".to_owned(), 34.0),
            ("wifi".to_owned(), 90.0),
        ])),
        goodput_mbps: 672.0,
        ceiling_mbps: Some(730.0),
        efficiency: Some(672.0 / 730.0),
        best_single_mbps: Some(402.0),
        share: share.clone(),
        packet_share: share.clone(),
        seconds: 250.0,
        ..bulk_case(1)
    };
    let video = CaseResult {
        name: "video 4K".to_owned(),
        traffic: "video".to_owned(),
        goodput_mbps: 24.8,
        ceiling_mbps: None,
        efficiency: None,
        best_single_mbps: None,
        weights: None,
        stalls: Some(2),
        stalled_s: Some(1.37),
        gap_ms: Some(812.0),
        ..weighted.clone()
    };
    let mut samples: Vec<f64> = (1..2000)
        .map(|i| 1.5 + 8.0 * (f64::from(i) / 2000.0).powi(6))
        .collect();
    let cbr = CaseResult {
        name: "cbr 20 Mbit/s".to_owned(),
        traffic: "cbr".to_owned(),
        goodput_mbps: 20.0,
        stalls: None,
        stalled_s: None,
        latency_ms: Percentiles::of(&mut samples),
        latency_cdf: (1..=100)
            .map(|i| (samples[i * 19], i as f64 / 100.0))
            .collect(),
        ..video.clone()
    };
    let shape: Shape = |i, t| match i {
        0 => 1.0,
        _ => (0.05 + 0.95 * ((t - 125.0).abs() / 125.0).powf(1.6)).min(1.0),
    };
    let mut rows = timeline(&weighted, &links, 250.0, shape);
    for r in rows.iter_mut().filter(|r| r.access == "wifi") {
        let step = (r.t_s / 12.0).floor() * 12.0;
        r.weight = Some((90.0 * shape(1, step)).round());
    }
    for step in 1..21 {
        let t = f64::from(step) * 12.0;
        f.events.push(EventRow {
            case: weighted.name.clone(),
            repeat: 1,
            t_s: t,
            access: "wifi".to_owned(),
            what: format!("weight={}", (90.0 * shape(1, t)).round()),
        });
    }
    f.timeline = rows;
    f.timeline
        .extend(timeline(&video, &links, 250.0, shape_of_video));
    f.timeline
        .extend(timeline(&cbr, &links, 250.0, |i, _| [0.01, 0.018][i]));
    f.summary.cases = vec![weighted, video, cbr];
    f
}

fn shape_of_video(i: usize, t: f64) -> f64 {
    if t % 4.0 < 1.2 {
        [0.12, 0.08][i]
    } else {
        0.0004
    }
}

/// `contention`: stations on a shared channel beside LTE; transfers of a fixed
/// size.
pub fn contention() -> RunFiles {
    let links: [Link; 2] = [("lte", 17.0, 160.0), ("wifi", 22.0, 164.0)];
    let mut f = RunFiles {
        summary: summary("contention", &links),
        scenario: "# Other stations on the channel.\nname = \"contention\"\n".to_owned(),
        ..RunFiles::default()
    };
    for (stations, wifi, busy, collisions) in [
        (0, 21.0, 0.52, 0.0),
        (2, 15.5, 0.74, 0.031),
        (4, 9.8, 0.93, 0.084),
    ] {
        let goodput = 15.8 + wifi;
        let c = CaseResult {
            name: format!("32 MB, {stations} stations"),
            engine: "mptcp".to_owned(),
            cc: Some("cubic".to_owned()),
            goodput_mbps: goodput,
            ceiling_mbps: None,
            efficiency: None,
            completion_s: Some(256.0 / goodput),
            best_single_mbps: Some(wifi.max(15.9)),
            share: shares(&[("lte", 15.8), ("wifi", wifi)]),
            packet_share: shares(&[("lte", 15.8), ("wifi", wifi)]),
            media: BTreeMap::from([("ch1".to_owned(), MediumUse { busy, collisions })]),
            seconds: 256.0 / goodput,
            ..bulk_case(1)
        };
        f.timeline
            .extend(timeline(&c, &links, c.seconds, |_, _| 1.0));
        f.summary.cases.push(c);
    }
    f
}

/// Names that try to break out of wherever they are put.
pub fn hostile() -> RunFiles {
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

const STATIC_TOML: &str = r#"# Paper 000, Figures 4 and 5: throughput of 5G NR, Wi-Fi 6 and LiFi alone and
# together, downlink, to a device that stands still.
#
# Figure 4 prints 342, 1190 and 12.1 Mbit/s for TCP alone; Figure 5 prints 1360
# for MPTCP with weights 30:100:1 and 181 for its default scheduler.

name = "static"
duration = "20s"
warmup = "2s"

[access.nr]
kind = "5g"
down = { rate = "360 Mbit/s", delay = "10 ms", queue = "100 ms" }
up = { rate = "60 Mbit/s", delay = "10 ms" }

[access.wifi]
kind = "wifi"
down = { rate = "1250 Mbit/s", delay = "1.2 ms" }

[access.lifi]
kind = "lifi"
down = { rate = "12.7 Mbit/s", delay = "1 ms" }

[[case]]
name = "mptcp bbr"
engine = "mptcp"
cc = "bbr"
traffic = "bulk"
"#;
