//! From counters and reports to the row of a case.

use std::time::Duration;

use anyhow::Result;
use braid_api::Counters;
use braid_core::Time;
use braid_radio::emulator::api::Stats;

use super::ceiling::{ceiling, fraction, mean_rate, payload};
use super::events::{Outage, Schedule};
use super::kernel_counters;
use super::packets;
use super::processors;
use super::radio::Radio;
use super::sampler::Sampler;
use super::traffic::Traffics;
use crate::scenario::Case;
use crate::summary::{CaseResult, EngineCpu, EventRow, Host, MediumUse, Recovery};
use braid_traffic::{MOST_LISTED, TrafficReport};

/// Everything that was measured.
pub(super) struct Inputs<'a> {
    pub(super) case: &'a Case,
    pub(super) repeat: u32,
    pub(super) start: Time,
    pub(super) sampler: &'a Sampler,
    pub(super) schedule: &'a Schedule,
    pub(super) traffic: &'a Traffics,
    pub(super) stats: &'a Stats,
    pub(super) counters: &'a [(&'static str, Counters)],
    pub(super) ipv6: bool,
    pub(super) mtu: u32,
}

/// A row with what is known before the case has run.
pub(super) fn blank(case: &Case, repeat: u32) -> CaseResult {
    let engine = case.engine.get();
    CaseResult {
        name: case.name.clone(),
        engine: case.engine.as_str().into(),
        scheduler: engine
            .default_scheduler()
            .map(|name| case.scheduler.clone().unwrap_or_else(|| name.into())),
        lane: engine.lane().map(|lane| lane.as_str().into()),
        cc: case.cc.clone().or(engine.default_cc().map(Into::into)),
        weights: case.weights.clone(),
        policy: case.policy.decides().then(|| case.policy.as_str().into()),
        access: engine.access().map(str::to_owned),
        traffic: case.traffic.kind().into(),
        direction: case.traffic.direction().as_str().into(),
        repeat,
        ..CaseResult::default()
    }
}

pub(super) async fn assemble(i: &Inputs<'_>, radio: &Radio) -> Result<CaseResult> {
    let case = i.case;
    let direction = case.traffic.direction();
    let (from, to) = i.traffic.window;
    let seconds = to.since(from).as_secs_f64();
    let receiver = i.traffic.measured.receiver(direction);
    let sender = i.traffic.measured.sender(direction);
    let mut r = blank(case, i.repeat);
    r.seconds = seconds;
    r.cpu_seconds = i.traffic.cpu_seconds;
    shares(&mut r, i, from, to);
    r.goodput_mbps = goodput(i, receiver, &r);
    others(&mut r, i, from, to);
    if case.traffic.as_much_as_passes() {
        r.payload_fraction = Some(fraction(i));
        r.ceiling_mbps = ceiling(i, radio, from, to).await?;
        r.efficiency = r
            .ceiling_mbps
            .filter(|c| *c > 0.0)
            .map(|c| r.goodput_mbps / c);
        if let Some(ideal) = &case.ideal {
            r.ideal_mbps = mean_rate(ideal, from.since(i.start), to.since(i.start));
            r.capacity_mbps = r.ceiling_mbps.map(|c| c / fraction(i));
        }
    }
    if let Some(rec) = receiver {
        r.gap_ms = rec.gap_ms;
        r.latency_ms = rec.latency_ms;
        r.latency_cdf.clone_from(&rec.latency_cdf);
        r.completion_s = rec.completion_s;
        r.intact = Some(rec.intact && sender.is_none_or(|s| s.intact));
        if let Some(v) = &rec.video {
            r.stalls = Some(v.stalls);
            r.stalled_s = Some(v.stalled_s);
        }
    }
    packets::add(&mut r, case, i.traffic);
    r.energy = i.sampler.radios().of_device(from, to);
    r.others_energy = i.sampler.radios().of_others(from, to);
    r.notes.extend(i.sampler.radios().notes());
    if let Some(f) = sender.and_then(|s| s.facts.as_ref()) {
        r.retransmitted_bytes = f.retransmitted_bytes;
        r.reinjected_bytes = f.reinjected_bytes;
        r.cc = r.cc.or_else(|| f.cc.clone());
        if f.fallback == Some(true) {
            r.notes.push("MPTCP fell back to TCP".into());
        }
    }
    if !case.engine.get().in_kernel() {
        // The sender's own connection ends at the daemon beside it: what is sent again there
        // crosses no access.
        r.retransmitted_bytes = i.sampler.sent_again();
    }
    r.recoveries = i
        .schedule
        .outages
        .iter()
        .filter_map(|o| recovery(o, i.start, receiver))
        .collect();
    for (name, m) in &i.stats.media {
        let total = to.since(i.start).as_secs_f64();
        let busy = if total > 0.0 {
            (m.busy.as_secs_f64() / total).min(1.0)
        } else {
            0.0
        };
        let collisions = m.collisions as f64 / (m.rounds as f64).max(1.0);
        r.media.insert(name.clone(), MediumUse { busy, collisions });
    }
    r.host = Host {
        late_wakes: i.stats.lateness.late_wakes,
        max_late_ms: i.stats.lateness.max_wake_us / 1e3,
    };
    let used = i.sampler.used(from, to);
    r.machine_cpu_seconds = used.machine;
    r.engine_cpu_seconds = used
        .device
        .zip(used.proxy)
        .map(|(device, proxy)| EngineCpu { device, proxy });
    let full = |s| processors::online().is_some_and(|n| processors::are_full(s, to.since(from), n));
    if r.machine_cpu_seconds.is_some_and(full) {
        r.notes.push(processors::NOTE.to_owned());
    }
    notes(&mut r, i, receiver, sender);
    kernel_counters::add(&mut r, i.counters);
    Ok(r)
}

