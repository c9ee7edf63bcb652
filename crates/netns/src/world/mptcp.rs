//! MPTCP connections in a [`World`].

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, TcpStream};

use braid_api::Connection;
use braid_mptcp::diag::{Diag, connections};
use braid_mptcp::pm::{Endpoint, EndpointFlags, Limits, PathManager};
use braid_mptcp::socket;
use braid_mptcp::weights::Rule;

use super::{World, device4, device6, eventually, fetch, service};

/// Flags of an endpoint that every address of the peer gets a subflow from.
pub const MESH: EndpointFlags = EndpointFlags::SUBFLOW.union(EndpointFlags::FULLMESH);

/// Full-mesh endpoints on every access of the device; their ids in order.
pub fn mesh(w: &World, accesses: u8) -> Vec<u8> {
    endpoints(w, accesses, MESH)
}

/// Sets endpoints with these flags on the accesses of the device; returns their ids in order.
pub fn endpoints(w: &World, accesses: u8, flags: EndpointFlags) -> Vec<u8> {
    endpoints_at(w, accesses, device4, flags)
}

/// At other addresses than those of IPv4.
pub fn endpoints_at(
    w: &World,
    accesses: u8,
    device: fn(u8) -> IpAddr,
    flags: EndpointFlags,
) -> Vec<u8> {
    w.proxy.run(|| {
        PathManager::open()
            .unwrap()
            .set_limits(Limits::MAX)
            .unwrap()
    });
    let indices: Vec<u32> = (1..=accesses).map(|k| w.ifindex(k)).collect();
    w.device.run(|| {
        let mut pm = PathManager::open().unwrap();
        pm.set_limits(Limits::MAX).unwrap();
        (1..=accesses)
            .zip(indices)
            .map(|(k, i)| pm.add(&Endpoint::new(device(k), Some(i), flags)).unwrap())
            .collect()
    })
}

/// Reads the connections of the namespace of `diag`; no access has a name.
pub fn look(diag: &mut Diag) -> Vec<Connection> {
    let (tcp, mptcp) = (diag.tcp().unwrap(), diag.mptcp().unwrap());
    connections(&tcp, &mptcp, 4, &|local, remote| {
        (1..=9)
            .find(|&k| {
                [device4(k), device6(k)]
                    .iter()
                    .any(|a| [local, remote].contains(a))
            })
            .map(|k| format!("access{k}"))
    })
}

/// Waits until the one connection has this many complete subflows.
pub fn with_subflows(diag: &mut Diag, n: usize) -> Connection {
    eventually("the subflows", || {
        let mut all = look(diag);
        let c = all.pop()?;
        let complete = c.subflows.len() == n && c.subflows.iter().all(|s| s.fully_established);
        (all.is_empty() && complete).then_some(c)
    })
}

/// A connection from the device to a server at the proxy, with this congestion control
/// at both ends, or the default one.
pub fn connected<'a>(
    w: &World,
    port: u16,
    cc: impl Into<Option<&'a str>>,
) -> (TcpStream, std::thread::JoinHandle<()>) {
    connected_to(w, service(port), cc)
}

/// Connects from the device to a server at `to` at the proxy, of either family, with this
/// congestion control at both ends, or the default one.
pub fn connected_to<'a>(
    w: &World,
    to: SocketAddr,
    cc: impl Into<Option<&'a str>>,
) -> (TcpStream, std::thread::JoinHandle<()>) {
    let cc = cc.into();
    let listener = w.proxy.run(|| socket::listen(to, true, cc).unwrap());
    let server = w.serve(listener);
    let stream = w
        .device
        .run(|| socket::connect(None, to, true, cc).unwrap());
    (stream, server)
}

/// Weights at the proxy, by access.
pub fn weights(of: &[(u8, f64)]) -> Vec<Rule> {
    let rule = |&(k, weight): &(u8, f64)| Rule {
        net: device4(k).into(),
        remote: true,
        weight,
        access: k,
    };
    of.iter().map(rule).collect()
}

/// Fetches so many bytes; the part that each of three accesses had in them, in order.
pub fn shares(stream: &mut TcpStream, diag: &mut Diag, bytes: u64) -> Vec<f64> {
    let mut acked = || -> BTreeMap<String, u64> {
        let subflows = with_subflows(diag, 3).subflows;
        let each = subflows.into_iter();
        each.map(|s| (s.access.unwrap(), s.acked_bytes)).collect()
    };
    let before = acked();
    fetch(stream, bytes);
    let after = acked();
    let each: Vec<u64> = before.iter().map(|(k, n)| after[k] - n).collect();
    let all: u64 = each.iter().sum();
    each.iter().map(|n| *n as f64 / all as f64).collect()
}
