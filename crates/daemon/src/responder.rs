//! Answers the probes and checks of devices, at the proxy.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use braid_access::probe::query::Query;
use braid_access::probe::responder::{self, NoSubflows, Subflows};
use braid_api::Role;
use braid_core::Time;
use braid_mptcp::diag::{Diag, TcpSocket};
use braid_mptcp::repair::stalls;
use tokio::task::JoinSet;

use super::DaemonError;
use super::config::Config;
use super::mptcp_check::{self, Hands};
use super::state::{now, ticked};

/// Age of a list of the sockets by which questions are answered.
const LISTED: Duration = Duration::from_millis(100);

/// Answers at each of these addresses until dropped.
#[derive(Default)]
pub(super) struct Responder(BTreeMap<SocketAddr, JoinSet<()>>);

impl Responder {
    /// Answers at the proxy's addresses and nowhere else; at the device, nowhere. Where one
    /// of them cannot be had, it answers where it did before. With `hands` also questions about
    /// subflows, and checks whether MPTCP passes; other connections go there.
    pub(super) async fn serve(
        &mut self,
        role: Role,
        config: &Config,
        hands: Option<&Hands>,
    ) -> Result<(), DaemonError> {
        let at = |a| SocketAddr::new(a, config.probe.port);
        let wanted: Vec<_> = match role == Role::Proxy && config.probe.enabled {
            true => config.proxy.iter().copied().map(at).collect(),
            false => vec![],
        };
        let mut new = BTreeMap::new();
        for at in wanted.iter().filter(|at| !self.0.contains_key(at)) {
            new.insert(*at, start(*at, hands).await?);
        }
        self.0.retain(|at, _| wanted.contains(at));
        self.0.append(&mut new);
        Ok(())
    }
}

async fn start(at: SocketAddr, hands: Option<&Hands>) -> Result<JoinSet<()>, DaemonError> {
    let mut tasks = JoinSet::new();
    let socket = responder::listen(at).await.map_err(|e| {
        DaemonError::Failed(format!(
            "answer probes at {at}: {e}: give this proxy's own address as `proxy`, \
             and a free port as `port` of [probe]"
        ))
    })?;
    match hands {
        Some(hands) => {
            tasks.spawn(responder::answer(socket, Sockets::open()?));
            let checks = mptcp_check::listen(at, true)?;
            tasks.spawn(mptcp_check::answer(checks, hands.clone()));
        }
        None => {
            tasks.spawn(responder::answer(socket, NoSubflows));
        }
    }
    Ok(tasks)
}

/// The sockets of this end, listed when they are asked about.
struct Sockets {
    diag: Diag,
    /// The kernel's tick before the list was made.
    listed: Option<Time>,
    sockets: Vec<TcpSocket>,
}

impl Sockets {
    fn open() -> Result<Self, DaemonError> {
        Ok(Self {
            diag: Diag::open()?,
            listed: None,
            sockets: vec![],
        })
    }

    /// Returns the sockets, and how long ago their times were counted.
    fn now(&mut self) -> Option<(&[TcpSocket], Duration)> {
        let t = Time::from_nanos(now());
        if self.listed.is_none_or(|at| t.since(at) > LISTED) {
            let at = ticked();
            self.sockets = self.diag.tcp().ok()?;
            self.listed = Some(at);
        }
        Some((&self.sockets, t.since(self.listed?)))
    }
}

impl Subflows for Sockets {
    fn response(&mut self, query: &Query) -> Option<Query> {
        let (sockets, ago) = self.now()?;
        Some(query.response(|s| stalls::verdict(sockets, s, ago)))
    }
}
