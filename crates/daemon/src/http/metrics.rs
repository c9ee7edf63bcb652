//! `/metrics`: the state of an end in the text format of Prometheus, version 0.0.4.
//!
//! Names follow <https://prometheus.io/docs/practices/naming>: base units (bytes, seconds,
//! ratios from 0 to 1), counters end in `_total`. Labels are bounded: names of accesses, never
//! flows. docs/metrics.md lists them.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State as Shared;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use braid_api::{AccessState, Connection, ControlStatus, Engine, LanStatus, Rules, Status};
use prometheus::core::Collector;
use prometheus::{CounterVec, GaugeVec, IntCounterVec, IntGaugeVec, Opts, Registry, TextEncoder};
use tokio::net::TcpListener;

use crate::DaemonError;
use crate::daemon::Daemon;

/// Media type of the text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

type Result<T> = std::result::Result<T, prometheus::Error>;

/// Metrics of one moment, each registered once.
struct Page(Registry);

impl Page {
    fn add<C: Collector + Clone + 'static>(&self, metric: C) -> Result<C> {
        self.0.register(Box::new(metric.clone()))?;
        Ok(metric)
    }

    fn counters(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec> {
        self.add(IntCounterVec::new(Opts::new(name, help), labels)?)
    }

    fn sums(&self, name: &str, help: &str, labels: &[&str]) -> Result<CounterVec> {
        self.add(CounterVec::new(Opts::new(name, help), labels)?)
    }

    fn gauges(&self, name: &str, help: &str, labels: &[&str]) -> Result<GaugeVec> {
        self.add(GaugeVec::new(Opts::new(name, help), labels)?)
    }

    fn numbers(&self, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec> {
        self.add(IntGaugeVec::new(Opts::new(name, help), labels)?)
    }
}

/// Returns the text that `/metrics` answers with.
///
/// # Errors
/// A metric is defined twice, or wrongly: a bug.
fn text(status: &Status, control: &ControlStatus, rules: &Rules) -> Result<String> {
    let page = Page(Registry::new());
    let build = page.numbers(
        "braid_build_info",
        "Version of the daemon, and what it is.",
        &["version", "role", "engine"],
    )?;
    let version = env!("CARGO_PKG_VERSION");
    let engines: Vec<&str> = status.engines().into_iter().map(Engine::as_str).collect();
    build
        .with_label_values(&[version, status.role.as_str(), &engines.join("+")])
        .set(1);
    let reload = page.numbers(
        "braid_config_last_reload_successful",
        "Whether the configuration was taken when it was last read.",
        &[],
    )?;
    reload
        .with_label_values(&[] as &[&str])
        .set(i64::from(status.config_error.is_none()));
    let connections = status.connections.iter().flat_map(|c| &c.connections);
    connection_counts(&page, &status.engines(), connections)?;
    if let Some(lan) = &status.lan {
        hosts(&page, lan)?;
        ruled(&page, rules)?;
        classes(&page, rules)?;
    }
    carried(&page, status)?;
    capped(&page, status)?;
    energy(&page, status)?;
    health(&page, status)?;
    steering(&page, status)?;
    probes(&page, control)?;
    TextEncoder::new().encode_to_string(&page.0.gather())
}

/// Connections by what carries them.
fn connection_counts<'a>(
    page: &Page,
    engines: &[Engine],
    all: impl Iterator<Item = &'a Connection>,
) -> Result<()> {
    let counts = page.numbers(
        "braid_connections",
        "Connections, by what carries them: mpquic (sessions), mptcp, fallback (begun with MPTCP, \
         now TCP), tcp.",
        &["carrier"],
    )?;
    // The kernel lists MPTCP connections beside plain TCP whatever the engine for that is.
    let bonded = |engine: Engine| match engine {
        Engine::Mpquic => engine.as_str(),
        Engine::Tcp | Engine::Mptcp => Engine::Mptcp.as_str(),
    };
    let kinds = engines.iter().map(|e| bonded(*e));
    for carrier in kinds.chain(["fallback", "tcp"]) {
        counts.with_label_values(&[carrier]).set(0);
    }
    for c in all {
        let carrier = match (c.fallback, c.token) {
            (true, _) => "fallback",
            (false, Some(_)) => bonded(c.engine.unwrap_or(engines[0])),
            (false, None) => "tcp",
        };
        counts.with_label_values(&[carrier]).inc();
    }
    Ok(())
}

