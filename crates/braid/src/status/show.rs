//! The state of a daemon as JSON and as a table.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::net::IpAddr;

use braid_api::{AccessControl, AccessEnergy, Connections, ControlStatus, LanStatus, PowerCounter};
use serde::Serialize;

use super::energy;
use super::fallen::{self, Fallen};
use super::listed::{self, Listed, listed};
use super::rates::{Fares, fares};
use super::totals::{Totals, amount, sum};
use super::view::{AccessView, Ignored, View, is_used};
use crate::table::{self, Column, Output, Tone};
use crate::watch::Show;

/// Output of `braid status --json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Shown {
    role: String,
    engine: String,
    /// Every engine that runs.
    engines: Vec<String>,
    scheduler: Option<String>,
    /// How round robin treats full windows; absent with other schedulers.
    #[serde(skip_serializing_if = "Option::is_none")]
    wrr_mode: Option<String>,
    /// Whether the scheduler goes by weights.
    weights_act: bool,
    /// Absent where weights take its place.
    congestion_control: Option<String>,
    connections: Count,
    accesses: Vec<Access>,
    ignored: Vec<Ignored>,
    config_error: Option<String>,
    /// Why no access reaches the proxy; absent where one does.
    #[serde(skip_serializing_if = "Option::is_none")]
    proxy_unreachable: Option<String>,
    /// Weights of downlinks at the proxy, by this device's names; absent where it tells none.
    #[serde(skip_serializing_if = "Option::is_none")]
    down_weights: Option<BTreeMap<String, f64>>,
    /// Hosts behind this device; absent without [lan].
    #[serde(skip_serializing_if = "Option::is_none")]
    lan: Option<LanStatus>,
    /// Counters of power, where they are read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    power: Vec<PowerCounter>,
    notes: Vec<String>,
    /// The policy and its decisions; absent where the daemon does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    control: Option<ControlStatus>,
    /// The connections over MPTCP, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    list: Option<Vec<Listed>>,
    /// Connections that fell back to TCP, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    fallen_back: Option<Vec<Fallen>>,
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
    #[serde(flatten)]
    totals: Totals,
    /// Energy of its radio; absent without a power model.
    #[serde(skip_serializing_if = "Option::is_none")]
    energy: Option<AccessEnergy>,
}

impl Show for Shown {
    fn text(&self, output: Output) -> String {
        Self::text(self, output)
    }
}

impl Shown {
    /// From what was read; rates take an earlier reading of the connections.
    pub(super) fn new(
        view: &View,
        before: Option<&Connections>,
        now: &Connections,
        list: bool,
        control: Option<ControlStatus>,
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
        let is_session = |c: &&braid_api::Connection| {
            let only = view.engine == "mpquic";
            let is_quic = c.engine.map_or(only, |e| e == braid_api::Engine::Mpquic);
            c.token.is_some() && is_quic
        };
        let sessions = all.iter().filter(is_session).count();
        let scheduling = view.scheduling();
        Self {
            role: view.role.clone(),
            engine: view.engine.clone(),
            engines: match view.engines.is_empty() {
                true => vec![view.engine.clone()],
                false => view.engines.clone(),
            },
            scheduler: Some(scheduling.name).filter(|n| !n.is_empty()),
            wrr_mode: scheduling.wrr_mode,
            weights_act: scheduling.weights_act,
            congestion_control: scheduling.congestion_control,
            connections: Count {
                mpquic: sessions,
                mptcp: over - sessions,
                fallback: fell,
                tcp: all.len() - over - fell,
            },
            accesses: view.accesses.iter().map(|a| access(a, &fares)).collect(),
            ignored: view.ignored.clone(),
            config_error: view.config_error.clone(),
            proxy_unreachable: view.proxy_unreachable.clone(),
            down_weights: view.down_weights.clone(),
            lan: view.lan.clone(),
            power: view.power.clone(),
            notes: view.notes.clone(),
            control,
            list: list.then(|| listed(now)),
            fallen_back: list.then(|| {
                let known = fallen::processes(now);
                fallen::fallen(now, &|inode| known.get(&inode).cloned())
            }),
        }
    }

