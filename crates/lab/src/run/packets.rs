//! Numbers of packets, calls and pages, of the measured traffic and of that beside it.

use braid_core::stats::Percentiles;

use super::traffic::{Reports, Traffics};
use crate::scenario::{Case, Direction, Traffic};
use crate::summary::{BesideResult, CaseResult, Packets, Pages, Voice};

/// Adds to a result what its traffic says of packets, calls and pages, and the traffic beside it.
pub(super) fn add(r: &mut CaseResult, case: &Case, traffic: &Traffics) {
    let direction = case.traffic.direction();
    r.packets = packets(&case.traffic, &traffic.measured);
    r.voice = voice(direction, &traffic.measured);
    r.web = pages(&traffic.measured);
    if let Some(slowest) = latency(direction, &traffic.measured) {
        r.latency_ms = Some(slowest);
    }
    let Some((beside, reports)) = case.beside.as_ref().zip(traffic.beside.as_ref()) else {
        return;
    };
    let own = &beside.traffic;
    let direction = own.direction();
    let goodputs = reports.receivers(direction).map(|r| r.goodput_mbps);
    r.beside = Some(BesideResult {
        traffic: own.kind().into(),
        direction: direction.as_str().into(),
        goodput_mbps: goodputs.reduce(f64::min).unwrap_or_default(),
        latency_ms: latency(direction, reports),
        gap_ms: reports.receiver(direction).and_then(|r| r.gap_ms),
        packets: packets(own, reports),
        voice: voice(direction, reports),
        web: pages(reports),
    });
    let mut ends = [&reports.client, &reports.server].into_iter().flatten();
    let both_intact = ends.all(|r| r.intact);
    r.intact = r.intact.map(|all| all && both_intact);
    for (side, report) in [("client", &reports.client), ("server", &reports.server)] {
        for e in report.iter().flat_map(|r| &r.errors) {
            r.notes.push(format!("beside, {side}: {e}"));
        }
    }
}

/// Times of web pages, which the client knows.
fn pages(reports: &Reports) -> Option<Pages> {
    let web = reports.client.as_ref()?.web?;
    Some(Pages {
        pages: web.pages,
        first_byte_ms: web.first_byte_ms?,
        page_ms: web.page_ms?,
    })
}

/// Counts of datagrams, of both directions together; `None` for traffic over a stream, which loses
/// nothing.
fn packets(traffic: &Traffic, reports: &Reports) -> Option<Packets> {
    if !traffic.is_udp() {
        return None;
    }
    let all = reports.receivers(traffic.direction());
    let counts = all.filter_map(|r| r.messages).map(|m| Packets {
        due: m.due,
        lost: m.lost,
        duplicated: m.duplicated,
        reordered: m.reordered,
    });
    counts.reduce(|a, b| Packets {
        due: a.due + b.due,
        lost: a.lost + b.lost,
        duplicated: a.duplicated + b.duplicated,
        reordered: a.reordered + b.reordered,
    })
}

/// Quality of a call at the end that hears worse; what is not played, of both.
fn voice(direction: Direction, reports: &Reports) -> Option<Voice> {
    let ends = reports.receivers(direction).filter_map(|r| r.voice);
    let heard = ends.map(|v| Voice {
        mos: v.mos,
        worst_mos: v.worst_mos,
        mouth_to_ear_ms: v.mouth_to_ear_ms,
        unplayed: v.unplayed,
    });
    heard.reduce(|a, b| Voice {
        mos: a.mos.min(b.mos),
        worst_mos: a.worst_mos.min(b.worst_mos),
        mouth_to_ear_ms: a.mouth_to_ear_ms.max(b.mouth_to_ear_ms),
        unplayed: a.unplayed + b.unplayed,
    })
}

/// Latency of the direction that is slower.
fn latency(direction: Direction, reports: &Reports) -> Option<Percentiles> {
    let all = reports.receivers(direction).filter_map(|r| r.latency_ms);
    all.max_by(|a, b| a.mean.total_cmp(&b.mean))
}

#[cfg(test)]
mod tests {
    use braid_traffic::TrafficReport;
    use serde_json::json;