/// Hosts behind a device.
fn hosts(page: &Page, lan: &LanStatus) -> Result<()> {
    let one = |name: &str, help: &str, value: i64| -> Result<()> {
        let metric = page.numbers(name, help, &[])?;
        metric.with_label_values(&[] as &[&str]).set(value);
        Ok(())
    };
    one(
        "braid_lan_connections",
        "Connections of hosts that are open over the bond.",
        lan.connections.try_into().unwrap_or(i64::MAX),
    )?;
    one(
        "braid_lan_tunnel_up",
        "Whether packets of hosts beside TCP go through a tunnel.",
        (!lan.tunnel.is_empty()).into(),
    )?;
    one(
        "braid_lan_kill_switch",
        "Whether what cannot go over the bond is refused.",
        lan.kill_switch.into(),
    )
}

/// Flows and bytes of each rule; nothing where there are none.
fn ruled(page: &Page, rules: &Rules) -> Result<()> {
    let flows = page.counters(
        "braid_rule_flows_total",
        "Flows of hosts that have begun and met a rule; default: none.",
        &["rule"],
    )?;
    let bytes = page.counters(
        "braid_rule_bytes_total",
        "Bytes of packets of hosts that met a rule, with the headers of IP; default: none.",
        &["rule", "direction"],
    )?;
    let all = rules.rules.iter().map(|r| (r.title.as_str(), r.count));
    let rest = (!rules.rules.is_empty()).then_some(("default", rules.default));
    for (rule, count) in all.chain(rest) {
        flows.with_label_values(&[rule]).inc_by(count.flows);
        for (direction, n) in [("down", count.down_bytes), ("up", count.up_bytes)] {
            bytes.with_label_values(&[rule, direction]).inc_by(n);
        }
    }
    Ok(())
}

/// Caps of accesses; nothing of those that have none.
fn capped(page: &Page, status: &Status) -> Result<()> {
    let cap = page.numbers(
        "braid_access_cap_bytes",
        "Bytes that an access may carry in a month of its contract.",
        &["access"],
    )?;
    let used = page.numbers(
        "braid_access_cap_used_bytes",
        "Bytes that an access has carried in this month, both directions.",
        &["access"],
    )?;
    for a in &status.accesses {
        if let Some(c) = &a.cap {
            let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
            cap.with_label_values(&[&a.name])
                .set(number(c.monthly_bytes));
            used.with_label_values(&[&a.name]).set(number(c.used_bytes));
        }
    }
    Ok(())
}

/// Energy of radios that have models, and power of counters; nothing where there are none.
fn energy(page: &Page, status: &Status) -> Result<()> {
    let joules = page.sums(
        "braid_access_energy_joules_total",
        "Energy of an access's radio since the daemon began, by its power model.",
        &["access", "state"],
    )?;
    for a in &status.accesses {
        let Some(e) = &a.energy else { continue };
        for (state, value) in [
            ("active", e.active_joules),
            ("promotion", e.promotion_joules),
            ("tail", e.tail_joules),
            ("idle", e.idle_joules),
        ] {
            joules.with_label_values(&[&*a.name, state]).inc_by(value);
        }
    }
    let watts = page.gauges(
        "braid_power_watts",
        "Power that a counter of the device shows; rail: the supply that it measures, or system.",
        &["source", "rail"],
    )?;
    for c in &status.power {
        let Some(mw) = c.power_mw else { continue };
        let rail = c.rail.as_deref().unwrap_or("system");
        watts.with_label_values(&[&*c.source, rail]).set(mw / 1e3);
    }
    Ok(())
}

/// Bytes of each class on each access; nothing where there are no classes.
fn classes(page: &Page, rules: &Rules) -> Result<()> {
    let bytes = page.counters(
        "braid_class_sent_bytes_total",
        "Bytes that the device has sent of a class on an access, with the headers of IP.",
        &["class", "access"],
    )?;
    for class in &rules.classes {
        for (access, n) in &class.sent_bytes {
            bytes.with_label_values(&[&class.name, access]).inc_by(*n);
        }
    }
    Ok(())
}

