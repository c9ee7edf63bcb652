//! `summary.json` as text.

use crate::summary::Summary;

/// The summary as text, as it stands in `summary.json`: numbers that are not
/// finite, which JSON cannot hold, are left out or, where one must stand,
/// zero and noted.
pub fn to_json(summary: &Summary) -> String {
    let mut s = summary.clone();
    for c in &mut s.cases {
        let mut bad = Vec::new();
        for (name, v) in [
            ("seconds", &mut c.seconds),
            ("goodput_mbps", &mut c.goodput_mbps),
            ("cpu_seconds", &mut c.cpu_seconds),
            ("host.max_late_ms", &mut c.host.max_late_ms),
        ] {
            if !v.is_finite() {
                *v = 0.0;
                bad.push(name);
            }
        }
        c.latency_ms = c.latency_ms.filter(|p| {
            [p.mean, p.p50, p.p90, p.p99, p.max]
                .iter()
                .all(|v| v.is_finite())
        });
        c.latency_cdf.retain(|p| p.0.is_finite() && p.1.is_finite());
        for map in [
            Some(&mut c.share),
            Some(&mut c.packet_share),
            Some(&mut c.others_mbps),
            c.weights.as_mut(),
        ] {
            map.into_iter().for_each(|m| m.retain(|_, v| v.is_finite()));
        }
        c.media
            .retain(|_, m| m.busy.is_finite() && m.collisions.is_finite());
        for map in [&mut c.energy, &mut c.others_energy] {
            map.retain(|_, e| e.total_joules().is_finite());
        }
        c.recoveries.retain(|r| r.up_s.is_finite());
        if !bad.is_empty() {
            c.notes
                .push(format!("not measured, shown as 0: {}", bad.join(", ")));
        }
    }
    if !s.host.max_late_ms.is_finite() {
        s.host.max_late_ms = 0.0;
    }
    s.paper.retain(|p| p.value.is_finite());
    let mut text = serde_json::to_string_pretty(&s).expect("keys are strings, numbers finite");
    text.push('\n');
    text
}