/// Share of each access in what left the links in the window.
fn shares(r: &mut CaseResult, i: &Inputs<'_>, from: Time, to: Time) {
    let window = i.sampler.window(from, to);
    let bytes: u64 = window.values().map(|v| v.0).sum();
    let packets: u64 = window.values().map(|v| v.1).sum();
    for (name, (b, p)) in window {
        if bytes > 0 && packets > 0 {
            r.share.insert(name.clone(), b as f64 / bytes as f64);
            r.packet_share.insert(name, p as f64 / packets as f64);
        }
    }
}

/// Returns the goodput that the receiver counted, Mbit/s; for a command, of which we see only
/// packets, that of the bytes on the links less the headers of full-sized packets.
fn goodput(i: &Inputs<'_>, receiver: Option<&TrafficReport>, r: &CaseResult) -> f64 {
    if let Some(rec) = receiver {
        return rec.goodput_mbps;
    }
    let (from, to) = i.traffic.window;
    let ip: u64 = i.sampler.window(from, to).values().map(|v| v.0).sum();
    if r.seconds > 0.0 {
        ip as f64 * 8.0 * fraction(i) / r.seconds / 1e6
    } else {
        0.0
    }
}

/// Goodput of each bystander, as [`goodput`] of a command, and what the
/// measured device got of everything.
fn others(r: &mut CaseResult, i: &Inputs<'_>, from: Time, to: Time) {
    let (bytes, span) = i.sampler.others(from, to);
    if span.is_zero() {
        return;
    }
    for b in &i.case.bystanders {
        let Some(traffic) = &b.traffic else { continue };
        let payload = payload(i, traffic, b.mptcp);
        for name in b.devices() {
            let ip = bytes.get(&name).copied().unwrap_or_default();
            let mbps = ip as f64 * 8.0 * payload / span.as_secs_f64() / 1e6;
            r.others_mbps.insert(name, mbps);
        }
    }
    let all = r.goodput_mbps + r.others_mbps.values().sum::<f64>();
    if !r.others_mbps.is_empty() && all > 0.0 {
        r.share_of_all = Some(r.goodput_mbps / all);
    }
}

