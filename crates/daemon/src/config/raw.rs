//! The configuration as it is written, and what makes it wrong.

mod expected;
mod problem;

use std::net::IpAddr;

use braid_api::{Engine, Lane, Role, SchedulerChange};
use braid_core::sched::WrrMode;
use braid_core::{AccessKind, Pattern};
use braid_mptcp::manage::plan::Mesh;
use indexmap::IndexMap;
use ipnet::IpNet;
use serde::Deserialize;

use super::super::announce;
use super::quic::{self, Quic, RawQuic};
use super::{Access, Buffers, Config, Manager, Probe};
use expected::RawExpected;
use problem::place;
pub(super) use problem::{Problem, problem};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConfig {
    #[serde(default = "mptcp")]
    engine: Engine,
    #[serde(default)]
    proxy: OneOrMore,
    #[serde(default)]
    announce: Vec<IpAddr>,
    #[serde(default)]
    manager: RawManager,
    #[serde(default)]
    probe: Probe,
    #[serde(default)]
    buffers: Buffers,
    #[serde(default)]
    scheduler: Option<RawScheduler>,
    #[serde(default)]
    access: IndexMap<String, RawAccess>,
    #[serde(default)]
    mpquic: Option<RawQuic>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "an address, or a list of them")]
enum OneOrMore {
    One(IpAddr),
    More(Vec<IpAddr>),
}

impl Default for OneOrMore {
    fn default() -> Self {
        Self::More(vec![])
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawManager {
    recover: bool,
    mesh: RawMesh,
    max_addresses_per_interface: usize,
    ignore: Vec<String>,
}

impl Default for RawManager {
    fn default() -> Self {
        Self {
            recover: true,
            mesh: RawMesh::Pairs,
            max_addresses_per_interface: 2,
            ignore: vec![],
        }
    }
}

/// Addresses of one interface: the kernel takes 8 endpoints.
const ADDRESSES: std::ops::RangeInclusive<usize> = 1..=8;

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawMesh {
    Full,
    Pairs,
}

/// [`SchedulerChange`], and what is this end's own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScheduler {
    name: Option<String>,
    wrr_mode: Option<WrrMode>,
    num_segments: Option<u8>,
    opportunistic: Option<bool>,
    penalise: Option<bool>,
    pin: Option<bool>,
    cc: Option<String>,
}

impl RawScheduler {
    fn change(&self) -> SchedulerChange {
        SchedulerChange {
            name: self.name.clone(),
            wrr_mode: self.wrr_mode,
            num_segments: self.num_segments,
            opportunistic: self.opportunistic,
            penalise: self.penalise,
        }
    }

