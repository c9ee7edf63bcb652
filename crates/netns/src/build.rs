//! Builds a topology: namespaces, links, addresses, routes and rules.

use std::net::IpAddr;

use anyhow::{Context, Result};
use braid_core::AccessKind;
use ipnet::IpNet;
use rtnetlink::{Handle, LinkMessageBuilder, LinkUnspec};

use super::addressing::{AddressPlan, Family, LinkAddresses, numbered};
use super::busy::choose_prefix;
use super::hosts::Hosts;
use super::links::{AccessPorts, Interface, LinkNames, bring_up, packet_ports, tun_ports};
use super::names::Names;
use super::namespace::{Namespace, netlink_here};
use super::netlink::{self, DefaultRoute};
use super::ports;
use super::spec::{PortChoice, TopologySpec};
use super::sysctl;
use crate::error::LabError;

/// Number of the first access's routing table, less one.
const FIRST_TABLE: u32 = 1000;

/// An access of a built topology.
#[derive(Debug)]
pub struct Access {
    /// Its name, as specified.
    pub name: String,
    /// Its technology.
    pub kind: AccessKind,
    /// Its number, from 1 over all devices.
    pub number: u32,
    /// The device's interface, with its first address.
    pub device: Interface,
    /// The proxy's interface.
    pub proxy: Interface,
    /// Length of the prefix of both addresses.
    pub prefix_len: u8,
    /// The device's routing table for packets from this access's address.
    pub table: u32,
    /// Metric of the device's default route through this access.
    pub metric: u32,
    /// Where the emulator reads and writes.
    pub ports: AccessPorts,
    /// With packet ports, the device's veth peer in the radio namespace.
    pub(super) radio_if: Option<String>,
}

impl Access {
    /// Address number `n`, from 1, of the device's interface; the first is the
    /// one that it is built with.
    pub fn address(&self, n: u32) -> IpAddr {
        numbered(self.device.addr, self.prefix_len, n)
    }
}

/// A device of a built topology.
#[derive(Debug)]
pub struct Device {
    /// Its name, as specified.
    pub name: String,
    /// Where its programs run.
    pub namespace: Namespace,
    /// Its accesses, in the order of the specification.
    pub accesses: Vec<Access>,
}

/// A built topology. Dropping it, or dying, removes all of it, once no process
/// is left in its namespaces.
#[derive(Debug)]
pub struct Topology {
    /// The run that it belongs to.
    pub run_id: String,
    /// Where its addresses are from.
    pub prefix: IpNet,
    /// The proxy's address for its services, on `lo`: of no access.
    pub service: IpAddr,
    /// MTU of every access, bytes.
    pub mtu: u32,
    /// Where the proxy's programs run.
    pub proxy: Namespace,
    /// The devices, in the order of the specification.
    pub devices: Vec<Device>,
    /// Host behind the first device and server behind the proxy, where they were asked for.
    pub hosts: Option<Hosts>,
    /// Differences from what was asked for: kernel settings not taken, a range that moved, ...
    pub notes: Vec<String>,
    /// Holds the far ends of veth pairs.
    pub(super) radio: Option<Namespace>,
}

