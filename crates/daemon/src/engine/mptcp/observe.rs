//! Samples of subflows for the control loop.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use braid_core::AccessState;
use braid_mptcp::diag::TcpSocket;

use super::manager::Manager;
use super::{LIST, Mptcp};
use crate::control::{Evidence, Key, Look, Reading, Tcp, waits};
use crate::engine::Result;
use crate::state::lock;

/// Retransmission timeouts in a row after which nothing comes back on a subflow.
const SILENT: u8 = 2;

/// Reads a subflow; `strict`: its congestion control keeps the ratio of the weights.
fn reading(s: &TcpSocket, access: String, strict: bool, others_wait: bool) -> Reading {
    let t = &s.tcp;
    let us = |us: u32| Duration::from_micros(us.into());
    Reading {
        key: Key::Subflow(s.local, s.remote),
        access,
        delivered_bytes: t.bytes_acked,
        lost_bytes: t.bytes_retrans,
        in_flight_bytes: u64::from(t.unacked) * u64::from(t.snd_mss),
        queued_bytes: t.notsent_bytes.into(),
        evidence: Evidence::Tcp(Tcp::of(s, strict, others_wait)),
        delivery_rate: (t.delivery_rate > 0).then_some(t.delivery_rate as f64),
        srtt: (t.rtt_us > 0).then(|| us(t.rtt_us)),
        min_rtt: (t.min_rtt_us != u32::MAX).then(|| us(t.min_rtt_us)),
    }
}

/// Reads the subflows of all connections. `strict` names the congestion control that keeps the
/// ratio of the weights, if one does.
fn readings(
    sockets: &[TcpSocket],
    strict: Option<&str>,
    access_of: &dyn Fn(&TcpSocket) -> Option<String>,
) -> Vec<Reading> {
    // Backups are not held back by weights.
    let backup = |s: &TcpSocket| s.ulp.is_some_and(|u| u.backup_local() || u.backup_remote());
    let live = || sockets.iter().filter(|s| s.carries() && !backup(s));
    let waiting = live().filter(|s| waits(s));
    let waiting: BTreeSet<_> = waiting.map(|s| (s.token(), s.local, s.remote)).collect();
    let of = |s: &TcpSocket| {
        let mut beside = waiting.iter().filter(|(token, ..)| *token == s.token());
        let others_wait = beside.any(|(_, l, r)| (*l, *r) != (s.local, s.remote));
        let strict = strict == Some(s.congestion_control.as_str());
        Some(reading(s, access_of(s)?, strict, others_wait))
    };
    live().filter_map(of).collect()
}

/// States of accesses as their subflows alone tell them; none for one that has none.
fn states(
    names: Vec<String>,
    sockets: &[TcpSocket],
    access_of: &dyn Fn(&TcpSocket) -> Option<String>,
) -> Vec<(String, Option<AccessState>)> {
    let mut alive: BTreeMap<String, bool> = BTreeMap::new();
    for s in sockets.iter().filter(|s| s.carries()) {
        if let Some(name) = access_of(s) {
            *alive.entry(name).or_default() |= s.tcp.retransmits < SILENT;
        }
    }
    let state = |name: String| {
        let state = alive.get(&name).map(|alive| match alive {
            true => AccessState::Active,
            false => AccessState::Silent,
        });
        (name, state)
    };
    names.into_iter().map(state).collect()
}

/// Looks at the subflows, and at the accesses.
pub(super) fn look(engine: &Mptcp) -> Result<Look> {
    let sockets = engine.sockets.subflows(LIST)?;
    let access_of = |s: &TcpSocket| engine.sockets.access(s);
    let strict = lock(&engine.namespace).strict_name().map(str::to_owned);
    let states = match engine.is_device() {
        false => {
            let accesses = lock(&engine.accesses);
            let names = accesses.iter().map(|a| a.name.clone()).collect();
            states(names, &sockets, &access_of)
        }
        // While it is busy, states stay as they were.
        true => match engine.manager.try_lock() {
            Ok(manager) => device_states(&manager),
            Err(_) => Vec::new(),
        },
    };
    Ok(Look {
        paths: readings(&sockets, strict.as_deref(), &access_of),
        states,
    })
}

fn device_states(manager: &Manager) -> Vec<(String, Option<AccessState>)> {
    let accesses = manager.settings().accesses.iter();
    let states = accesses.zip(&manager.plan().accesses);
    states
        .map(|(a, (state, _))| (a.name.clone(), Some(*state)))
        .collect()
}

