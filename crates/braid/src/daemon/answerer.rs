//! Answers the probes and checks of devices, at the proxy.

use std::net::SocketAddr;

use braid_core::Time;
use braid_core::api::{Engine, Role};
use braid_mptcp::manage::probe::{self, Kind, Limiter, Probe};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use super::config::Config;
use super::state::now;
use super::{DaemonError, checker};

/// Answers at the proxy's addresses until dropped; at the device, nothing.
pub(super) async fn start(role: Role, config: &Config) -> Result<JoinSet<()>, DaemonError> {
    let mut tasks = JoinSet::new();
    if role == Role::Device || !config.probe.enabled {
        return Ok(tasks);
    }
    for address in &config.proxy {
        let at = SocketAddr::new(*address, config.probe.port);
        let socket = UdpSocket::bind(at).await.map_err(|e| {
            DaemonError::Failed(format!(
                "answer probes at {at}: {e}: give this proxy's own address as `proxy`, \
                 and a free port as `port` of [probe]"
            ))
        })?;
        tasks.spawn(answer(socket));
        if config.engine == Engine::Mptcp {
            tasks.spawn(checker::answer(checker::listen(at)?));
        }
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
            && limiter.allows(from.ip(), Time::from_nanos(now()))
        {
            let _ = socket.try_send_to(&request.response().emit(), from);
        }
    }
}