    /// `None` if it says nothing about how to schedule.
    fn said(&self) -> Option<SchedulerChange> {
        let change = self.change();
        let of_others = self.pin.is_some() || self.cc.is_some();
        (!of_others || change != SchedulerChange::default()).then_some(change)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAccess {
    #[serde(default)]
    interface: Option<String>,
    #[serde(default)]
    address: Option<String>,
    #[serde(default = "other")]
    kind: AccessKind,
    #[serde(default)]
    max_addresses: Option<usize>,
    #[serde(default)]
    backup: bool,
    #[serde(default)]
    priority: Option<u16>,
    #[serde(default)]
    weight: Option<f64>,
    #[serde(default)]
    expected: RawExpected,
}

fn mptcp() -> Engine {
    Engine::Mptcp
}

fn other() -> AccessKind {
    AccessKind::Other
}

/// Reads text. The error begins with `line:column:`.
pub(super) fn parse(text: &str, json: bool, role: Role) -> Result<Config, String> {
    let raw: RawConfig = if json {
        serde_json::from_str(text).map_err(|e| {
            let all = e.to_string();
            let what = all.rsplit_once(" at line ").map_or(&*all, |(w, _)| w);
            format!("{}:{}: {what}", e.line(), e.column())
        })?
    } else {
        toml::from_str(text).map_err(|e| {
            let (line, column) = place(text, e.span().map_or(0, |s| s.start));
            format!("{line}:{column}: {}", e.message())
        })?
    };
    check(raw, role).map_err(|p| {
        let at = if json { 0 } else { p.offset(text) };
        let (line, column) = place(text, at);
        format!("{line}:{column}: {}", p.what)
    })
}

fn check(raw: RawConfig, role: Role) -> Result<Config, Problem> {
    let proxy = match raw.proxy {
        OneOrMore::One(a) => vec![a],
        OneOrMore::More(all) => all,
    };
    let of = |v4: bool| proxy.iter().filter(|a| a.is_ipv4() == v4).count();
    if of(true) > 1 || of(false) > 1 {
        return Err(problem(
            &["proxy"],
            "the proxy has at most one address of each family",
        ));
    }
    announce::check(&raw.announce, role, raw.engine)
        .map_err(|what| problem(&["announce"], what))?;
    let m = raw.manager;
    if !ADDRESSES.contains(&m.max_addresses_per_interface) {
        return Err(problem(
            &["manager", "max_addresses_per_interface"],
            "an interface has 1 to 8 addresses in use",
        ));
    }
    let pattern = |s: &str, path: &[&str]| s.parse::<Pattern>().map_err(|e| problem(path, e));
    let ignore: Result<Vec<_>, _> = m
        .ignore
        .iter()
        .map(|s| pattern(s, &["manager", "ignore"]))
        .collect();
    if raw.probe.port == 0 {
        return Err(problem(&["probe", "port"], "a port is 1 to 65535"));
    }
    let b = &raw.buffers;
    for (key, sizes) in [("tcp_rmem", b.tcp_rmem), ("tcp_wmem", b.tcp_wmem)] {
        if !sizes.is_sorted() || sizes[0] == 0 || sizes[2] > i32::MAX as u32 {
            return Err(problem(
                &["buffers", key],
                "a buffer is its least, initial and greatest size in bytes, above 0, each at \
                 least the one before, at most 2147483647",
            ));
        }
    }
    if role == Role::Device && raw.access.is_empty() {
        return Err(problem(
            &[],
            "a device needs at least one access: [access.NAME] with its interface",
        ));
    }
    let mut accesses: Vec<Access> = Vec::new();
    for (name, a) in raw.access {
        accesses.push(access(&name, a, (role, raw.engine), &accesses)?);
    }
    let quic = quic(raw.engine, raw.mpquic, role)?;
    let scheduler = raw.scheduler.as_ref();
    if let (Some(quic), Some(change)) = (&quic, scheduler) {
        let before = quic::default_steering(quic.reinject);
        quic::steering(&change.change(), &before, quic.lane)
            .map_err(|what| problem(&["scheduler", "name"], what))?;
    }
    let cc = scheduler.and_then(|s| s.cc.clone());
    if cc.is_some() && raw.engine != Engine::Mptcp {
        let what = "only engine = \"mptcp\" has this; that of Multipath QUIC is [mpquic] cc";
        return Err(problem(&["scheduler", "cc"], what));
    }
    if let Some(quic) = &quic {
        names_only(&accesses, &proxy, role)?;
        let told = |a: &&Access| a.expected.down.is_some() && quic.lane == Lane::Stream;
        if let Some(a) = accesses.iter().find(told) {
            return Err(problem(&["access", &a.name, "expected"], super::NO_LANE));
        }
    }
    Ok(Config {
        engine: raw.engine,
        quic,
        proxy,
        announce: raw.announce,
        manager: Manager {
            recover: m.recover,
            mesh: match m.mesh {
                RawMesh::Full => Mesh::Full,
                RawMesh::Pairs => Mesh::Pairs,
            },
            max_addresses_per_interface: m.max_addresses_per_interface,
            ignore: ignore?,
        },
        probe: raw.probe,
        buffers: raw.buffers,
        pin: raw.scheduler.as_ref().and_then(|s| s.pin).unwrap_or(true),
        scheduler: raw.scheduler.as_ref().and_then(RawScheduler::said),
        cc,
        accesses,
    })
}

fn quic(engine: Engine, raw: Option<RawQuic>, role: Role) -> Result<Option<Quic>, Problem> {
    match (engine, raw) {
        (Engine::Mpquic, raw) => quic::check(raw.unwrap_or_default(), role).map(Some),
        (_, Some(_)) => Err(problem(
            &["mpquic"],
            "only engine = \"mpquic\" has [mpquic]",
        )),
        (_, None) => Ok(None),
    }
}

/// Rejects what Multipath QUIC cannot do yet.
fn names_only(accesses: &[Access], proxy: &[IpAddr], role: Role) -> Result<(), Problem> {
    if proxy.is_empty() {
        return Err(problem(
            &["proxy"],
            "Multipath QUIC needs the proxy's address: proxy = \"ADDRESS\"",
        ));
    }
    let pattern = |a: &&Access| a.interface.as_ref().is_some_and(|p| !p.is_name());
    match accesses.iter().find(pattern) {
        Some(a) if role == Role::Device => Err(problem(
            &["access", &a.name, "interface"],
            "Multipath QUIC follows one interface of each access: give its whole name",
        )),
        _ => Ok(()),
    }
}

fn access(
    name: &str,
    a: RawAccess,
    (role, engine): (Role, Engine),
    before: &[Access],
) -> Result<Access, Problem> {
    let at = |key: &str, what: String| problem(&["access", name, key], what);
    let here = |what: String| problem(&["access", name], what);
    if name.is_empty() || name.contains(['/', '?', '#', '%']) {
        return Err(here(format!(
            "access name \"{name}\" is empty or has one of / ? # %"
        )));
    }
    let interface = match a.interface.as_deref().map(str::parse::<Pattern>) {
        None => None,
        Some(Ok(p)) => Some(p),
        Some(Err(e)) => return Err(at("interface", e)),
    };
    let address = match &a.address {
        None => None,
        Some(s) => Some(
            net(s).ok_or_else(|| at("address", format!("\"{s}\" is no address and no prefix")))?,
        ),
    };
    match role {
        Role::Device if interface.is_none() => {
            return Err(here(format!(
                "access \"{name}\" of a device needs an interface"
            )));
        }
        Role::Device if address.is_some_and(|n| n.prefix_len() != n.max_prefix_len()) => {
            return Err(at(
                "address",
                format!("access \"{name}\": a device has an address here, not a prefix"),
            ));
        }
        Role::Proxy if interface.is_some() => {
            return Err(at(
                "interface",
                format!(
                    "access \"{name}\": a proxy knows its peer's accesses by address, \
                     without interface"
                ),
            ));
        }
        Role::Proxy if address.is_none() => {
            return Err(here(format!(
                "access \"{name}\": a proxy knows its peer's accesses by address: give one, or a prefix"
            )));
        }
        Role::Proxy if a.max_addresses.is_some() => {
            return Err(at(
                "max_addresses",
                format!("access \"{name}\": max_addresses is set at the device"),
            ));
        }
        Role::Proxy if a.backup => {
            return Err(at(
                "backup",
                format!("access \"{name}\": backup is set at the device"),
            ));
        }
        Role::Proxy if a.priority.is_some() => {
            return Err(at(
                "priority",
                format!("access \"{name}\": priority is set at the device"),
            ));
        }
        _ => {}
    }
    if let Some(b) = before
        .iter()
        .find(|b| b.address.is_some() && b.address == address)
    {
        return Err(at(
            "address",
            format!(
                "accesses \"{}\" and \"{name}\" have the same address",
                b.name
            ),
        ));
    }
    if a.max_addresses.is_some_and(|n| !ADDRESSES.contains(&n)) {
        return Err(at(
            "max_addresses",
            format!("access \"{name}\": expected 1 to 8 addresses"),
        ));
    }
    if a.weight.is_some_and(|w| !(w.is_finite() && w > 0.0)) {
        return Err(at(
            "weight",
            format!("access \"{name}\": a weight is a number above 0"),
        ));
    }
    Ok(Access {
        name: name.to_owned(),
        kind: a.kind,
        interface,
        address,
        max_addresses: a.max_addresses,
        backup: a.backup,
        priority: a.priority,
        weight: a.weight,
        expected: a
            .expected
            .check(role, engine)
            .map_err(|e| at("expected", e))?,
    })
}

pub(super) fn net(s: &str) -> Option<IpNet> {
    s.parse()
        .ok()
        .or_else(|| s.parse::<IpAddr>().ok().map(IpNet::from))
}