    /// Heading, table and notes; each line ends.
    pub(super) fn text(&self, output: Output) -> String {
        let c = self.connections;
        let of = |engine: &String| match &**engine {
            "mpquic" => format!("sessions: {}", c.mpquic),
            _ => format!(
                "connections: {} MPTCP, {} fallen back to TCP, {} TCP",
                c.mptcp, c.fallback, c.tcp
            ),
        };
        let connections: Vec<_> = self.engines.iter().map(of).collect();
        let connections = connections.join("; ");
        let mut text = format!(
            "{} with {}{}{}\n{connections}\n",
            self.role,
            self.engines.join(" and "),
            self.scheduler_in_words(),
            match &self.congestion_control {
                Some(c) => format!(", congestion control {c}"),
                None => ", weights as congestion control".to_owned(),
            }
        );
        // A line for each access where programs may read it.
        let between = match output {
            Output::Terminal(_) => "\n",
            Output::Plain => " ",
        };
        let mut columns = self.columns(between);
        self.add_sums(&mut columns);
        give_way(&mut columns, output.width());
        text += &table::draw(&columns, output);
        text += &self.idle_weights();
        text += &self.other_weights();
        text += &self.control.as_ref().map_or(String::new(), policy);
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
        if let Some(why) = &self.proxy_unreachable {
            text += &format!("{why}\n");
        }
        text += &self.lan.as_ref().map_or(String::new(), hosts);
        let radios = self.accesses.iter();
        let radios = radios.filter_map(|a| Some((&*a.name, a.energy.as_ref()?)));
        text += &energy::lines(radios, &self.power);
        for note in &self.notes {
            text += &format!("note: {note}\n");
        }
        if let Some(all) = &self.list {
            text += &table::draw(&listed::columns(all, between), output);
        }
        if let Some(all) = self.fallen_back.as_ref().filter(|all| !all.is_empty()) {
            text += &table::draw(&fallen::columns(all), output);
        }
        text
    }

    fn scheduler_in_words(&self) -> String {
        match (&self.scheduler, &self.wrr_mode) {
            (Some(s), Some(mode)) => format!(", scheduler {s} ({mode})"),
            (Some(s), None) => format!(", scheduler {s}"),
            (None, _) => String::new(),
        }
    }

    /// Line about weights that are set and do not act; 1 is what an access has without one, and
    /// with MPTCP 0 makes it a backup under any scheduler.
    fn idle_weights(&self) -> String {
        let set = self.accesses.iter().filter_map(|a| Some((a, a.weight?)));
        let acts = |w: f64| self.weights_act || w == 1.0 || w == 0.0 && self.engine != "mpquic";
        let set = set.filter(|(_, w)| !acts(*w));
        let all: Vec<_> = set.map(|(a, w)| format!("{}={w}", a.name)).collect();
        match &*all {
            [] => String::new(),
            all => format!(
                "weights {} do not act under the scheduler {}: braid set scheduler wrr\n",
                all.join(" "),
                self.scheduler.as_deref().unwrap_or("default"),
            ),
        }
    }

    /// Line about weights of downlinks, where they are others than those that this device sends by.
    fn other_weights(&self) -> String {
        let all = self.down_weights.iter().flatten();
        let own = |name: &str| {
            let mut mine = self.accesses.iter().filter(|a| a.name == name);
            mine.find_map(|a| a.weight).unwrap_or(1.0)
        };
        match all.clone().any(|(name, w)| own(name) != *w) {
            true => {
                let all: Vec<_> = all.map(|(name, w)| format!("{name}={w}")).collect();
                format!("weights of downlinks: {}\n", all.join(" "))
            }
            false => String::new(),
        }
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
                "init" => Tone::Weak,
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
            right("weight", &|a| {
                or_dash(a.weight.filter(|_| self.weights_act).map(|w| w.to_string()))
            }),
            right("priority", &|a| or_dash(a.priority.map(|p| p.to_string()))),
            right("tx Mbit/s", &|a| or_dash(a.fares.sent_mbps.map(number))),
            right("rx Mbit/s", &|a| or_dash(a.fares.received_mbps.map(number))),
            right("srtt ms", &|a| or_dash(a.fares.srtt_ms.map(number))),
            right("loss %", &|a| {
                or_dash(a.fares.loss.map(|l| number(l * 100.0)))
            }),
            right("subflows", &|a| a.fares.subflows.to_string()),
            right("sent", &|a| or_dash(a.totals.sent_bytes.map(amount))),
            right("received", &|a| {
                or_dash(a.totals.received_bytes.map(amount))
            }),
            right("endpoint", &|a| list(&a.endpoints, between)),
        ]
    }

    /// Adds a row with the sums of all accesses; one is its own sum.
    fn add_sums(&self, columns: &mut [Column]) {
        if self.accesses.len() < 2 {
            return;
        }
        let all = || self.accesses.iter();
        for column in columns {
            let text = match &*column.title {
                "access" => Some("sum".to_owned()),
                "tx Mbit/s" => sum(all().map(|a| a.fares.sent_mbps)).map(number),
                "rx Mbit/s" => sum(all().map(|a| a.fares.received_mbps)).map(number),
                "subflows" => sum(all().map(|a| Some(a.fares.subflows))).map(|n| n.to_string()),
                "sent" => sum(all().map(|a| a.totals.sent_bytes)).map(amount),
                "received" => sum(all().map(|a| a.totals.received_bytes)).map(amount),
                _ => None,
            };
            let text = text.unwrap_or_default();
            column.cells.push((text, Tone::Plain));
        }
    }
}