impl Topology {
    /// Builds a topology.
    ///
    /// # Errors
    /// [`LabError::BadInput`] for what cannot be built, [`LabError::Missing`]
    /// for what cannot be built here. What was built so far goes away.
    pub fn build(spec: &TopologySpec) -> Result<Self, LabError> {
        spec.check()?;
        if spec.family == Family::Ipv6 && !sysctl::has_ipv6() {
            let fix = "remove ipv6.disable=1 from the kernel's command line and restart";
            return Err(LabError::missing(
                "build an IPv6 topology: this kernel has no IPv6",
                fix,
            ));
        }
        let host_routes = netlink_here(async |handle| netlink::routes(&handle).await)
            .context("read the host's routes")?;
        let (prefix, note) = choose_prefix(spec.prefix, spec.family, &host_routes)?;
        let accesses: usize = spec.devices.iter().map(|d| d.accesses.len()).sum();
        let wires = if spec.hosts.is_some() { 2 } else { 0 };
        let plan = AddressPlan::new(prefix, accesses + wires)?;
        let tun = match spec.ports {
            PortChoice::Packet => false,
            PortChoice::Auto => ports::tun_usable().is_ok(),
            PortChoice::Tun => ports::tun_usable().map(|()| true)?,
        };
        let mut builder = Builder {
            spec,
            plan: &plan,
            notes: note.into_iter().collect(),
        };
        let Built {
            proxy,
            devices,
            radio,
            hosts,
        } = builder.build(tun)?;
        let notes = builder.notes;
        Ok(Self {
            run_id: spec.run_id.clone(),
            prefix,
            service: plan.service,
            mtu: spec.mtu,
            proxy,
            devices,
            hosts,
            notes,
            radio,
        })
    }

    /// A device by name.
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|d| d.name == name)
    }

    /// An access by the names of its device and itself.
    ///
    /// # Errors
    /// [`LabError::BadInput`] when there is none.
    pub fn access(&self, device: &str, access: &str) -> Result<(&Device, &Access), LabError> {
        let found = self
            .device(device)
            .and_then(|d| Some((d, d.accesses.iter().find(|a| a.name == access)?)));
        found.ok_or_else(|| {
            LabError::BadInput(format!(
                "there is no access \"{access}\" of a device \"{device}\""
            ))
        })
    }
}

/// Parts of a topology that are made one after the other.
struct Built {
    proxy: Namespace,
    devices: Vec<Device>,
    radio: Option<Namespace>,
    hosts: Option<Hosts>,
}

struct Builder<'a> {
    spec: &'a TopologySpec,
    plan: &'a AddressPlan,
    notes: Vec<String>,
}

