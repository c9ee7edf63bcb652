//! TCP sockets of the network namespace, by the access that each is on.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::Duration;

use braid_api::{AccessState, Connection, Role};
use braid_mptcp::diag::{self, Closed, ClosedSockets, Diag, TcpSocket};
use braid_mptcp::support;
use ipnet::IpNet;

use crate::DaemonError;
use crate::config::access_at;
use crate::engine::view::AccessView;
use crate::engine::{Detail, Result};
use crate::meter::{Bytes, Flow, Key};
use crate::shared::Shared;
use crate::state::lock;

/// Addresses whose access is remembered, those that are gone included: as many as the kernel's
/// table of weights takes.
const REMEMBERED: usize = 4096;

/// Access of each address of the device, the newest last.
#[derive(Debug, Default)]
struct Names {
    all: Vec<(IpNet, String)>,
    /// Addresses of now, as they were told last.
    now: Vec<(IpNet, String)>,
}

impl Names {
    /// Takes in whose address is which now; returns whether one is new.
    fn learn(&mut self, now: Vec<(IpNet, String)>) -> bool {
        // As at nearly every look; a proxy may know many.
        if now == self.now {
            return false;
        }
        let fresh = now.iter().any(|n| !self.all.contains(n));
        self.all
            .retain(|(net, _)| now.iter().all(|(n, _)| n != net));
        self.all.extend(now.iter().cloned());
        let extra = self.all.len().saturating_sub(REMEMBERED);
        self.all.drain(..extra);
        self.now = now;
        fresh
    }

    /// Returns the access of an address.
    fn of(&self, address: IpAddr) -> Option<String> {
        access_at(&self.all, address).map(str::to_owned)
    }
}

/// Sockets, and the accesses of their addresses.
pub(crate) struct Sockets {
    role: Role,
    diag: Mutex<Diag>,
    names: Mutex<Names>,
    /// Accesses on which something was established.
    proven: Mutex<BTreeSet<String>>,
    stale_loss_cnt: u32,
}

impl Sockets {
    /// Opens the lists of the calling thread's network namespace.
    pub(crate) fn open(role: Role) -> Result<Self> {
        let stale_loss_cnt = support::sysctl("net.mptcp.stale_loss_cnt")
            .and_then(|s| s.parse().ok())
            .unwrap_or(4);
        Ok(Self {
            role,
            diag: Mutex::new(Diag::open()?),
            names: Mutex::default(),
            proven: Mutex::default(),
            stale_loss_cnt,
        })
    }

    /// Learns which address is which access's; returns whether one is new.
    pub(crate) fn rename(&self, now: Vec<(IpNet, String)>) -> bool {
        lock(&self.names).learn(now)
    }

    /// Returns the accesses of all addresses that are known.
    pub(crate) fn names(&self) -> Vec<(IpNet, String)> {
        lock(&self.names).all.clone()
    }

    /// Returns the access of an address of the device.
    pub(crate) fn access_at(&self, address: IpAddr) -> Option<String> {
        lock(&self.names).of(address)
    }

    /// Returns the access of a subflow: by the device's address, whichever end this is.
    pub(crate) fn access_of(
        &self,
        local: Option<IpAddr>,
        remote: Option<IpAddr>,
    ) -> Option<String> {
        let address = match self.role {
            Role::Device => local,
            Role::Proxy => remote,
        }?;
        lock(&self.names).of(address)
    }

    /// Returns the access of a socket.
    pub(crate) fn access(&self, s: &TcpSocket) -> Option<String> {
        self.access_of(Some(s.local.ip()), Some(s.remote.ip()))
    }

    /// Lists every TCP socket.
    pub(crate) fn tcp(&self) -> Result<Vec<TcpSocket>> {
        Ok(lock(&self.diag).tcp()?)
    }

    /// Reads the subflows; they are listed anew where the last list is older than `listed`.
    pub(crate) fn subflows(&self, listed: Duration) -> Result<Vec<TcpSocket>> {
        Ok(lock(&self.diag).subflows(listed)?)
    }

    /// Reads a subflow that has begun with those of the last list.
    pub(crate) fn learn(&self, local: SocketAddr, remote: SocketAddr, ifindex: Option<u32>) {
        lock(&self.diag).learn(local, remote, ifindex);
    }

    /// Lists the subflows anew the next time.
    pub(crate) fn forget(&self) {
        lock(&self.diag).forget();
    }

    /// Returns the tokens of the connections that live.
    pub(crate) fn tokens(&self) -> Result<BTreeSet<u32>> {
        let mut diag = lock(&self.diag);
        let mut alive: BTreeSet<u32> = diag.tcp()?.iter().filter_map(TcpSocket::token).collect();
        alive.extend(diag.mptcp()?.iter().map(|m| m.info.token));
        Ok(alive)
    }

