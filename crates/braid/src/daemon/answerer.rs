//! Answers the probes and checks of devices, at the proxy.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use braid_core::Time;
use braid_core::api::{Engine, Role};
use braid_mptcp::manage::probe::{self, Kind, Limiter, Probe};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use super::config::Config;
use super::state::now;
use super::{DaemonError, checker};

/// Answers at each of these addresses until dropped.
#[derive(Default)]
pub(super) struct Answerer(BTreeMap<SocketAddr, JoinSet<()>>);

impl Answerer {
    /// Answers at the proxy's addresses and nowhere else; at the device, nowhere. Where one
    /// of them cannot be had, it answers where it did before.
    pub(super) async fn serve(&mut self, role: Role, config: &Config) -> Result<(), DaemonError> {
        let at = |a| SocketAddr::new(a, config.probe.port);
        let wanted: Vec<_> = match role == Role::Proxy && config.probe.enabled {
            true => config.proxy.iter().copied().map(at).collect(),
            false => vec![],
        };
        let mut new = BTreeMap::new();
        for at in wanted.iter().filter(|at| !self.0.contains_key(at)) {
            new.insert(*at, start(*at, config.engine).await?);
        }
        self.0.retain(|at, _| wanted.contains(at));
        self.0.append(&mut new);
        Ok(())
    }
}

async fn start(at: SocketAddr, engine: Engine) -> Result<JoinSet<()>, DaemonError> {
    let mut tasks = JoinSet::new();
    let socket = UdpSocket::bind(at).await.map_err(|e| {
        DaemonError::Failed(format!(
            "answer probes at {at}: {e}: give this proxy's own address as `proxy`, \
             and a free port as `port` of [probe]"
        ))
    })?;
    tasks.spawn(answer(socket));
    if engine == Engine::Mptcp {
        tasks.spawn(checker::answer(checker::listen(at)?));
    }
    Ok(tasks)
}

async fn answer(socket: UdpSocket) {
    let mut limiter = Limiter::default();
    let mut buffer = [0; probe::LEN + 1];
    loop {
        // A peer that has gone meanwhile (ICMP) is no reason to stop.
        let Ok((n, from)) = socket.recv_from(&mut buffer).await else {
            tokio::task::yield_now().await;
            continue;
        };
        let request = Probe::parse(&buffer[..n]).filter(|p| p.kind == Kind::Request);
        if let Some(request) = request
            && limiter.allows(from, Time::from_nanos(now()))
        {
            let _ = socket.try_send_to(&request.response().emit(), from);
        }
    }
}
