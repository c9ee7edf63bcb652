//! The status that a daemon tells.

use std::collections::BTreeMap;

use braid_api::{AccessAddress, AccessState, AccessStatus, Ignored, Role, Status};
use braid_mptcp::diag::TcpSocket;
use braid_mptcp::support::Support;

use super::DaemonError;
use super::manager::Manager;
use super::state::{State, lock, now};

/// Combined figures of the subflows of one access.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Traffic {
    subflows: u32,
    srtt_us: Option<u32>,
    sent: u64,
    again: u64,
}

/// Sums up the sockets of each access; `access` names that of a socket.
fn traffic(
    sockets: &[TcpSocket],
    access: &dyn Fn(&TcpSocket) -> Option<String>,
) -> BTreeMap<String, Traffic> {
    let mut all: BTreeMap<String, Traffic> = BTreeMap::new();
    for s in sockets {
        let Some(name) = access(s) else { continue };
        let t = all.entry(name).or_default();
        t.subflows += u32::from(s.is_established());
        if s.tcp.rtt_us > 0 {
            t.srtt_us = Some(t.srtt_us.map_or(s.tcp.rtt_us, |r| r.min(s.tcp.rtt_us)));
        }
        t.sent += s.tcp.bytes_sent;
        t.again += s.tcp.bytes_retrans;
    }
    all
}

impl State {
    pub(super) async fn status(&self) -> Result<Status, DaemonError> {
        let manager = self.manager.lock().await;
        let support = Support::detect();
        let limits = lock(&self.engine).limits();
        let sockets = lock(&self.diag).tcp()?;
        let t_ns = now();
        self.meter_sockets(t_ns, &sockets);
        let traffic = traffic(&sockets, &|s| {
            self.access_of(Some(s.local.ip()), Some(s.remote.ip()))
        });
        let ignored = |(interface, why): &(String, String)| Ignored {
            interface: interface.clone(),
            why: why.clone(),
        };
        let count = lock(&self.accesses).len();
        Ok(Status {
            role: self.role,
            engine: manager.config().engine,
            t_ns,
            accesses: (0..count)
                .map(|i| self.access(i, &manager, &traffic))
                .collect(),
            limits,
            scheduler: support.scheduler,
            default_congestion_control: support.default_congestion_control,
            recover: manager.recovers(),
            ignored: manager.plan().ignored.iter().map(ignored).collect(),
            config_error: lock(&self.config_error).clone(),
            notes: lock(&self.engine).notes().to_vec(),
        })
    }

    /// Access number `i`.
    pub(super) fn access(
        &self,
        i: usize,
        manager: &Manager,
        traffic: &BTreeMap<String, Traffic>,
    ) -> AccessStatus {
        let a = lock(&self.accesses)[i].clone();
        let traffic = traffic.get(&a.name).copied().unwrap_or_default();
        let (carried, rate_mbps) = lock(&self.meter).carried(&a.name);
        let mut status = AccessStatus {
            name: a.name.clone(),
            kind: a.kind,
            address: a.address.map(|n| n.addr()),
            interface: a.interface.as_ref().map(ToString::to_string),
            ifindex: None,
            up: true,
            has_address: true,
            enabled: true,
            backup: a.backup,
            weight: lock(&self.weights).get(&a.name).copied(),
            priority: a.priority,
            expected: a.expected,
            endpoint_id: None,
            state: AccessState::Active,
            why: "served by the peer".into(),
            note: None,
            addresses: vec![],
            srtt_ms: traffic.srtt_us.map(|us| f64::from(us) / 1e3),
            probe_rtt_ms: None,
            loss: (traffic.sent > 0).then(|| traffic.again as f64 / traffic.sent as f64),
            rate_mbps,
            sent_bytes: carried.sent,
            retransmitted_bytes: carried.retransmitted,
            received_bytes: carried.received,
            subflows: traffic.subflows,
        };
        let slow = lock(&self.slowness)
            .of(&a.name)
            .map(|s| format!("slow: {s}"));
        let mut notes: Vec<String> = slow.into_iter().collect();
        if self.role == Role::Device {
            local(&mut status, i, manager);
            notes.extend(manager.notes(i));
        }
        status.note = (!notes.is_empty()).then(|| notes.join("; "));
        status
    }
}

/// Fills in what only the device knows.
fn local(status: &mut AccessStatus, i: usize, manager: &Manager) {
    let (view, plan) = (manager.view(), manager.plan());
    let Some(spec) = manager.settings().accesses.get(i) else {
        return;
    };
    let uses: Vec<_> = plan.uses.iter().filter(|u| u.access == i).collect();
    let endpoint = |address| {
        let of = |e: &&braid_mptcp::pm::Endpoint| e.address == address;
        view.endpoints.iter().find(of).map(|e| e.id)
    };
    let named = uses.first().map(|u| u.interface.clone());
    status.interface = named.or(status.interface.take());
    let link = view
        .interfaces
        .iter()
        .find(|n| Some(&n.name) == status.interface.as_ref());
    status.ifindex = link.map(|n| n.index);
    status.up = link.is_some_and(|n| n.up && n.carrier);
    let has = |address| {
        let mut all = view.addresses.iter();
        all.any(|a| Some(a.ifindex) == status.ifindex && a.address == address)
    };
    status.has_address = uses.iter().any(|u| has(u.address)) || status.address.is_some_and(has);
    status.address = status.address.or(uses.first().map(|u| u.address));
    status.enabled = spec.enabled;
    status.backup = spec.backup;
    status.priority = spec.priority;
    status.addresses = uses
        .iter()
        .map(|u| AccessAddress {
            address: u.address,
            interface: Some(u.interface.clone()),
            endpoint_id: endpoint(u.address),
        })
        .collect();
    status.endpoint_id = uses.iter().find_map(|u| endpoint(u.address));
    status.probe_rtt_ms = uses
        .iter()
        .find_map(|u| manager.detector().probe_rtt(u.address))
        .map(|rtt| rtt.as_secs_f64() * 1e3);
    if let Some((state, why)) = plan.accesses.get(i) {
        status.state = *state;
        status.why.clone_from(why);
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use braid_mptcp::socket::TcpInfo;

    fn socket(port: u16, received: u64, rtt_us: u32) -> TcpSocket {
        TcpSocket {
            cookie: 0,
            local: SocketAddr::from(([10, 77, 1, 2], port)),
            remote: "10.77.0.1:80".parse().unwrap(),
            state: 1,
            inode: 0,
            tcp: TcpInfo {
                bytes_received: received,
                rtt_us,
                bytes_sent: 1000,
                bytes_retrans: 10,
                ..TcpInfo::default()
            },
            congestion_control: "cubic".into(),
            queued_bytes: 0,
            send_buffer_bytes: 0,
            receive_buffer_bytes: 0,
            ulp: None,
        }
    }

    #[test]
    fn sockets_of_an_access_are_summed_up() {
        let name = |_: &TcpSocket| Some("nr".to_owned());
        let of = |all: &[TcpSocket]| traffic(all, &name)["nr"];
        let two = of(&[socket(1, 130_000, 900), socket(2, 0, 400)]);
        assert_eq!((two.srtt_us, two.sent, two.again), (Some(400), 2000, 20));
        // One that is being opened and one that ends are no subflows to count.
        let state = |port, state| TcpSocket {
            state,
            ..socket(port, 0, 400)
        };
        let three = [socket(1, 130_000, 900), state(3, 2), state(4, 4)];
        assert_eq!(of(&three).subflows, 1);
    }
}
