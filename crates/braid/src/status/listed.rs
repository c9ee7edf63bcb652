//! The MPTCP connections one by one, each with the token that names it.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use braid_api::{Connection, Connections};
use serde::Serialize;

use super::show::{list, or_dash};
use crate::table::{Column, Tone};

/// One connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Listed {
    token: u32,
    /// The other end, of its oldest subflow.
    remote: Option<SocketAddr>,
    /// The accesses of its established subflows.
    accesses: Vec<String>,
    congestion_control: Option<String>,
    /// Its own, where it has some.
    weights: Option<BTreeMap<String, f64>>,
}

/// Connections over MPTCP, by token.
pub(super) fn listed(all: &Connections) -> Vec<Listed> {
    let one = |c: &Connection| {
        let first = c.subflows.first();
        let there = c.subflows.iter().filter(|s| s.is_established());
        let mut accesses: Vec<_> = there.filter_map(|s| s.access.clone()).collect();
        accesses.sort_unstable();
        accesses.dedup();
        Some(Listed {
            token: c.token?,
            remote: first.map(|s| s.remote),
            accesses,
            congestion_control: first.map(|s| s.congestion_control.clone()),
            weights: c.weights.clone(),
        })
    };
    let mptcp = all.connections.iter().filter(|c| !c.fallback);
    let mut all: Vec<_> = mptcp.filter_map(one).collect();
    all.sort_by_key(|c| c.token);
    all
}

/// The columns of their table.
pub(super) fn columns(all: &[Listed], between: &str) -> Vec<Column> {
    let left = |title, f: &dyn Fn(&Listed) -> String| {
        Column::left(title, all.iter().map(|c| (f(c), Tone::Plain)).collect())
    };
    let weights = |c: &Listed| {
        let all = c.weights.iter().flatten().map(|(n, w)| format!("{n}={w}"));
        list(&all.collect::<Vec<_>>(), " ")
    };
    vec![
        Column::right("token", all.iter().map(|c| c.token.to_string()).collect()),
        left("remote", &|c| or_dash(c.remote.map(|r| r.to_string()))),
        left("accesses", &|c| list(&c.accesses, between)),
        left("congestion control", &|c| {
            or_dash(c.congestion_control.clone())
        }),
        left("own weights", &weights),
    ]
}