    use super::*;
    use crate::scenario::{Overrides, Scenario};

    /// Report of an end of a call at which so much was lost.
    fn heard(side: &str, mos: f64, lost: u64, mean_ms: f64) -> Option<TrafficReport> {
        let latency = json!({ "mean": mean_ms, "p50": 1.0, "p90": 1.0, "p99": 1.0, "max": 1.0 });
        let report = json!({
            "side": side, "kind": "voip", "transport": "udp", "start_ns": 0,
            "window_start_ns": 0, "window_end_ns": 0, "seconds": 1.0,
            "bytes_received": 0, "window_bytes_received": 0, "bytes_sent": 0,
            "window_bytes_sent": 0, "goodput_mbps": 0.05, "intact": side == "client",
            "corruption": null, "gap_ms": 20.0, "completion_s": null, "latency_ms": latency,
            "latency_samples": 0, "video": null, "cpu_seconds": 0.0, "facts": null, "errors": [],
            "messages": {
                "due": 100, "sent": 100, "received": 100 - lost, "lost": lost,
                "duplicated": 0, "reordered": 3, "max_late_ms": 0.0
            },
            "voice": {
                "mos": mos, "worst_mos": mos - 1.0, "r_factor": 80.0, "mouth_to_ear_ms": 90.0,
                "unplayed": lost, "late": 0
            }
        });
        Some(serde_json::from_value(report).expect("a report"))
    }

    fn case(keys: &str) -> Case {
        let text = format!(
            "name = \"t\"\nduration = \"2 s\"\n[access.a]\nkind = \"5g\"\n\
             down = {{ rate = \"10 Mbit/s\" }}\n[[case]]\nname = \"c\"\nengine = \"tcp\"\n\
             access = \"a\"\n{keys}\n"
        );
        let here = std::path::Path::new(".");
        let scenario = Scenario::parse(&text, here, here, &Overrides::default());
        scenario.expect("a scenario").cases.remove(0)
    }

    fn call() -> Reports {
        Reports {
            client: heard("client", 4.2, 1, 20.0),
            server: heard("server", 3.9, 10, 35.0),
        }
    }

    fn of(case: &Case, measured: Reports, beside: Option<Reports>) -> CaseResult {
        let traffics = Traffics {
            measured,
            beside,
            cpu_seconds: 0.0,
            window: Default::default(),
            problem: None,
        };
        let mut r = CaseResult {
            intact: Some(true),
            ..CaseResult::default()
        };
        add(&mut r, case, &traffics);
        r
    }

    #[test]
    fn a_call_is_as_good_as_the_end_that_hears_worse() {
        let r = of(&case("traffic = \"voip\""), call(), None);
        let (voice, packets) = (r.voice.unwrap(), r.packets.unwrap());
        assert_eq!((voice.mos, voice.worst_mos, voice.unplayed), (3.9, 2.9, 11));
        assert_eq!((packets.due, packets.lost, packets.reordered), (200, 11, 6));
        assert_eq!(r.latency_ms.unwrap().mean, 35.0);
        assert_eq!(r.beside, None);
        let one_way = case("traffic = { kind = \"voip\", direction = \"down\" }");
        let r = of(&one_way, call(), None);
        assert_eq!((r.voice.unwrap().mos, r.packets.unwrap().due), (4.2, 100));
    }

    #[test]
    fn the_traffic_beside_has_its_own_numbers() {
        let case = case("traffic = \"bulk\"\nbeside = \"voip\"");
        let r = of(&case, Reports::default(), Some(call()));
        assert_eq!((r.voice, r.packets, r.latency_ms), (None, None, None));
        let beside = r.beside.unwrap();
        assert_eq!((&*beside.traffic, &*beside.direction), ("voip", "both"));
        assert_eq!(beside.voice.unwrap().mos, 3.9);
        assert_eq!(beside.latency_ms.unwrap().mean, 35.0);
        assert_eq!(beside.gap_ms, Some(20.0));
        // A wrong byte in either spoils the case.
        assert_eq!(r.intact, Some(false));
    }
}