/// Returns the addresses of an access that lead out now, each with its interface.
pub(super) async fn sources(engine: &Mptcp, access: &str) -> Vec<(IpAddr, String)> {
    let manager = engine.manager.lock().await;
    let named = |i: usize| manager.settings().accesses.get(i).map(|a| a.name.as_str());
    let mine = manager.plan().uses.iter().filter(|u| u.routed && !u.trial);
    mine.filter(|u| named(u.access) == Some(access))
        .map(|u| (u.address, u.interface.clone()))
        .collect()
}

/// Returns the addresses from which subflows to other ports than `port` come.
pub(super) fn peers(sockets: &[TcpSocket], port: u16) -> BTreeSet<IpAddr> {
    let others = sockets
        .iter()
        .filter(|s| s.carries() && s.local.port() != port);
    others.map(|s| s.remote.ip().to_canonical()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_mptcp::diag::UlpInfo;
    use braid_mptcp::socket::TcpInfo;

    fn subflow(access: u8, token: u32, timeouts: u8, notsent: u32) -> TcpSocket {
        TcpSocket {
            local: format!("10.77.{access}.2:1").parse().unwrap(),
            remote: "10.77.0.1:80".parse().unwrap(),
            state: 1,
            inode: 0,
            cookie: 0,
            tcp: TcpInfo {
                retransmits: timeouts,
                notsent_bytes: notsent,
                bytes_acked: 1000,
                ..TcpInfo::default()
            },
            congestion_control: "wrr_1".into(),
            queued_bytes: 0,
            send_buffer_bytes: 0,
            receive_buffer_bytes: 0,
            ulp: Some(UlpInfo {
                token_local: token,
                ..UlpInfo::default()
            }),
        }
    }

    fn access_of(s: &TcpSocket) -> Option<String> {
        let ip = s.local.ip().to_string();
        ip.split('.').nth(2).map(|n| format!("a{n}"))
    }

    #[test]
    fn subflows_know_whether_others_of_their_connection_have_data() {
        let mut plain = subflow(3, 0, 0, 9);
        plain.ulp = None;
        let all = [
            subflow(1, 5, 0, 900),
            subflow(2, 5, 0, 0),
            subflow(2, 6, 0, 0),
            plain,
        ];
        let evidence = |strict| -> Vec<(String, bool, bool)> {
            let all = readings(&all, strict, &access_of);
            let of = |r: Reading| match r.evidence {
                Evidence::Tcp(t) => (r.access, t.others_wait, t.strict),
                other => panic!("{other:?}"),
            };
            all.into_iter().map(of).collect()
        };
        let of = |others: [bool; 3], strict| {
            let names = ["a1", "a2", "a2"].map(str::to_owned);
            let all = names.into_iter().zip(others);
            all.map(|(n, o)| (n, o, strict)).collect::<Vec<_>>()
        };
        assert_eq!(evidence(None), of([false, true, false], false));
        assert_eq!(evidence(Some("wrr_1")), of([false, true, false], true));
        assert_eq!(evidence(Some("wrr_2")), of([false, true, false], false));
    }

    #[test]
    fn peers_are_those_whose_subflows_carry_and_go_elsewhere() {
        let of = |last: u8, local_port, state| TcpSocket {
            local: format!("10.77.0.1:{local_port}").parse().unwrap(),
            remote: format!("[::ffff:10.77.1.{last}]:9").parse().unwrap(),
            state,
            ..subflow(1, 5, 0, 0)
        };
        let mut plain = of(5, 80, 1);
        plain.ulp = None;
        let all = [
            of(2, 80, 1),
            of(3, 7724, 1),
            of(4, 80, 4),
            plain,
            of(6, 80, 8),
        ];
        let expected = ["10.77.1.2", "10.77.1.6"].map(|a| a.parse().unwrap());
        assert_eq!(peers(&all, 7724), expected.into());
    }

    #[test]
    fn a_proxy_tells_states_by_subflows() {
        let names = || ["a1", "a2", "a3"].map(str::to_owned).to_vec();
        let all = [
            subflow(1, 5, 3, 0),
            subflow(1, 6, 0, 0),
            subflow(2, 5, 2, 0),
        ];
        let told: Vec<_> = states(names(), &all, &access_of)
            .into_iter()
            .map(|(_, s)| s)
            .collect();
        let expected = [Some(AccessState::Active), Some(AccessState::Silent), None];
        assert_eq!(told, expected);
    }
}
