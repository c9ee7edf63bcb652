//! From a configuration to ATSSS rules.

use std::net::Ipv4Addr;

use braid_core::atsss::{
    Component, Container, Entry, Functionality, Mode, Parameter, Rule, Selection, Side,
};
use braid_core::class::ClassSteering;
use braid_core::rules::{
    Client, Criterion, DEFAULT_CLASS, Descriptor, Outcome, Protocol, Rule as Own,
};
use ipnet::IpNet;

use super::{Names, Remark, Remarks};
use crate::config::{Config, DeviceAccess};

/// Precedence of the rule for what meets no other, asked last. Those before have 1 and up.
const LAST: u8 = 255;
/// Scheduler where the configuration names none.
const USUAL: &str = "minrtt";
/// Shares of two accesses that differ from tens of percent by no more than this are exact.
const EXACT_PERCENT: f64 = 0.05;

/// ATSSS rules of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Container with the rules.
    pub container: Container,
    /// Parts that it lacks.
    pub remarks: Vec<Remark>,
}

/// Makes ATSSS rules of a configuration, with identities where `numbered`. They steer what the device
/// sends; what it receives the network steers by rules of its own (N4).
///
/// # Errors
/// There are more rules than precedence values, or a table is no rule.
pub fn export(
    config: &Config<DeviceAccess>,
    names: &Names,
    numbered: bool,
) -> Result<Exported, String> {
    let mut export = Export {
        config,
        names,
        remarks: Remarks::default(),
        rules: Vec::new(),
    };
    let rules = config.rules().map_err(|p| p.message)?;
    for (place, rule) in rules.iter().enumerate() {
        let title = rule.title(place + 1);
        if let Err(what) = export.rule(rule, &title) {
            let what = format!("left out: {what}; what it is for meets the rules behind it");
            export.remarks.add(&title, what);
        }
    }
    if export.rules.len() >= usize::from(LAST) {
        return Err(format!(
            "{} ATSSS rules are too many, one for each combination of the values of a rule: at most {}",
            export.rules.len(),
            LAST - 1
        ));
    }
    export.default();
    let entries = export.rules.into_iter().zip(1..).map(|(mut rule, n)| {
        rule.identity = numbered.then_some(n);
        if rule.precedence != LAST {
            rule.precedence = n;
        }
        Entry::Set(rule)
    });
    Ok(Exported {
        container: Container(vec![Parameter::Rules(entries.collect())]),
        remarks: export.remarks.0,
    })
}

struct Export<'a> {
    config: &'a Config<DeviceAccess>,
    names: &'a Names,
    remarks: Remarks,
    rules: Vec<Rule>,
}