/// Bytes and subflows of each access.
fn carried(page: &Page, status: &Status) -> Result<()> {
    let sent = page.counters(
        "braid_access_sent_bytes_total",
        "Payload bytes sent on an access since the daemon began, retransmissions included.",
        &["access"],
    )?;
    let again = page.counters(
        "braid_access_retransmitted_bytes_total",
        "Payload bytes sent again on an access since the daemon began.",
        &["access"],
    )?;
    let received = page.counters(
        "braid_access_received_bytes_total",
        "Payload bytes received on an access since the daemon began.",
        &["access"],
    )?;
    let subflows = page.numbers(
        "braid_subflows",
        "Established subflows, paths and plain TCP connections on an access.",
        &["access"],
    )?;
    for a in &status.accesses {
        let access = [a.name.as_str()];
        sent.with_label_values(&access).inc_by(a.sent_bytes);
        again
            .with_label_values(&access)
            .inc_by(a.retransmitted_bytes);
        received.with_label_values(&access).inc_by(a.received_bytes);
        subflows.with_label_values(&access).set(a.subflows.into());
    }
    Ok(())
}

/// Whether an access works, and how well.
fn health(page: &Page, status: &Status) -> Result<()> {
    let info = page.numbers(
        "braid_access_info",
        "Technology and interface of an access.",
        &["access", "kind", "interface"],
    )?;
    let states = page.numbers(
        "braid_access_state",
        "State of an access: 1 for the one that it is in, 0 for the others.",
        &["access", "state"],
    )?;
    let rtt = page.gauges(
        "braid_access_rtt_seconds",
        "Least smoothed round-trip time of the subflows on an access.",
        &["access"],
    )?;
    let probe = page.gauges(
        "braid_access_probe_rtt_seconds",
        "Round-trip time of the last probe that was answered.",
        &["access"],
    )?;
    let loss = page.gauges(
        "braid_access_loss_ratio",
        "Share of what was sent that was sent again, over the life of the subflows.",
        &["access"],
    )?;
    for a in &status.accesses {
        let access = [a.name.as_str()];
        let interface = a.interface.as_deref().unwrap_or_default();
        let kind = a.kind.to_string();
        info.with_label_values(&[a.name.as_str(), &kind, interface])
            .set(1);
        for state in AccessState::ALL {
            states
                .with_label_values(&[a.name.as_str(), state.as_str()])
                .set(i64::from(state == a.state));
        }
        if let Some(ms) = a.srtt_ms {
            rtt.with_label_values(&access).set(ms / 1e3);
        }
        if let Some(ms) = a.probe_rtt_ms {
            probe.with_label_values(&access).set(ms / 1e3);
        }
        if let Some(ratio) = a.loss {
            loss.with_label_values(&access).set(ratio);
        }
    }
    Ok(())
}

/// How the accesses are to be used.
fn steering(page: &Page, status: &Status) -> Result<()> {
    let weights = page.gauges(
        "braid_access_weight",
        "Share of the traffic that an access is to have, relative to the others.",
        &["access"],
    )?;
    let priority = page.numbers(
        "braid_access_priority",
        "Place of an access in the order: those of the least number carry.",
        &["access"],
    )?;
    let expected = page.gauges(
        "braid_access_expected_bytes_per_second",
        "Rate that an access is expected to carry.",
        &["access", "direction"],
    )?;
    for a in &status.accesses {
        if let Some(weight) = a.weight {
            weights.with_label_values(&[&a.name]).set(weight);
        }
        if let Some(place) = a.priority {
            priority.with_label_values(&[&a.name]).set(place.into());
        }
        for (direction, rate) in [("down", a.expected.down), ("up", a.expected.up)] {
            if let Some(rate) = rate {
                expected
                    .with_label_values(&[a.name.as_str(), direction])
                    .set(rate.as_mbps() * 1e6 / 8.0);
            }
        }
    }
    Ok(())
}

/// Cost of probes by transfers.
fn probes(page: &Page, control: &ControlStatus) -> Result<()> {
    let bytes = page.counters(
        "braid_access_probe_bytes_total",
        "Payload bytes of transfers that measured the access, both directions, since the daemon \
         began.",
        &["access"],
    )?;
    for a in &control.accesses {
        if let Some(probe) = &a.probe {
            bytes.with_label_values(&[&a.name]).inc_by(probe.bytes);
        }
    }
    Ok(())
}

/// Answers `GET /metrics`.
pub(crate) async fn answer(Shared(state): Shared<Arc<Daemon>>) -> Response {
    let failed = |why: String| (StatusCode::INTERNAL_SERVER_ERROR, why).into_response();
    // All else is told without them.
    let rules = state.rules().await.unwrap_or_default();
    match state.status_with_connections().await {
        Err(e) => failed(e.to_string()),
        Ok(status) => match text(&status, &state.decisions(), &rules) {
            Ok(text) => ([(header::CONTENT_TYPE, TEXT)], text).into_response(),
            Err(e) => failed(format!("write the metrics: {e}: this is a bug")),
        },
    }
}

