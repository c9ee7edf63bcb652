//! From ATSSS rules to a configuration.

use std::fmt::Write;

use braid_core::atsss::{
    Addresses, Component, Container, Functionality, Measurement, Mode, NetworkSteering, Parameter,
    Rule, Selection, Side,
};
use braid_core::class::MAX_CLASSES;
use braid_core::rules::{
    Client, Descriptor, Dscp, MAX_RULES, MAX_VALUES, Mac, Outcome, Ports, Protocol, Rule as Own,
    Written,
};
use indexmap::IndexMap;
use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use serde::Serialize;

use super::{Names, Remark, Remarks};
use crate::config::Class;

/// Bits of the traffic class that are the code point (RFC 2474); the others are of ECN.
const DSCP_MASK: u8 = 0xfc;

/// Tables of a configuration that ATSSS rules make.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Imported {
    /// `[class.NAME]`.
    #[serde(skip_serializing_if = "IndexMap::is_empty")]
    pub class: IndexMap<String, Class>,
    /// `[[rule]]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rule: Vec<Written>,
    /// Parts of the container that have no counterpart.
    #[serde(skip)]
    pub remarks: Vec<Remark>,
}

impl Imported {
    /// Returns the text for a configuration's file, with the remarks as comments.
    ///
    /// # Errors
    /// A value cannot be written as TOML.
    pub fn toml(&self) -> Result<String, toml::ser::Error> {
        let mut text = String::new();
        for remark in &self.remarks {
            // Control characters would end a comment, and writing to text does not fail.
            let _ = writeln!(text, "# {}", remark.to_string().escape_debug());
        }
        Ok(text + &toml::to_string(self)?)
    }
}

/// Makes rules and classes of the ATSSS rules in a container.
pub fn import(container: &Container, names: &Names) -> Imported {
    let mut import = Import {
        names,
        remarks: Remarks::default(),
        made: Imported::default(),
    };
    for parameter in &container.0 {
        import.parameter(parameter);
    }
    let mut titles: Vec<String> = Vec::new();
    for rule in container.rules() {
        let title = format!("precedence {}", rule.precedence);
        let same = titles.iter().filter(|t| **t == title).count();
        titles.push(title.clone());
        let name = match same {
            0 => title,
            _ => format!("{title}, {}", same + 1),
        };
        if let Err(what) = import.rule(rule, &name) {
            let what = format!("left out: {what}; what it is for meets the rules behind it");
            import.remarks.add(&name, what);
        }
    }
    Imported {
        remarks: import.remarks.0,
        ..import.made
    }
}

struct Import<'a> {
    names: &'a Names,
    remarks: Remarks,
    made: Imported,
}