/// Lines about the hosts behind this device, and its own programs.
fn hosts(lan: &LanStatus) -> String {
    let hosts = !lan.interfaces.is_empty();
    let who = match (hosts, lan.programs) {
        (true, false) => format!("hosts on {}", lan.interfaces.join(", ")),
        (true, true) => format!(
            "hosts on {} and programs of this device",
            lan.interfaces.join(", ")
        ),
        (false, _) => "programs of this device".to_owned(),
    };
    let connections = match lan.connections {
        1 => "1 connection".to_owned(),
        n => format!("{n} connections"),
    };
    let packets = match &*lan.tunnel {
        [] => "no tunnel".to_owned(),
        all => format!("tunnel from {}", list(all, ", ")),
    };
    let switch = match (
        hosts.then_some(lan.kill_switch),
        lan.programs.then_some(lan.programs_kill_switch),
    ) {
        (Some(true), Some(false)) => "on for hosts alone",
        (Some(false), Some(true)) => "on for programs alone",
        (Some(true), _) | (None, Some(true)) => "on",
        _ => "off",
    };
    let mut text = format!("{who}: {connections} over the bond, {packets}, kill switch {switch}\n");
    if let Some(why) = &lan.no_packets {
        text += &format!("{who}: packets beside TCP: {why}\n");
    }
    text
}

/// Line about a policy that decides: estimates, and why the weights are as they are.
fn policy(control: &ControlStatus) -> String {
    let Some(why) = &control.why else {
        return String::new();
    };
    let estimate = |a: &AccessControl| {
        let known = match (a.capacity_mbps, &a.estimator) {
            (Some(mbps), Some(estimator)) => format!(
                "{}{} Mbit/s by {estimator}",
                if a.at_least { "at least " } else { "" },
                number(mbps)
            ),
            _ => "not known".to_owned(),
        };
        format!(
            "{} {}{known}",
            a.name,
            if a.rests { "at rest, " } else { "" }
        )
    };
    let all: Vec<String> = control.accesses.iter().map(estimate).collect();
    format!(
        "policy {}, {}: {}; {why}\n",
        control.policy,
        control.direction,
        all.join(", ")
    )
}

/// Columns that are left out first where a terminal is too narrow, some together.
const LEAST_TELLING: [&[&str]; 9] = [
    &["endpoint"],
    &["priority"],
    &["kind"],
    &["sent", "received"],
    &["backup"],
    &["interface"],
    &["subflows"],
    &["weight"],
    &["loss %"],
];

/// Leaves columns out until the table fits: first those that are empty.
fn give_way(columns: &mut Vec<Column>, width: usize) {
    if table::width(columns) > width {
        columns.retain(|c| !c.is_empty());
    }
    for titles in LEAST_TELLING {
        if table::width(columns) <= width {
            return;
        }
        columns.retain(|c| !titles.contains(&&*c.title));
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
        totals: Totals {
            sent_bytes: a.sent_bytes,
            received_bytes: a.received_bytes,
        },
        energy: a.energy.clone(),
    }
}

pub(super) fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".into())
}

pub(super) fn list<T: ToString>(all: &[T], between: &str) -> String {
    let all: Vec<String> = all.iter().map(T::to_string).collect();
    or_dash(Some(all.join(between)).filter(|t| !t.is_empty()))
}

/// Writes a number with as many decimals as its size deserves.
pub(super) fn number(v: f64) -> String {
    match v {
        0.0 => "0".into(),
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests;