    /// Describes every connection.
    pub(crate) fn connections(&self) -> Result<Vec<Connection>> {
        self.connections_of(&self.tcp()?)
    }

    /// Describes every connection; `tcp` are the TCP sockets as they have just been listed.
    pub(crate) fn connections_of(&self, tcp: &[TcpSocket]) -> Result<Vec<Connection>> {
        let mptcp = lock(&self.diag).mptcp()?;
        let access = |local, remote| self.access_of(Some(local), Some(remote));
        Ok(diag::connections(tcp, &mptcp, self.stale_loss_cnt, &access))
    }

    /// Describes every connection if `detail` asks for them.
    pub(crate) fn detailed(&self, detail: Detail, tcp: &[TcpSocket]) -> Result<Vec<Connection>> {
        match detail {
            Detail::Accesses => Ok(Vec::new()),
            Detail::Connections => self.connections_of(tcp),
        }
    }

    /// Returns what sockets have carried.
    pub(crate) fn flows(&self, sockets: &[TcpSocket]) -> Vec<Flow> {
        self.prove(sockets);
        sockets.iter().map(|s| self.flow(s)).collect()
    }

    /// Notes the accesses on which something is established.
    fn prove(&self, sockets: &[TcpSocket]) {
        let open = sockets.iter().filter(|s| s.is_established());
        let names: Vec<String> = open.filter_map(|s| self.access(s)).collect();
        lock(&self.proven).extend(names);
    }

    /// Makes an access active on which nothing had come back, where sockets tell otherwise.
    pub(crate) fn judge(&self, access: &str, view: &mut AccessView) {
        if view.state == AccessState::Init && lock(&self.proven).contains(access) {
            view.state = AccessState::Active;
            view.why = match self.role {
                Role::Device => "used".into(),
                Role::Proxy => "served by the peer".into(),
            };
        }
    }

    fn flow(&self, s: &TcpSocket) -> Flow {
        Flow {
            key: Key::Socket(s.cookie),
            access: self.access(s),
            bytes: Bytes {
                sent: s.tcp.bytes_sent,
                retransmitted: s.tcp.bytes_retrans,
                received: s.tcp.bytes_received,
            },
        }
    }

    /// Meters what sockets had carried when they ended, for ever.
    pub(crate) async fn meter(&self, mut closed: ClosedSockets, shared: &Shared) -> DaemonError {
        loop {
            match closed.next().await {
                Ok(Closed::Sockets(all)) => all.iter().for_each(|s| shared.ended(self.flow(s))),
                Ok(Closed::Lost) => {}
                Err(e) => return DaemonError::Failed(format!("{e}: traffic cannot be metered")),
            }
        }
    }

    /// Sums up the sockets of each access.
    pub(crate) fn traffic(&self, sockets: &[TcpSocket]) -> BTreeMap<String, Traffic> {
        self.prove(sockets);
        traffic(sockets, &|s| self.access(s))
    }
}

/// Combined figures of the sockets of one access.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Traffic {
    subflows: u32,
    srtt_us: Option<u32>,
    sent: u64,
    again: u64,
}

impl Traffic {
    /// Fills in what the sockets tell of an access.
    pub(crate) fn fill(self, view: &mut AccessView) {
        view.subflows = self.subflows;
        view.srtt_ms = self.srtt_us.map(|us| f64::from(us) / 1e3);
        view.loss = (self.sent > 0).then(|| self.again as f64 / self.sent as f64);
    }
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

    #[test]
    fn the_longest_prefix_names_an_address_and_old_ones_are_known() {
        let net = |n: &str| -> IpNet { n.parse().unwrap() };
        let name = |names: &Names, a: &str| names.of(a.parse().unwrap());
        let mut names = Names::default();
        let both = vec![
            (net("10.0.0.0/8"), "nr".to_owned()),
            (net("10.1.0.0/16"), "wifi".to_owned()),
        ];
        assert!(names.learn(both.clone()));
        assert!(!names.learn(both));
        assert_eq!(name(&names, "10.1.2.3").as_deref(), Some("wifi"));
        assert_eq!(name(&names, "10.2.2.3").as_deref(), Some("nr"));
        assert_eq!(name(&names, "11.2.2.3"), None);
        // An address that has gone is remembered until another access has it.
        assert!(names.learn(vec![(net("10.2.2.3/32"), "lte".to_owned())]));
        assert_eq!(name(&names, "10.2.2.3").as_deref(), Some("lte"));
        assert_eq!(name(&names, "10.1.2.3").as_deref(), Some("wifi"));
    }
}