impl Import<'_> {
    fn parameter(&mut self, parameter: &Parameter) {
        match parameter {
            Parameter::Rules(_) => {}
            Parameter::Network(network) => self.remarks.add(
                "network steering functionalities information",
                format!(
                    "left out: {}; [access.NAME] has the addresses, `proxy` the proxy",
                    network_text(network)
                ),
            ),
            Parameter::Measurement(measurement) => self.remarks.add(
                "measurement assistance information",
                format!(
                    "left out: {}; [probe] has what is measured",
                    measurement_text(measurement)
                ),
            ),
            Parameter::Other {
                identifier,
                contents,
            } => self.remarks.add(
                &format!("parameter {identifier}"),
                format!("left out: nobody knows it; contents {}", hex(contents)),
            ),
        }
    }

    fn rule(&mut self, rule: &Rule, name: &str) -> Result<(), String> {
        if self.made.rule.len() == MAX_RULES {
            return Err(format!("there are more than {MAX_RULES} rules"));
        }
        let descriptor = self.descriptor(&rule.descriptor, name)?;
        let class = self.class(&rule.selection, name)?;
        let own = Own {
            name: Some(name.to_owned()),
            descriptor,
            outcome: Outcome::Class(class),
        };
        let written = Written::from(own);
        // The rules of a configuration have the last word.
        Own::try_from(written.clone())?;
        self.made.rule.push(written);
        Ok(())
    }

    fn descriptor(&mut self, components: &[Component], name: &str) -> Result<Descriptor, String> {
        let mut d = Descriptor::default();
        for component in components {
            add(&mut d, component).map_err(|what| format!("{}: {what}", component.name()))?;
            if let Component::OsApp(_) = component {
                let what = "its OS App Id is taken for the name of a unit";
                self.remarks.add(name, what);
            }
        }
        let is_mac = |c: &Client| matches!(c, Client::Mac(_));
        if d.client.iter().any(is_mac) && !d.client.iter().all(is_mac) {
            return Err(
                "a local address and a MAC address together have no counterpart".to_owned(),
            );
        }
        let counts = [
            d.client.len(),
            d.unit.len(),
            d.to.len(),
            d.protocol.len(),
            d.port.len(),
            d.dscp.len(),
        ];
        if counts.iter().any(|n| *n > MAX_VALUES) {
            return Err(format!("a key has at most {MAX_VALUES} values"));
        }
        if counts.iter().any(|n| *n > 1) {
            let what = "of several components of one kind, one is to be met";
            self.remarks.add(name, what);
        }
        if !d.port.is_empty() && d.protocol.is_empty() {
            self.remarks
                .add(name, "its ports count with TCP and UDP alone");
        }
        Ok(d)
    }

    /// Returns the name of the class that a selection asks for; makes it where there is none.
    fn class(&mut self, selection: &Selection, name: &str) -> Result<String, String> {
        let (class, steering) = self.steering(&selection.mode)?;
        if !self.made.class.contains_key(&class) {
            if self.made.class.len() + 1 >= MAX_CLASSES {
                return Err(format!(
                    "it asks for a class beside {} others",
                    MAX_CLASSES - 1
                ));
            }
            self.made.class.insert(class.clone(), steering);
        }
        match selection.functionality {
            Functionality::Supported => {}
            Functionality::Mptcp => self.remarks.add(
                name,
                "asks for the functionality MPTCP: a class goes over Multipath QUIC",
            ),
            Functionality::LowLayer => self.remarks.add(
                name,
                "asks for the functionality ATSSS-LL: a class goes over Multipath QUIC",
            ),
            Functionality::Other(value) => self.remarks.add(
                name,
                format!("asks for functionality {value}, which Release 16 does not have"),
            ),
        }
        if !selection.later.is_empty() {
            let what = format!(
                "octets {} of a later release are left out; they may have thresholds",
                hex(&selection.later)
            );
            self.remarks.add(name, what);
        }
        Ok(class)
    }

    /// Returns the name and the steering of the class for a mode.
    fn steering(&self, mode: &Mode) -> Result<(String, Class), String> {
        let word = |side| match side {
            Side::Threegpp => "3gpp",
            Side::NonThreegpp => "non-3gpp",
        };
        let with = |mode: &str| Class {
            mode: Some(mode.to_owned()),
            ..Class::default()
        };
        let order = |first: Side| {
            let names = [first, first.other()].map(|side| self.names.name(side).to_owned());
            names.to_vec()
        };
        Ok(match mode {
            Mode::ActiveStandby {
                active,
                standby: true,
            } => {
                let class = Class {
                    order: order(*active),
                    ..with("active-standby")
                };
                (format!("{}-first", word(*active)), class)
            }
            Mode::ActiveStandby {
                active,
                standby: false,
            } => {
                let class = Class {
                    order: vec![self.names.name(*active).to_owned()],
                    standby: Some(false),
                    ..with("active-standby")
                };
                (format!("{}-only", word(*active)), class)
            }
            Mode::SmallestDelay => ("smallest-delay".to_owned(), with("smallest-delay")),
            Mode::LoadBalancing { tens } => {
                let (threegpp, other) = (tens * 10, 100 - tens * 10);
                let names = [Side::Threegpp, Side::NonThreegpp].map(|s| self.names.name(s));
                let shares = [threegpp, other].map(f64::from);
                let weights = names.map(str::to_owned).into_iter().zip(shares);
                let class = Class {
                    weights: weights.collect(),
                    ..with("load-balancing")
                };
                (format!("share-{threegpp}-{other}"), class)
            }
            Mode::PriorityBased { high } => {
                let class = Class {
                    order: order(*high),
                    ..with("priority-based")
                };
                (format!("{}-high", word(*high)), class)
            }
            Mode::Other { mode, information } => {
                return Err(format!(
                    "steering mode {mode} with {} is not of Release 16",
                    hex(information)
                ));
            }
        })
    }
}

