//! A walk on which a policy decides the weights, beside weights of an operator's.

use std::collections::BTreeMap;

use braid_lab::report::RunFiles;
use braid_lab::summary::{CaseResult, TimelineRow};
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

use super::{Link, MPTCP, bulk_case, shares, summary, timeline};

/// Share of its rate that a link has at `t`.
fn shape(link: usize, t: f64) -> f64 {
    match link {
        0 => 0.96 + 0.04 * (t / 9.0).sin(),
        _ => (0.06 + 0.94 * ((t - 125.0).abs() / 125.0).powf(1.6)).min(1.0),
    }
}

/// Weights of a case at `t`.
type Weights = fn(t: f64) -> [f64; 2];

/// `walk-auto`: weights by capacity, the same from start to end, and changed every 12 s.
pub(crate) fn followed() -> RunFiles {
    let links: [Link; 2] = [("nr", 300.0, 20.2), ("wifi", 880.0, 3.0)];
    let mut f = RunFiles {
        summary: summary("walk-auto", &links),
        scenario: "# Nobody gives it weights.\nname = \"walk-auto\"\n".to_owned(),
        ..RunFiles::default()
    };
    let ceiling = 640.0;
    let cases: [(&str, f64, Option<&str>, Weights); 3] = [
        ("MPTCP capacity", 0.963, Some("capacity"), |t| {
            let late = (t - 0.4).max(0.0);
            [0, 1].map(|i| (30.0 * [1.0, 2.93][i] * shape(i, late)).round() * 10.0)
        }),
        ("MPTCP weights of the start", 0.571, None, |_| [30.0, 86.0]),
        ("MPTCP weights of the operator", 0.938, None, |t| {
            let step = (t / 12.0).floor() * 12.0;
            [0, 1].map(|i| (30.0 * [1.0, 2.93][i] * shape(i, step)).round())
        }),
    ];
    for (name, efficiency, policy, weights) in cases {
        let goodput = ceiling * efficiency;
        let named =
            |w: [f64; 2]| BTreeMap::from([("nr".to_owned(), w[0]), ("wifi".to_owned(), w[1])]);
        let case = CaseResult {
            name: name.to_owned(),
            engine: "mptcp".to_owned(),
            scheduler: Some("wrr".to_owned()),
            cc: Some("cubic".to_owned()),
            weights: policy.is_none().then(|| named(weights(0.0))),
            policy: policy.map(str::to_owned),
            payload_fraction: Some(MPTCP),
            goodput_mbps: goodput,
            ceiling_mbps: Some(ceiling),
            efficiency: Some(efficiency),
            share: shares(&[("nr", 0.45), ("wifi", 0.55)]),
            packet_share: shares(&[("nr", 0.45), ("wifi", 0.55)]),
            seconds: 248.0,
            journals: vec!["journal-1-proxy.jsonl".to_owned()],
            ..bulk_case(1)
        };
        let mut rows = timeline(&case, &links, 250.0, shape);
        rows.iter_mut()
            .for_each(|r| known(r, &links, weights, policy.is_some()));
        f.timeline.extend(rows);
        f.summary.cases.push(case);
    }
    f
}

/// Adds what the lab and the policy know.
fn known(row: &mut TimelineRow, links: &[Link], weights: Weights, estimated: bool) {
    let i = usize::from(row.access == "wifi");
    let capacity = links[i].1 * shape(i, row.t_s);
    row.capacity_mbps = Some(capacity);
    row.weight = Some(weights(row.t_s)[i]);
    let mut rng = Pcg64::seed_from_u64((row.t_s * 10.0) as u64 + i as u64);
    let late = links[i].1 * shape(i, (row.t_s - 0.3).max(0.0));
    let estimate = late * MPTCP * (1.0 + 0.05 * (rng.random::<f64>() - 0.5));
    row.estimate_mbps = (estimated && row.t_s > 0.4).then_some(estimate);
}