impl Builder<'_> {
    fn build(&mut self, tun: bool) -> Result<Built> {
        let proxy = self.namespace("the proxy")?;
        let service = self.plan.service;
        proxy.netlink(async move |handle| {
            let lo = netlink::get_link(&handle, "lo").await?.header.index;
            netlink::add_address(&handle, lo, service, host_len(service)).await
        })?;
        let radio = if tun {
            None
        } else {
            Some(self.namespace("the radio")?)
        };
        let mut proxy_names = Names::new();
        // Of the first device, which has the hosts.
        let mut lan_name = String::new();
        let mut number = 0;
        let mut devices = Vec::new();
        for device in &self.spec.devices {
            let namespace = self.namespace(&device.name)?;
            let mut names = Names::new();
            let mut accesses = Vec::new();
            for (index, access) in device.accesses.iter().enumerate() {
                let link = self.plan.links[number];
                number += 1;
                let names = LinkNames {
                    device: names.give(&access.name),
                    proxy: proxy_names.give_pair(&device.name, &access.name),
                    radio: [format!("d{number}"), format!("p{number}")],
                };
                let number = u32::try_from(number).context("number the accesses")?;
                let built = match &radio {
                    None => tun_ports(&namespace, &proxy, &names),
                    Some(radio) => packet_ports(radio, &namespace, &proxy, &names, number),
                };
                let what = || format!("make access {} of {}", access.name, device.name);
                let ports = built.with_context(what)?;
                let interfaces = self
                    .configure(&namespace, &proxy, &names, link)
                    .with_context(what)?;
                let [device, proxy] = interfaces;
                accesses.push(Access {
                    name: access.name.clone(),
                    kind: access.kind,
                    number,
                    device,
                    proxy,
                    prefix_len: link.prefix_len,
                    table: FIRST_TABLE + number,
                    metric: 100 + u32::try_from(index).context("number the accesses")?,
                    ports,
                    radio_if: radio.is_some().then(|| names.radio[0].clone()),
                });
            }
            if devices.is_empty() {
                lan_name = names.give("lan");
            }
            let device = Device {
                name: device.name.clone(),
                namespace,
                accesses,
            };
            for access in &device.accesses {
                device.route(access, access.device.addr)?;
            }
            devices.push(device);
        }
        let hosts = match &self.spec.hosts {
            None => None,
            Some(of) => {
                let device = devices.first().context("there is no device to be behind")?;
                let namespaces = [
                    self.namespace("the host behind the device")?,
                    self.namespace("the server behind the proxy")?,
                ];
                let names = [lan_name, proxy_names.give("net")];
                let links = [self.plan.links[number], self.plan.links[number + 1]];
                let ends = (device, &proxy);
                Some(Hosts::lay(self.spec, of, ends, namespaces, names, links)?)
            }
        };
        Ok(Built {
            proxy,
            devices,
            radio,
            hosts,
        })
    }

    /// A namespace with its settings made and `lo` up.
    fn namespace(&mut self, name: &str) -> Result<Namespace> {
        let namespace = Namespace::create(name)?;
        let spec = self.spec;
        // A daemon that serves hosts diverts both families, whichever they use.
        let family = match &spec.hosts {
            Some(_) => Family::Ipv6,
            None => spec.family,
        };
        let mut settings = sysctl::base(family, spec.tcp_rmem, spec.tcp_wmem);
        settings.extend(spec.sysctls.iter().map(|(k, v)| (k.clone(), v.clone())));
        for refused in namespace.run(|| sysctl::apply(&settings))? {
            // The same line comes from every namespace.
            if !self.notes.contains(&refused) {
                self.notes.push(refused);
            }
        }
        namespace.netlink(async |handle| {
            netlink::set_link(&handle, LinkUnspec::new_with_name("lo").up(), "bring lo up").await
        })?;
        Ok(namespace)
    }

    /// Brings both interfaces of a link up with their addresses.
    fn configure(
        &self,
        device: &Namespace,
        proxy: &Namespace,
        names: &LinkNames,
        link: LinkAddresses,
    ) -> Result<[Interface; 2]> {
        let (mtu, queue) = (self.spec.mtu, self.spec.txqueuelen);
        let one = |at: &Namespace, name: &str, addr: IpAddr| {
            let change = |link: LinkMessageBuilder<LinkUnspec>| link.txqueuelen(queue).arp(false);
            bring_up(at, name, (addr, link.prefix_len), mtu, change)
        };
        Ok([
            one(device, &names.device, link.device)?,
            one(proxy, &names.proxy, link.proxy)?,
        ])
    }
}

impl Device {
    /// Makes packets from `addr` leave by its access or not at all, and lets those
    /// without a source address take it when no better one is up. Also gives
    /// the interface the address if it lacks it.
    pub(super) fn route(&self, access: &Access, addr: IpAddr) -> Result<()> {
        let Access {
            device: Interface { ifindex, .. },
            prefix_len,
            table,
            metric,
            ..
        } = *access;
        let gateway = access.proxy.addr;
        self.namespace
            .netlink(async move |handle: Handle| {
                netlink::add_address(&handle, ifindex, addr, prefix_len).await?;
                let route = |table, metric| DefaultRoute {
                    gateway,
                    ifindex,
                    source: addr,
                    table,
                    metric,
                };
                netlink::add_default_route(&handle, route(table, 1)).await?;
                netlink::add_unreachable_route(&handle, addr.is_ipv4(), table).await?;
                netlink::add_default_route(&handle, route(libc::RT_TABLE_MAIN.into(), metric))
                    .await?;
                netlink::add_source_rule(&handle, addr, table).await
            })
            .with_context(|| format!("route access {} of {}", access.name, self.name))
    }
}

/// The prefix length of a single address.
fn host_len(addr: IpAddr) -> u8 {
    if addr.is_ipv4() { 32 } else { 128 }
}
