//! Runs in which something changes: outages, a walk, contention.

use std::collections::BTreeMap;

use braid_core::stats::Percentiles;
use braid_lab::report::RunFiles;
use braid_lab::summary::{CaseResult, EventRow, MediumUse, Recovery};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::{Link, PAPER, Shape, bulk_case, paper, shares, summary, timeline};

/// `interruption`: each access down 5 s and up again, `times` times.
pub(crate) fn interruption(times: u32) -> RunFiles {
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
                out_ms: None,
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
pub(crate) fn walk() -> RunFiles {
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
pub(crate) fn contention() -> RunFiles {
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