impl Export<'_> {
    fn rule(&mut self, rule: &Own, title: &str) -> Result<(), String> {
        let selection = match &rule.outcome {
            Outcome::Block => return Err("no ATSSS rule refuses traffic".to_owned()),
            Outcome::Class(name) => self.class(name)?,
            Outcome::Direct(accesses) => self.direct(accesses, title)?,
        };
        let descriptors = combine(&alternatives(&rule.descriptor)?);
        if descriptors.is_empty() {
            return Err("nothing meets it".to_owned());
        }
        for descriptor in descriptors {
            self.rules.push(Rule {
                identity: None,
                precedence: 0,
                descriptor,
                selection: selection.clone(),
            });
        }
        Ok(())
    }

    /// Adds the rule for what meets no other, where the default has a counterpart.
    fn default(&mut self) {
        match self.class(DEFAULT_CLASS) {
            Err(what) => self.remarks.add(
                "what meets no rule",
                format!("left out: {what}; the network decides"),
            ),
            Ok(selection) => self.rules.push(Rule {
                identity: None,
                precedence: LAST,
                descriptor: vec![Component::MatchAll],
                selection,
            }),
        }
    }

    /// Returns the selection of what leaves by the first of these accesses that works.
    fn direct(&mut self, accesses: &[String], title: &str) -> Result<Selection, String> {
        let mut sides = Vec::new();
        for name in accesses {
            match self.names.side(name) {
                Some(side) => sides.push(side),
                None => self.remarks.add(title, no_place(name)),
            }
        }
        let Some(active) = sides.first().copied() else {
            return Err("none of its accesses has a place".to_owned());
        };
        self.remarks.add(
            title,
            "an ATSSS rule says by which access it leaves, and not that this is past the bond",
        );
        let standby = sides.len() > 1;
        let mode = Mode::ActiveStandby { active, standby };
        Ok(Selection::new(Functionality::LowLayer, mode))
    }

    /// Returns the selection of a class.
    fn class(&mut self, name: &str) -> Result<Selection, String> {
        let about = format!("class {name}");
        let steering = match self.config.class.get(name) {
            None => self.default_steering(),
            Some(class) => {
                let steering = class.steering();
                if steering.up != steering.down {
                    let what = "[down] is left out: ATSSS rules steer what the device sends";
                    self.remarks.add(&about, what);
                }
                steering.up
            }
        };
        let mode = self.mode(&steering, &about)?;
        if !steering.thresholds().is_empty() {
            self.remarks.add(
                &about,
                "max_rtt_ms and max_loss_percent are left out: Release 16 has no thresholds",
            );
        }
        if steering.reinject {
            self.remarks
                .add(&about, "reinject is left out: ATSSS has none");
        }
        Ok(Selection::new(Functionality::Supported, mode))
    }

    /// Returns the steering of the default class, as `[scheduler]` and the accesses have it.
    fn default_steering(&self) -> ClassSteering {
        let scheduler = self.config.scheduler.as_ref();
        ClassSteering {
            mode: scheduler
                .and_then(|s| s.name.clone())
                .unwrap_or_else(|| USUAL.to_owned()),
            ..ClassSteering::default()
        }
    }

    fn mode(&mut self, steering: &ClassSteering, about: &str) -> Result<Mode, String> {
        Ok(match steering.scheduler() {
            "active-standby" => {
                let active = self.first(steering, about)?;
                let standby = !steering.is_confined();
                Mode::ActiveStandby { active, standby }
            }
            "priority-based" => {
                let high = self.first(steering, about)?;
                Mode::PriorityBased { high }
            }
            "smallest-delay" => Mode::SmallestDelay,
            "rr" => Mode::LoadBalancing { tens: 5 },
            "wrr" => Mode::LoadBalancing {
                tens: self.tens(steering, about)?,
            },
            "redundant" => {
                return Err(
                    "redundant is of Release 18, whose octets this codec does not know".to_owned(),
                );
            }
            other => return Err(format!("{other} is no steering mode of ATSSS")),
        })
    }

    /// Returns the first access of the order that has a place.
    fn first(&mut self, steering: &ClassSteering, about: &str) -> Result<Side, String> {
        let mut all: Vec<_> = self.config.access.iter().collect();
        all.sort_by_key(|(name, a)| {
            let own = a.priority.unwrap_or(0).into();
            steering.place(name).unwrap_or(own)
        });
        for (name, _) in all {
            match self.names.side(name) {
                Some(side) => return Ok(side),
                None if steering.is_confined() => {
                    return Err(format!("access \"{name}\" alone carries, and has no place"));
                }
                None => self.remarks.add(about, no_place(name)),
            }
        }
        Err("there is no access".to_owned())
    }

    /// Returns the share of the 3GPP access in tens of percent.
    fn tens(&mut self, steering: &ClassSteering, about: &str) -> Result<u8, String> {
        let weight = |name: &str| {
            let own = self.config.access.get(name).and_then(|a| a.weight);
            steering.weight(name).or(own).unwrap_or(1.0)
        };
        let threegpp = weight(&self.names.threegpp);
        let both = threegpp + weight(&self.names.non_threegpp);
        if both <= 0.0 {
            return Err("neither access of a session has a weight".to_owned());
        }
        let others = self.config.access.keys();
        let others = others.filter(|n| self.names.side(n).is_none() && weight(n) > 0.0);
        let others: Vec<_> = others.map(|n| no_place(n)).collect();
        let percent = threegpp / both * 100.0;
        let tens = (percent / 10.0).round();
        if (percent - tens * 10.0).abs() > EXACT_PERCENT {
            self.remarks.add(
                about,
                format!(
                    "{percent:.1} % on {} are given as {} %: Release 16 has tens of percent",
                    self.names.threegpp,
                    tens * 10.0
                ),
            );
        }
        for other in others {
            self.remarks.add(about, other);
        }
        // It is 0 to 10.
        Ok(tens as u8)
    }
}

