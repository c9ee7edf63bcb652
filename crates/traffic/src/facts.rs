//! Facts that the kernel states of a connection, saved beyond its end.

use std::collections::BTreeMap;

use braid_mptcp::socket::{self, OnTheWire};
use socket2::Socket;

use super::report::SocketFacts;
use super::spec::Transport;

/// Facts gathered while the connection lives. Subflows come and go, and a
/// closed connection has none: what was said of each last is what counts.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    cc: Option<String>,
    fallback: Option<bool>,
    reinjected: Option<u64>,
    /// Bytes sent again, per subflow ever seen (plain TCP: subflow 0).
    retransmitted: BTreeMap<u32, u64>,
}

impl Facts {
    /// Asks the kernel. What it does not say stays as it was.
    pub(crate) fn observe(&mut self, s: &Socket, transport: Transport) {
        match transport {
            Transport::Udp => return,
            Transport::Tcp => self.observe_tcp(s),
            Transport::Mptcp => match socket::on_the_wire(s) {
                Ok(OnTheWire::Mptcp) => {
                    self.fallback = Some(false);
                    if let Ok(info) = socket::full_info(s) {
                        self.reinjected = Some(info.mptcp.bytes_retrans);
                        for f in info.subflows {
                            self.retransmitted.insert(f.id, f.tcp.bytes_retrans);
                        }
                    }
                }
                Ok(OnTheWire::Fallback) => {
                    self.fallback = Some(true);
                    self.observe_tcp(s);
                }
                Err(_) => {}
            },
        }
        if let Ok(cc) = socket::congestion_control(s) {
            self.cc = Some(cc);
        }
    }

    fn observe_tcp(&mut self, s: &Socket) {
        if let Ok(info) = socket::tcp_info(s) {
            self.retransmitted.insert(0, info.bytes_retrans);
        }
    }

    /// For the report; `None` for UDP.
    pub(crate) fn report(self, transport: Transport) -> Option<SocketFacts> {
        let mptcp = self.fallback == Some(false);
        (transport != Transport::Udp).then(|| SocketFacts {
            cc: self.cc,
            fallback: self.fallback,
            retransmitted_bytes: (!self.retransmitted.is_empty())
                .then(|| self.retransmitted.values().sum()),
            reinjected_bytes: self.reinjected,
            subflows: mptcp.then_some(self.retransmitted.len() as u32),
        })
    }
}
