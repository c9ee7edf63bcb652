//! Specification of a topology.

use std::collections::{BTreeMap, HashSet};

use braid_core::AccessKind;
use braid_mptcp::buffers::{TCP_WMEM, to_receive};
use ipnet::IpNet;

use super::addressing::Family;
use crate::error::LabError;

/// Kind of port that joins an access to the emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PortChoice {
    /// TUN where it can be opened, else veth and packet sockets.
    #[default]
    Auto,
    /// TUN, or fail.
    Tun,
    /// Veth pairs and packet sockets.
    Packet,
}

/// Topology to build.
#[derive(Clone, Debug)]
pub struct TopologySpec {
    /// The run that it belongs to, for messages.
    pub run_id: String,
    /// IP version of every address.
    pub family: Family,
    /// Where addresses are taken from; `None`: the first free default range.
    pub prefix: Option<IpNet>,
    /// MTU of every access, bytes.
    pub mtu: u32,
    /// Length of the interfaces' own queue, packets (with offloads, a packet
    /// has up to 64 kB). It must hold what arrives between two turns of the
    /// emulator; the emulated queue is the emulator's.
    pub txqueuelen: u32,
    /// Receive buffers of TCP sockets: least, initial, greatest, bytes.
    pub tcp_rmem: [u32; 3],
    /// Send buffers of TCP sockets: least, initial, greatest, bytes.
    pub tcp_wmem: [u32; 3],
    /// More kernel settings, by dotted name, for every namespace.
    pub sysctls: BTreeMap<String, String>,
    /// How accesses are joined to the emulator.
    pub ports: PortChoice,
    /// The devices.
    pub devices: Vec<DeviceSpec>,
    /// Host behind the first device, and server behind the proxy; `None`: there are none.
    pub hosts: Option<HostsSpec>,
}

/// Way between a host behind the device and a server behind the proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostsSpec {
    /// Access of the first device that leads from the proxy to the host's own address; `None`:
    /// no access does, and only what somebody translates or carries comes back.
    pub routed_by: Option<String>,
}

impl TopologySpec {
    /// Devices over IPv4 from the default range, with an MTU of 1500 bytes.
    pub fn new(run_id: impl Into<String>, devices: Vec<DeviceSpec>) -> Self {
        Self {
            run_id: run_id.into(),
            family: Family::Ipv4,
            prefix: None,
            mtu: 1500,
            txqueuelen: 5000,
            tcp_rmem: to_receive(),
            tcp_wmem: TCP_WMEM,
            sysctls: BTreeMap::new(),
            ports: PortChoice::Auto,
            devices,
            hosts: None,
        }
    }

    /// Finds what cannot be built.
    pub(super) fn check(&self) -> Result<(), LabError> {
        let bad = |text: String| Err(LabError::BadInput(text));
        // RFC 791 3.2 and RFC 8200 5 name the least MTU.
        let least = if self.family == Family::Ipv4 {
            68
        } else {
            1280
        };
        if !(least..=65_535).contains(&self.mtu) {
            return bad(format!(
                "an MTU of {} bytes is impossible: expected {least} to 65535",
                self.mtu
            ));
        }
        if self.hosts.is_some() && self.devices.is_empty() {
            return bad("there is no device that a host could be behind".into());
        }
        let mut devices = HashSet::new();
        for device in &self.devices {
            if !devices.insert(&device.name) {
                return bad(format!("two devices are called \"{}\"", device.name));
            }
            let mut accesses = HashSet::new();
            for access in &device.accesses {
                if !accesses.insert(&access.name) {
                    return bad(format!(
                        "two accesses of {} are called \"{}\"",
                        device.name, access.name
                    ));
                }
            }
        }
        Ok(())
    }
}

/// A device and its accesses, the preferred one first.
#[derive(Clone, Debug)]
pub struct DeviceSpec {
    /// Its name, unique in the topology.
    pub name: String,
    /// Its accesses, in the order in which traffic without a source address
    /// of its own prefers them.
    pub accesses: Vec<AccessSpec>,
}

/// An access of a device.
#[derive(Clone, Debug)]
pub struct AccessSpec {
    /// Its name, unique in the device.
    pub name: String,
    /// Its technology.
    pub kind: AccessKind,
}
