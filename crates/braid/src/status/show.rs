//! The state of a daemon as JSON and as a table.

use std::collections::HashMap;
use std::net::IpAddr;

use braid_api::Connections;
use serde::Serialize;

use super::listed::{self, Listed, listed};
use super::rates::{Fares, fares};
use super::view::{AccessView, Ignored, View, is_used};
use crate::table::{self, Column, Output, Tone};

/// Output of `braid status --json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Shown {
    role: String,
    engine: String,
    scheduler: Option<String>,
    congestion_control: String,
    connections: Count,
    accesses: Vec<Access>,
    ignored: Vec<Ignored>,
    config_error: Option<String>,
    notes: Vec<String>,
    /// The connections over MPTCP, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<Vec<Listed>>,
}

/// How many connections there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Count {
    /// Sessions of Multipath QUIC.
    mpquic: usize,
    /// Over MPTCP.
    mptcp: usize,
    /// Begun with MPTCP, and now TCP (RFC 8684 3.7).
    fallback: usize,
    /// Plain TCP from the start.
    tcp: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Access {
    name: String,
    kind: String,
    interface: Option<String>,
    addresses: Vec<IpAddr>,
    state: String,
    why: Option<String>,
    note: Option<String>,
    backup: bool,
    weight: Option<f64>,
    priority: Option<u16>,
    endpoints: Vec<u8>,
    #[serde(flatten)]
    fares: Fares,
}

impl Shown {
    /// From what was read; rates take an earlier reading of the connections.
    pub(super) fn new(
        view: &View,
        before: Option<&Connections>,
        now: &Connections,
        list: bool,
    ) -> Self {
        let fares = fares(before, now);
        let all = &now.connections;
        let mptcp = |fallback| {
            let is = |c: &&braid_api::Connection| c.token.is_some() && c.fallback == fallback;
            all.iter().filter(is).count()
        };
        let left_behind = all
            .iter()
            .filter(|c| c.token.is_none() && c.fallback)
            .count();
        let (over, fell) = (mptcp(false), mptcp(true) + left_behind);
        let quic = view.engine == "mpquic";
        Self {
            role: view.role.clone(),
            engine: view.engine.clone(),
            scheduler: view.scheduler.clone(),
            congestion_control: view.default_congestion_control.clone(),
            connections: Count {
                mpquic: if quic { over } else { 0 },
                mptcp: if quic { 0 } else { over },
                fallback: fell,
                tcp: all.len() - over - fell,
            },
            accesses: view.accesses.iter().map(|a| access(a, &fares)).collect(),
            ignored: view.ignored.clone(),
            config_error: view.config_error.clone(),
            notes: view.notes.clone(),
            list: list.then(|| listed(now)),
        }
    }

    /// Heading, table and notes; each line ends.
    pub(super) fn text(&self, output: Output) -> String {
        let c = self.connections;
        let connections = match &*self.engine {
            "mpquic" => format!("sessions: {}", c.mpquic),
            _ => format!(
                "connections: {} MPTCP, {} fallen back to TCP, {} TCP",
                c.mptcp, c.fallback, c.tcp
            ),
        };
        let mut text = format!(
            "{} with {}, {}congestion control {}\n{connections}\n",
            self.role,
            self.engine,
            match &self.scheduler {
                Some(s) => format!("scheduler {s}, "),
                None => String::new(),
            },
            self.congestion_control,
        );
        // A line for each access where programs may read it.
        let between = match output {
            Output::Terminal(_) => "\n",
            Output::Plain => " ",
        };
        let mut columns = self.columns(between);
        give_way(&mut columns, output.width());
        text += &table::draw(&columns, output);
        for a in &self.accesses {
            if let Some(why) = &a.why {
                text += &format!("{}: {}: {why}\n", a.name, a.state);
            }
        }
        for a in &self.accesses {
            if let Some(note) = &a.note {
                text += &format!("{}: {note}\n", a.name);
            }
        }
        for i in &self.ignored {
            text += &format!("{}: serves as no access: {}\n", i.interface, i.why);
        }
        if let Some(e) = &self.config_error {
            text += &format!("not all of the configuration is in force: {e}\n");
        }
        for note in &self.notes {
            text += &format!("note: {note}\n");
        }
        if let Some(all) = &self.list {
            text += &table::draw(&listed::columns(all, between), output);
        }
        text
    }

    /// `between` parts the addresses of an access.
    fn columns(&self, between: &str) -> Vec<Column> {
        let words = |f: &dyn Fn(&Access) -> String| -> Vec<String> {
            self.accesses.iter().map(f).collect()
        };
        let left = |title, f: &dyn Fn(&Access) -> String| {
            let cells = words(f).into_iter().map(|t| (t, Tone::Plain));
            Column::left(title, cells.collect())
        };
        let right = |title, f: &dyn Fn(&Access) -> String| Column::right(title, words(f));
        let state = |a: &Access| {
            let tone = match a.state.as_str() {
                "active" => Tone::Good,
                s if is_used(s) => Tone::Plain,
                // Wanted so, or of use for plain TCP.
                "ignored" | "stripped" => Tone::Weak,
                _ => Tone::Bad,
            };
            (a.state.clone(), tone)
        };
        let states = self.accesses.iter().map(state).collect();
        vec![
            left("access", &|a| a.name.clone()),
            left("kind", &|a| a.kind.clone()),
            left("interface", &|a| or_dash(a.interface.clone())),
            left("address", &|a| list(&a.addresses, between)),
            Column::left("state", states),
            left("backup", &|a| if a.backup { "yes" } else { "no" }.into()),
            right("weight", &|a| or_dash(a.weight.map(|w| w.to_string()))),
            right("priority", &|a| or_dash(a.priority.map(|p| p.to_string()))),
            right("tx Mbit/s", &|a| or_dash(a.fares.sent_mbps.map(number))),
            right("rx Mbit/s", &|a| or_dash(a.fares.received_mbps.map(number))),
            right("srtt ms", &|a| or_dash(a.fares.srtt_ms.map(number))),
            right("loss %", &|a| {
                or_dash(a.fares.loss.map(|l| number(l * 100.0)))
            }),
            right("subflows", &|a| a.fares.subflows.to_string()),
            right("endpoint", &|a| list(&a.endpoints, between)),
        ]
    }
}

