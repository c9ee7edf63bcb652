//! The status that a daemon tells.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use braid_api::{AccessAddress, AccessState, AccessStatus, Ignored, Role, Status};
use braid_mptcp::diag::TcpSocket;
use braid_mptcp::support::Support;

use super::DaemonError;
use super::manager::Manager;
use super::state::{State, lock, now};

/// Two readings less apart than this tell no rate.
const LEAST_NS: u64 = 200_000_000;

/// The bytes that sockets had moved at one time, to tell rates from.
#[derive(Debug, Default)]
pub(super) struct Rates {
    t_ns: u64,
    moved: BTreeMap<(SocketAddr, SocketAddr), u64>,
}

/// Combined figures of the subflows of one access.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Traffic {
    subflows: u32,
    srtt_us: Option<u32>,
    sent: u64,
    again: u64,
    moved: u64,
    rate_mbps: Option<f64>,
}

impl Rates {
    /// Sums up per access; `access` names that of a socket.
    fn traffic(
        &mut self,
        sockets: &[TcpSocket],
        t_ns: u64,
        access: &dyn Fn(&TcpSocket) -> Option<String>,
    ) -> BTreeMap<String, Traffic> {
        let mut all: BTreeMap<String, Traffic> = BTreeMap::new();
        let mut moved = BTreeMap::new();
        for s in sockets {
            let bytes = s.tcp.bytes_acked + s.tcp.bytes_received;
            moved.insert((s.local, s.remote), bytes);
            let Some(name) = access(s) else { continue };
            let t = all.entry(name).or_default();
            t.subflows += u32::from(s.is_established());
            if s.tcp.rtt_us > 0 {
                t.srtt_us = Some(t.srtt_us.map_or(s.tcp.rtt_us, |r| r.min(s.tcp.rtt_us)));
            }
            t.sent += s.tcp.bytes_sent;
            t.again += s.tcp.bytes_retrans;
            let before = self.moved.get(&(s.local, s.remote)).copied();
            t.moved += bytes.saturating_sub(before.unwrap_or(0));
        }
        let span = t_ns.saturating_sub(self.t_ns);
        let known = self.t_ns != 0 && span >= LEAST_NS;
        for t in all.values_mut().filter(|_| known) {
            t.rate_mbps = Some(t.moved as f64 * 8e3 / span as f64);
        }
        if self.t_ns == 0 || span >= LEAST_NS {
            *self = Self { t_ns, moved };
        }
        all
    }
}

impl State {
    pub(super) async fn status(&self) -> Result<Status, DaemonError> {
        let manager = self.manager.lock().await;
        let support = Support::detect();
        let limits = lock(&self.engine).limits();
        let sockets = lock(&self.diag).tcp()?;
        let t_ns = now();
        let traffic = lock(&self.rates).traffic(&sockets, t_ns, &|s| {
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
            rate_mbps: traffic.rate_mbps,
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
    use super::*;
    use braid_mptcp::socket::TcpInfo;

    fn socket(port: u16, received: u64, rtt_us: u32) -> TcpSocket {
        TcpSocket {
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
    fn rates_are_told_between_two_readings() {
        let mut rates = Rates::default();
        let name = |_: &TcpSocket| Some("nr".to_owned());
        let first = rates.traffic(&[socket(1, 5_000, 900)], 1_000_000_000, &name);
        assert_eq!((first["nr"].rate_mbps, first["nr"].subflows), (None, 1));
        // Too soon to tell, and no new start.
        let soon = rates.traffic(&[socket(1, 6_000, 900)], 1_100_000_000, &name);
        assert_eq!(soon["nr"].rate_mbps, None);
        let sockets = [socket(1, 130_000, 900), socket(2, 0, 400)];
        let later = rates.traffic(&sockets, 2_000_000_000, &name)["nr"];
        assert_eq!((later.rate_mbps, later.srtt_us), (Some(1.0), Some(400)));
        assert_eq!((later.sent, later.again), (2000, 20));
        // One that is being opened and one that ends are no subflows to count.
        let state = |port, state| TcpSocket {
            state,
            ..socket(port, 0, 400)
        };
        let three = [socket(1, 130_000, 900), state(3, 2), state(4, 4)];
        let counted = Rates::default().traffic(&three, 1_000_000_000, &name)["nr"];
        assert_eq!(counted.subflows, 1);
        // A socket that went takes nothing away.
        let gone = rates.traffic(&[socket(2, 0, 400)], 3_000_000_000, &name)["nr"];
        assert_eq!(gone.rate_mbps, Some(0.0));
    }
}