fn recovery(o: &Outage, start: Time, receiver: Option<&TrafficReport>) -> Option<Recovery> {
    let up = o.up?;
    // A gap that begins in the outage belongs to it, and one that was under way too.
    let gap = receiver.map(|r| {
        r.gaps
            .iter()
            .filter(|g| {
                let end = g.start_ns + Duration::from_secs_f64(g.length_ms / 1e3);
                g.start_ns <= up && end >= o.down
            })
            .map(|g| g.length_ms)
            .fold(0.0, f64::max)
    });
    Some(Recovery {
        access: o.access.clone(),
        up_s: up.since(start).as_secs_f64(),
        reuse_ms: o.reused.map(|t| t.since(up).as_secs_f64() * 1e3),
        // Gaps below 50 ms are not listed one by one.
        gap_ms: gap.filter(|g| *g > 0.0),
        out_ms: o.out.map(|t| t.since(o.down).as_secs_f64() * 1e3),
    })
}

fn notes(
    r: &mut CaseResult,
    i: &Inputs<'_>,
    receiver: Option<&TrafficReport>,
    sender: Option<&TrafficReport>,
) {
    for (side, report) in [("receiver", receiver), ("sender", sender)] {
        for e in report.iter().flat_map(|r| &r.errors) {
            r.notes.push(format!("{side}: {e}"));
        }
    }
    if let Some(p) = &i.traffic.problem {
        r.failed = Some(p.clone());
    }
    if r.intact == Some(false) {
        r.failed = Some("payload was corrupted on the way".into());
    }
    let unfinished =
        i.case.traffic.ends_by_itself() && receiver.is_some_and(|r| r.completion_s.is_none());
    if unfinished && r.failed.is_none() {
        r.notes.push(format!(
            "not complete within {} s",
            i.case.duration.as_secs_f64()
        ));
    }
    if receiver.is_some_and(|rec| rec.window_bytes_received == 0) && r.failed.is_none() {
        r.failed = Some("nothing was received in the measured time".into());
    }
    if receiver.is_some_and(|rec| rec.gaps.len() >= MOST_LISTED) {
        r.notes.push(format!(
            "more than {MOST_LISTED} gaps above 50 ms: outages after those have none"
        ));
    }
    let io = i
        .stats
        .links
        .values()
        .fold((0, 0), |a, l| (a.0 + l.io.no_buffer, a.1 + l.io.drop_full));
    if io.0 + io.1 > 0 {
        r.notes.push(format!(
            "the emulator dropped {} packets for want of memory, the host {}",
            io.0, io.1
        ));
    }
}

/// Pauses of the host, as events.
pub(super) fn pauses(case: &Case, repeat: u32, stats: &Stats) -> Vec<EventRow> {
    stats
        .lateness
        .pauses
        .iter()
        .map(|p| EventRow {
            case: case.name.clone(),
            repeat,
            t_s: p.at_s,
            access: String::new(),
            what: format!("emulator woke {:.1} ms late", p.late_ms),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_belongs_to_the_outage_that_it_touches() {
        let at = |s: f64| Time::from(Duration::from_secs_f64(s));
        let mut report: TrafficReport = serde_json::from_value(serde_json::json!({
            "side": "client", "kind": "bulk", "transport": "mptcp", "start_ns": 0,
            "window_start_ns": 0, "window_end_ns": 0, "seconds": 1.0,
            "bytes_received": 0, "window_bytes_received": 0, "bytes_sent": 0,
            "window_bytes_sent": 0, "goodput_mbps": 0.0, "intact": true, "corruption": null,
            "gap_ms": null, "completion_s": null, "latency_ms": null, "latency_samples": 0,
            "messages": null, "video": null, "cpu_seconds": 0.0, "facts": null, "errors": []
        }))
        .unwrap();
        report.gaps = serde_json::from_value(serde_json::json!([
            { "start_ns": 2_000_000_000u64, "length_ms": 900.0 },
            { "start_ns": 5_010_000_000u64, "length_ms": 210.0 }
        ]))
        .unwrap();
        let o = Outage::for_test("wifi", at(5.0), at(10.0), Some(at(10.4)));
        let r = recovery(&o, at(0.0), Some(&report)).unwrap();
        assert_eq!(r.gap_ms, Some(210.0));
        assert!((r.reuse_ms.unwrap() - 400.0).abs() < 1e-6);
    }
}
