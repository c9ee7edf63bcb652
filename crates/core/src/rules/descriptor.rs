//! Traffic descriptors: the criteria of a rule, all of which a flow is to meet.

use std::fmt;

use ipnet::IpNet;

use super::flow::{Flow, Origin};
use super::values::{Client, Dscp, Ports, Protocol, Unit, User, written};
use crate::domain::Domain;

/// Traffic descriptor (TS 24.526 5.2). A criterion without values is met by every flow, one with
/// several by a flow that has any of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// Hosts behind the device.
    pub client: Vec<Client>,
    /// Users of the device itself.
    pub user: Vec<User>,
    /// Units of the device itself.
    pub unit: Vec<Unit>,
    /// Networks of the destination.
    pub to: Vec<IpNet>,
    /// Names of the destination, as answers of DNS give them.
    pub domain: Vec<Domain>,
    /// Protocols above IP.
    pub protocol: Vec<Protocol>,
    /// Ports of the destination, of TCP and UDP.
    pub port: Vec<Ports>,
    /// Differentiated services code points.
    pub dscp: Vec<Dscp>,
}

/// Criterion of a traffic descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// [`Descriptor::client`].
    Client,
    /// [`Descriptor::user`].
    User,
    /// [`Descriptor::unit`].
    Unit,
    /// [`Descriptor::to`].
    To,
    /// [`Descriptor::domain`].
    Domain,
    /// [`Descriptor::protocol`].
    Protocol,
    /// [`Descriptor::port`].
    Port,
    /// [`Descriptor::dscp`].
    Dscp,
}

impl Criterion {
    /// Returns its word in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::User => "user",
            Self::Unit => "unit",
            Self::To => "to",
            Self::Domain => "domain",
            Self::Protocol => "protocol",
            Self::Port => "port",
            Self::Dscp => "dscp",
        }
    }
}

/// Result of comparing a flow with a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// The flow meets every criterion.
    Yes,
    /// Criterion that the flow does not meet.
    No(Criterion),
    /// Criterion that asks for a fact that is not known; those that the facts decide are met.
    Unknown(Criterion),
}

impl Descriptor {
    /// Compares a flow with it.
    pub fn judge(&self, flow: &Flow) -> Match {
        let all = [
            (Criterion::Client, self.judge_client(flow)),
            (Criterion::User, self.judge_user(flow)),
            (Criterion::Unit, self.judge_unit(flow)),
            (
                Criterion::To,
                any(&self.to, Some(|n: &IpNet| n.contains(&flow.to))),
            ),
            (
                Criterion::Domain,
                any(
                    &self.domain,
                    flow.domain
                        .as_ref()
                        .map(|name| move |own: &Domain| own.includes(name)),
                ),
            ),
            (
                Criterion::Protocol,
                any(
                    &self.protocol,
                    flow.protocol.map(|p| move |own: &Protocol| own.includes(p)),
                ),
            ),
            (Criterion::Port, self.judge_port(flow)),
            (
                Criterion::Dscp,
                any(&self.dscp, flow.dscp.map(|d| move |own: &Dscp| *own == d)),
            ),
        ];
        if let Some((criterion, _)) = all.iter().find(|(_, met)| *met == Some(false)) {
            return Match::No(*criterion);
        }
        match all.iter().find(|(_, met)| met.is_none()) {
            Some((criterion, _)) => Match::Unknown(*criterion),
            None => Match::Yes,
        }
    }

    /// Whether the host is one of those that are listed; `None` where that is not known.
    fn judge_client(&self, flow: &Flow) -> Option<bool> {
        let own = |client: &Client| match client {
            Client::Mac(mac) => flow.mac.map(|own| own == *mac),
            Client::Network(net) => flow.client.map(|ip| net.contains(&ip)),
        };
        match (self.client.is_empty(), flow.origin()) {
            (true, _) => Some(true),
            (false, Some(Origin::Device)) => Some(false),
            (false, _) => either(self.client.iter().map(own)),
        }
    }

    /// Whether the flow is of a program of one of the users that are listed; `None` where that is not
    /// known.
    fn judge_user(&self, flow: &Flow) -> Option<bool> {
        let own = |user: &User| match user {
            User::Name(name) => flow.user_name.as_ref().map(|own| own == name),
            User::Id(id) => flow.user.map(|own| own == *id),
        };
        match (self.user.is_empty(), flow.origin()) {
            (true, _) => Some(true),
            (false, Some(Origin::Host)) => Some(false),
            (false, _) => either(self.user.iter().map(own)),
        }
    }

    /// As [`Descriptor::judge_user`], of units.
    fn judge_unit(&self, flow: &Flow) -> Option<bool> {
        let own = |unit: &Unit| flow.unit.as_ref().map(|path| unit.includes(path));
        match (self.unit.is_empty(), flow.origin()) {
            (true, _) => Some(true),
            (false, Some(Origin::Host)) => Some(false),
            (false, _) => either(self.unit.iter().map(own)),
        }
    }

    fn judge_port(&self, flow: &Flow) -> Option<bool> {
        match (self.port.is_empty(), flow.has_ports()) {
            (true, _) => Some(true),
            (false, Some(false)) => Some(false),
            (false, Some(true)) => any(
                &self.port,
                flow.port.map(|p| move |own: &Ports| own.contains(p)),
            ),
            (false, None) => match flow.port {
                Some(p) if !self.port.iter().any(|own| own.contains(p)) => Some(false),
                _ => None,
            },
        }
    }

    /// Whether programs of the device itself may meet it.
    pub fn is_of_device(&self) -> bool {
        self.client.is_empty()
    }

    /// Whether hosts behind the device may meet it.
    pub fn is_of_hosts(&self) -> bool {
        self.user.is_empty() && self.unit.is_empty()
    }

    /// Whether every flow meets it.
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }
}

/// Whether one of these is met; `None` where that hangs on one that is not known.
fn either(all: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut known = Some(false);
    for met in all {
        match met {
            Some(true) => return met,
            Some(false) => {}
            None => known = None,
        }
    }
    known
}

/// Whether one of the values is met, where there are any; `None` where the fact is not known.
fn any<T>(values: &[T], is_met: Option<impl Fn(&T) -> bool>) -> Option<bool> {
    match values {
        [] => Some(true),
        _ => is_met.map(|is_met| values.iter().any(is_met)),
    }
}

impl fmt::Display for Descriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_any() {
            return f.write_str("all");
        }
        let mut parts = Vec::new();
        let mut part = |criterion: Criterion, values: Vec<String>| {
            if !values.is_empty() {
                parts.push(format!("{} {}", criterion.as_str(), values.join(",")));
            }
        };
        part(Criterion::Client, texts(&self.client));
        part(Criterion::User, texts(&self.user));
        part(Criterion::Unit, texts(&self.unit));
        part(
            Criterion::To,
            self.to.iter().copied().map(written).collect(),
        );
        part(Criterion::Domain, texts(&self.domain));
        part(Criterion::Protocol, texts(&self.protocol));
        part(Criterion::Port, texts(&self.port));
        part(Criterion::Dscp, texts(&self.dscp));
        f.write_str(&parts.join("; "))
    }
}

fn texts<T: ToString>(all: &[T]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}