/// Adds a component to a descriptor.
fn add(d: &mut Descriptor, component: &Component) -> Result<(), String> {
    let ports = |first, last| match first {
        0 => Err("port 0 has no counterpart".to_owned()),
        _ => Ok(Ports { first, last }),
    };
    let v4 = |address, mask| {
        let net = Ipv4Net::with_netmask(address, mask);
        let net = net.map_err(|_| format!("mask {mask} is no prefix"))?;
        Ok::<_, String>(IpNet::from(net).trunc())
    };
    let v6 = |address, length| {
        let net = Ipv6Net::new(address, length).map_err(|e| e.to_string())?;
        Ok::<_, String>(IpNet::from(net).trunc())
    };
    match component {
        Component::MatchAll => {}
        Component::RemoteV4(address, mask) => d.to.push(v4(*address, *mask)?),
        Component::RemoteV6(address, length) => d.to.push(v6(*address, *length)?),
        Component::LocalV4(address, mask) => {
            d.client.push(Client::Network(v4(*address, *mask)?));
        }
        Component::LocalV6(address, length) => {
            d.client.push(Client::Network(v6(*address, *length)?));
        }
        Component::SourceMac(mac) => d.client.push(Client::Mac(Mac(*mac))),
        Component::Protocol(number) => d.protocol.push(Protocol::Number(*number)),
        Component::RemotePort(port) => d.port.push(ports(*port, *port)?),
        Component::RemotePorts(first, last) => d.port.push(ports(*first, *last)?),
        Component::TrafficClass(value, DSCP_MASK) => d.dscp.extend(Dscp::new(value >> 2)),
        Component::TrafficClass(_, mask) => {
            return Err(format!("mask {mask:#04x} is not that of a code point"));
        }
        Component::OsApp(app) => {
            let text = std::str::from_utf8(app).map_err(|e| e.to_string())?;
            d.unit.push(text.parse()?);
        }
        _ => return Err("no counterpart".to_owned()),
    }
    Ok(())
}

fn hex(octets: &[u8]) -> String {
    match octets {
        [] => "nothing".to_owned(),
        _ => octets.iter().map(|o| format!("{o:02x}")).collect(),
    }
}

fn addresses_text(addresses: Addresses) -> String {
    match addresses {
        Addresses::V4(v4) => v4.to_string(),
        Addresses::V6(v6) => v6.to_string(),
        Addresses::Both(v4, v6) => format!("{v4} and {v6}"),
    }
}

fn network_text(network: &NetworkSteering) -> String {
    let [threegpp, other] = [network.threegpp, network.non_threegpp].map(addresses_text);
    let mut text = format!("the device is {threegpp} over 3GPP and {other} over non-3GPP");
    for proxy in &network.proxies {
        let kind = match proxy.kind {
            1 => "converter",
            _ => "proxy of an unknown type",
        };
        let addresses = addresses_text(proxy.addresses);
        text += &format!(", {kind} at {addresses} port {}", proxy.port);
    }
    if !network.later.is_empty() {
        text += &format!(", octets {} of a later release", hex(&network.later));
    }
    text
}

fn measurement_text(measurement: &Measurement) -> String {
    let reports = |reports: bool| match reports {
        true => ", the device reports which access is available",
        false => "",
    };
    match measurement {
        Measurement::Ip {
            addresses,
            threegpp_port,
            non_threegpp_port,
            reports: aari,
            later,
        } => {
            let mut text = format!(
                "measured at {} ports {threegpp_port} and {non_threegpp_port}{}",
                addresses_text(*addresses),
                reports(*aari)
            );
            if !later.is_empty() {
                text += &format!(", octets {} of a later release", hex(later));
            }
            text
        }
        Measurement::Ethernet {
            threegpp,
            non_threegpp,
            reports: aari,
        } => format!(
            "measured at {} and {}{}",
            Mac(*threegpp),
            Mac(*non_threegpp),
            reports(*aari)
        ),
    }
}
