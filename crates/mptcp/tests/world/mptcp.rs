//! MPTCP connections in a [`World`].

use std::net::TcpStream;

use braid_core::api::Connection;
use braid_mptcp::diag::{Diag, connections};
use braid_mptcp::pm::{Endpoint, EndpointFlags, Limits, PathManager};
use braid_mptcp::socket;

use super::{World, device4, eventually, service};

const MESH: EndpointFlags = EndpointFlags::SUBFLOW.union(EndpointFlags::FULLMESH);

/// Full-mesh endpoints on every access of the device; their ids in order.
pub(crate) fn mesh(w: &World, accesses: u8) -> Vec<u8> {
    endpoints(w, accesses, MESH)
}

pub(crate) fn endpoints(w: &World, accesses: u8, flags: EndpointFlags) -> Vec<u8> {
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
            .map(|(k, i)| pm.add(&Endpoint::new(device4(k), Some(i), flags)).unwrap())
            .collect()
    })
}

pub(crate) fn look(diag: &mut Diag) -> Vec<Connection> {
    let (tcp, mptcp) = (diag.tcp().unwrap(), diag.mptcp().unwrap());
    connections(&tcp, &mptcp, 4, &|local, remote| {
        (1..=9)
            .find(|&k| device4(k) == local || device4(k) == remote)
            .map(|k| format!("access{k}"))
    })
}

/// Waits until the one connection has this many complete subflows.
pub(crate) fn with_subflows(diag: &mut Diag, n: usize) -> Connection {
    eventually("the subflows", || {
        let mut all = look(diag);
        let c = all.pop()?;
        let complete = c.subflows.len() == n && c.subflows.iter().all(|s| s.fully_established);
        (all.is_empty() && complete).then_some(c)
    })
}

/// A connection from the device to a server at the proxy, with this congestion control
/// at both ends, or the default one.
pub(crate) fn connected<'a>(
    w: &World,
    port: u16,
    cc: impl Into<Option<&'a str>>,
) -> (TcpStream, std::thread::JoinHandle<()>) {
    let cc = cc.into();
    let listener = w
        .proxy
        .run(|| socket::listen(service(port), true, cc).unwrap());
    let server = w.serve(listener);
    let stream = w
        .device
        .run(|| socket::connect(None, service(port), true, cc).unwrap());
    (stream, server)
}