fn no_place(name: &str) -> String {
    format!("access \"{name}\" has no place: a session of ATSSS has two accesses")
}

/// Returns the components of each criterion, of which one is to be met.
fn alternatives(descriptor: &Descriptor) -> Result<Vec<Vec<Component>>, String> {
    let d = descriptor;
    let others = [
        (Criterion::User, d.user.is_empty()),
        (Criterion::Domain, d.domain.is_empty()),
    ];
    if let Some((other, _)) = others.iter().find(|(_, absent)| !absent) {
        return Err(format!("`{}` has no counterpart", other.as_str()));
    }
    let units = d.unit.iter().map(|unit| {
        let app = unit.as_str().as_bytes().to_vec();
        match app.len() <= usize::from(u8::MAX) {
            true => Ok(Component::OsApp(app)),
            false => Err(format!("unit \"{unit}\" is longer than an OS App Id")),
        }
    });
    let clients = d.client.iter().map(|client| match client {
        Client::Mac(mac) => Component::SourceMac(mac.0),
        Client::Network(net) => network(*net, Component::LocalV4, Component::LocalV6),
    });
    let to = d.to.iter();
    let to = to.map(|net| network(*net, Component::RemoteV4, Component::RemoteV6));
    // Ports are of TCP and UDP.
    let protocols: Vec<u8> = match (d.protocol.is_empty(), d.port.is_empty()) {
        (true, false) => vec![6, 17],
        _ => d
            .protocol
            .iter()
            .flat_map(|p: &Protocol| p.numbers())
            .collect(),
    };
    let ports = d.port.iter().map(|ports| match ports.first == ports.last {
        true => Component::RemotePort(ports.first),
        false => Component::RemotePorts(ports.first, ports.last),
    });
    let dscp = d.dscp.iter();
    let dscp = dscp.map(|code| Component::TrafficClass(code.value() << 2, 0xfc));
    let all = [
        units.collect::<Result<Vec<_>, _>>()?,
        clients.collect(),
        to.collect(),
        protocols.into_iter().map(Component::Protocol).collect(),
        ports.collect(),
        dscp.collect(),
    ];
    Ok(all.into_iter().filter(|of| !of.is_empty()).collect())
}

fn network(
    net: IpNet,
    v4: fn(Ipv4Addr, Ipv4Addr) -> Component,
    v6: fn(std::net::Ipv6Addr, u8) -> Component,
) -> Component {
    match net {
        IpNet::V4(net) => v4(net.network(), net.netmask()),
        IpNet::V6(net) => v6(net.network(), net.prefix_len()),
    }
}

/// Returns the descriptors that have one component of each: what an ATSSS rule makes of several of a
/// type is not said alike everywhere. Those that no packet meets are left out.
fn combine(all: &[Vec<Component>]) -> Vec<Vec<Component>> {
    let mut descriptors = vec![Vec::new()];
    for alternatives in all {
        let with = |d: &Vec<Component>| {
            let d = d.clone();
            let each = alternatives.iter().cloned();
            each.map(move |c| [&d[..], &[c]].concat())
        };
        descriptors = descriptors.iter().flat_map(with).collect();
        descriptors.retain(|d| is_possible(d));
        // More are refused; they need not be made.
        descriptors.truncate(usize::from(LAST) + 1);
    }
    for d in descriptors.iter_mut().filter(|d| d.is_empty()) {
        d.push(Component::MatchAll);
    }
    descriptors
}

/// Whether a packet of one family can meet it.
fn is_possible(descriptor: &[Component]) -> bool {
    use Component::{LocalV4, LocalV6, Protocol, RemoteV4, RemoteV6};
    let has = |of: fn(&Component) -> bool| descriptor.iter().any(of);
    let v4 = has(|c| matches!(c, RemoteV4(..) | LocalV4(..) | Protocol(1)));
    let v6 = has(|c| matches!(c, RemoteV6(..) | LocalV6(..) | Protocol(58)));
    !(v4 && v6)
}