/// Listens where `[metrics] listen` says.
///
/// # Errors
/// The address is taken, or is not of this machine.
pub(crate) async fn listen(at: SocketAddr) -> std::result::Result<TcpListener, DaemonError> {
    TcpListener::bind(at).await.map_err(|e| {
        DaemonError::Failed(format!(
            "serve metrics at {at} ([metrics] listen): {e}: choose another port"
        ))
    })
}

/// Serves `/metrics` alone, for ever.
pub(crate) async fn serve(listener: TcpListener, state: Arc<Daemon>) -> DaemonError {
    let app = Router::new()
        .route("/metrics", get(answer))
        .with_state(state);
    let done = axum::serve(listener, app).await;
    let why = done.err().map_or("it ended".to_owned(), |e| e.to_string());
    DaemonError::Failed(format!("serve metrics: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> Status {
        serde_json::from_str(
            r#"{"role": "device", "engine": "mptcp", "t_ns": 1, "limits": null,
            "scheduler": "default", "default_congestion_control": "cubic", "accesses": [
            {"name": "nr", "kind": "5g", "address": null, "interface": "wwan0", "ifindex": 3,
             "up": true, "has_address": true, "enabled": true, "backup": false, "weight": 2.5,
             "endpoint_id": 1, "state": "silent", "srtt_ms": 20.5, "loss": 0.01, "subflows": 2,
             "sent_bytes": 18446744073709551615, "received_bytes": 7,
             "expected": {"down_bps": 80000000}}],
            "lan": {"interfaces": ["lan0"], "kill_switch": true, "connections": 12}}"#,
        )
        .unwrap()
    }

    #[test]
    fn the_page_has_every_figure_in_base_units() {
        let control: ControlStatus = serde_json::from_str(
            r#"{"accesses": [{"name": "nr", "probe": {"bytes": 9}}, {"name": "wifi"}]}"#,
        )
        .unwrap();
        let rules: Rules = serde_json::from_str(
            r#"{"t_ns": 1, "rules": [{"title": "tv", "rule": {"block": true}, "by": [null, null], "count":
             {"flows": 3, "up_packets": 4, "up_bytes": 500, "down_packets": 0, "down_bytes": 6}}],
             "default": {"flows": 7, "up_packets": 0, "up_bytes": 8, "down_packets": 0, "down_bytes": 0},
             "classes": [{"name": "voice", "sent_bytes": {"nr": 8}}]}"#,
        )
        .unwrap();
        let text = text(&status(), &control, &rules).unwrap();
        for line in [
            "# TYPE braid_access_sent_bytes_total counter",
            "braid_access_sent_bytes_total{access=\"nr\"} 18446744073709552000",
            "braid_access_received_bytes_total{access=\"nr\"} 7",
            "braid_access_retransmitted_bytes_total{access=\"nr\"} 0",
            "braid_access_info{access=\"nr\",interface=\"wwan0\",kind=\"5g\"} 1",
            "braid_access_state{access=\"nr\",state=\"silent\"} 1",
            "braid_access_state{access=\"nr\",state=\"active\"} 0",
            "braid_access_rtt_seconds{access=\"nr\"} 0.0205",
            "braid_access_loss_ratio{access=\"nr\"} 0.01",
            "braid_access_weight{access=\"nr\"} 2.5",
            "braid_access_expected_bytes_per_second{access=\"nr\",direction=\"down\"} 10000000",
            "braid_subflows{access=\"nr\"} 2",
            "braid_connections{carrier=\"mptcp\"} 0",
            "braid_config_last_reload_successful 1",
            "braid_lan_connections 12",
            "braid_lan_tunnel_up 0",
            "braid_lan_kill_switch 1",
            "braid_rule_flows_total{rule=\"tv\"} 3",
            "braid_rule_flows_total{rule=\"default\"} 7",
            "braid_rule_bytes_total{direction=\"up\",rule=\"tv\"} 500",
            "braid_rule_bytes_total{direction=\"down\",rule=\"tv\"} 6",
            "braid_class_sent_bytes_total{access=\"nr\",class=\"voice\"} 8",
            "braid_access_probe_bytes_total{access=\"nr\"} 9",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert!(!text.contains("access=\"wifi\""));
        assert!(!text.contains("probe_rtt"), "what is not known is not told");
    }
}
