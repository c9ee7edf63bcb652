//! Notes on what is unfortunate about an access while it is used.

use std::net::{IpAddr, SocketAddr};

use braid_api::EventKind;
use braid_core::Time;
use braid_mptcp::diag::TcpSocket;

use super::super::samples;
use super::Happened;
use super::Manager;

impl Manager {
    /// Takes how connections began; tells of servers to which MPTCP does not pass.
    pub(crate) fn look_for_stripping(&mut self, sockets: &[TcpSocket], t: Time) -> Vec<Happened> {
        let mut handshakes = samples::handshakes(sockets);
        // What checks find is the state of the access.
        let checked = |to: &SocketAddr| {
            to.port() == self.config.probe.port && self.config.proxy.contains(&to.ip())
        };
        handshakes.retain(|h| !checked(&h.remote));
        self.repair.stripping.look(&handshakes, t);
        let news = self.repair.stripping.news();
        news.into_iter()
            .filter_map(|(address, server)| {
                let i = self.plan.uses.iter().find(|u| u.address == address)?.access;
                let name = self.settings.accesses.get(i)?.name.clone();
                let why = removed(&[server]);
                tracing::warn!("access \"{name}\": {why}");
                Some((Some(name), EventKind::MptcpRemoved { why }))
            })
            .collect()
    }

    /// Returns the notes on access number `i`.
    pub(crate) fn notes(&self, i: usize) -> Vec<String> {
        let uses = self.plan.uses.iter().filter(|u| u.access == i);
        let addresses: Vec<IpAddr> = uses.filter(|u| u.endpoint).map(|u| u.address).collect();
        let of = |a: &IpAddr| self.repair.stripping.of(*a);
        let mut servers: Vec<SocketAddr> = addresses.iter().flat_map(of).collect();
        servers.sort_unstable();
        servers.dedup();
        let routing = self.plan.notes.iter().filter(|(access, _)| *access == i);
        let mut notes: Vec<String> = routing.map(|(_, note)| note.clone()).collect();
        if !servers.is_empty() {
            notes.push(removed(&servers));
        }
        if addresses
            .iter()
            .any(|a| self.repair.priority_repeat.gave_up(*a))
        {
            notes.push(
                "servers send over it although they were asked several times to use it as a \
                 backup only: they do not heed MP_PRIO"
                    .to_owned(),
            );
        }
        let tries = addresses
            .iter()
            .filter_map(|a| self.repair.subflow_reopen.gave_up(*a));
        if let Some(n) = tries.max() {
            notes.push(format!(
                "subflows cannot be opened over it, tried {n} times: something on the path may \
                 remove MPTCP's options on the way to these servers, or they take no more"
            ));
        }
        notes.extend(self.progress_notes(i));
        notes
    }
}

fn removed(servers: &[SocketAddr]) -> String {
    let more = match servers.len() {
        ..=3 => String::new(),
        n => format!(" and {} more", n - 3),
    };
    let some: Vec<String> = servers.iter().take(3).map(ToString::to_string).collect();
    format!(
        "something on the path removes MPTCP's options on the way to {}{more}: connections that \
         begin here stay plain TCP, on this access alone",
        some.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_servers_are_named() {
        let server = |port| SocketAddr::from(([10, 77, 0, 1], port));
        let three = [server(80), server(443), server(8080)];
        assert!(removed(&three).contains("10.77.0.1:80, 10.77.0.1:443, 10.77.0.1:8080: conn"));
        let five = [three.as_slice(), &[server(1), server(2)]].concat();
        assert!(removed(&five).contains(":8080 and 2 more: conn"));
    }
}