/// Columns that are left out first where a terminal is too narrow.
const LEAST_TELLING: [&str; 8] = [
    "endpoint",
    "priority",
    "kind",
    "backup",
    "interface",
    "subflows",
    "weight",
    "loss %",
];

/// Leaves columns out until the table fits: first those that are empty.
fn give_way(columns: &mut Vec<Column>, width: usize) {
    if table::width(columns) > width {
        columns.retain(|c| !c.is_empty());
    }
    for title in LEAST_TELLING {
        if table::width(columns) <= width {
            return;
        }
        columns.retain(|c| c.title != title);
    }
}

fn access(a: &AccessView, fares: &HashMap<String, Fares>) -> Access {
    let (state, why) = a.state();
    Access {
        name: a.name.clone(),
        kind: a.kind.clone(),
        interface: a.interface.clone(),
        addresses: a.addresses(),
        state: state.to_owned(),
        why: why.map(str::to_owned),
        note: a.note.clone(),
        backup: a.backup,
        weight: a.weight,
        priority: a.priority,
        endpoints: a.endpoints(),
        fares: fares.get(&a.name).copied().unwrap_or_default(),
    }
}

pub(super) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".into())
}

pub(super) fn list<T: ToString>(all: &[T], between: &str) -> String {
    let all: Vec<String> = all.iter().map(T::to_string).collect();
    or_dash(Some(all.join(between)).filter(|t| !t.is_empty()))
}

/// With as many decimals as its size deserves.
fn number(v: f64) -> String {
    match v {
        0.0 => "0".into(),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rates::tests::reading;
    use super::*;
    use braid_lab::report::table::Style;

    fn shown() -> Shown {
        let view = serde_json::from_str(
            r#"{"role": "device", "engine": "mptcp", "scheduler": "default",
                "default_congestion_control": "cubic",
                "accesses": [
                  {"name": "nr", "kind": "5g", "interface": "wwan0", "address": "10.0.0.2",
                   "up": true, "has_address": true, "enabled": true, "weight": 30.0,
                   "endpoint_id": 1},
                  {"name": "wifi", "kind": "wifi", "interface": "wlan0", "backup": true,
                   "addresses": [{"address": "10.1.0.2"}, {"address": "fd00:1234:5678::2"}],
                   "state": "silent", "why": "nothing came back for 240 ms"}],
                "ignored": [{"interface": "docker0", "why": "serves containers"}]}"#,
        )
        .unwrap();
        let before = reading(1.0, &[("nr", 1, 0, 0, 0, 20.0)]);
        let now = reading(2.0, &[("nr", 1, 15_000_000, 150_000, 0, 20.0)]);
        Shown::new(&view, Some(&before), &now, true)
    }

    #[test]
    fn sessions_are_no_connections_of_tcp() {
        let mut quic = shown();
        quic.engine = "mpquic".to_owned();
        quic.connections.mpquic = 2;
        let text = quic.text(Output::Plain);
        assert!(text.contains("\nsessions: 2\n"), "{text}");
    }

    #[test]
    fn the_table_says_who_carries_what_and_why_not() {
        let text = shown().text(Output::Plain);
        let row = |name: &str| {
            let line = text.lines().find(|l| l.trim_start().starts_with(name));
            line.unwrap()
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert!(text.contains("\nconnections: 1 MPTCP, 0 fallen"), "{text}");
        assert_eq!(
            row("nr"),
            "nr 5g wwan0 10.0.0.2 active no 30 - 120 0 20.0 1.00 1 1"
        );
        assert_eq!(
            row("wifi "),
            "wifi wifi wlan0 10.1.0.2 fd00:1234:5678::2 silent yes - - - - - - 0 -"
        );
        assert!(
            text.contains("wifi: silent: nothing came back for 240 ms\n"),
            "{text}"
        );
        assert!(
            text.contains("docker0: serves as no access: serves containers\n"),
            "{text}"
        );
    }

    #[test]
    fn what_tells_least_gives_way() {
        for (width, there, gone) in [
            (140, "endpoint", None),
            (100, "state", Some("endpoint")),
            (80, "rx", Some("kind")),
            (75, "rx", Some("loss")),
        ] {
            let style = Style {
                width,
                colour: false,
            };
            let text = shown().text(Output::Terminal(style));
            let mut lines = text.lines().take(8);
            assert!(lines.all(|l| l.chars().count() <= width), "{text}");
            // Nothing is wrapped: the table's header is one line between two others.
            let header = text.lines().nth(3).unwrap();
            assert!(
                header.contains("Mbit/s") && header.contains("access"),
                "{text}"
            );
            assert!(text.contains(there), "{text}");
            assert!(gone.is_none_or(|g| !text.contains(g)), "{text}");
        }
    }

    #[test]
    fn json_has_units_in_its_names() {
        let v = serde_json::to_value(shown()).unwrap();
        assert_eq!(v["accesses"][0]["sent_mbps"], 120.0);
        assert_eq!(v["accesses"][0]["loss"], 0.01);
        assert_eq!(v["accesses"][1]["why"], "nothing came back for 240 ms");
        assert_eq!(v["connections"]["mptcp"], 1);
        assert!(v["list"][0]["token"].is_u64(), "{v}");
    }
}
