//! Weights of single connections: they hold until the connection ends.

use std::collections::BTreeSet;

use braid_api::{Role, Weights};
use braid_mptcp::diag::TcpSocket;
use braid_mptcp::support;
use ipnet::IpNet;

use super::DaemonError;
use super::engine::one_path;
use super::keep::ByName;
use super::state::{State, lock};

/// So many connections have weights of their own at most: the table in the kernel
/// has room for 4096 addresses.
const MOST: usize = 128;

impl State {
    /// Changes weights of the connection with this token; `None` gives it back to
    /// those of all.
    pub(super) async fn weigh_connection(
        &self,
        token: &str,
        change: Option<&Weights>,
    ) -> Result<Weights, DaemonError> {
        let manager = self.manager.lock().await;
        let token = self.known(token)?;
        let before = lock(&self.own_weights).clone();
        match change {
            Some(change) => {
                self.possible(token, change)?;
                let mut own = lock(&self.own_weights);
                if own.len() >= MOST && !own.contains_key(&token) {
                    return Err(DaemonError::Refused(format!(
                        "{MOST} connections have weights of their own, and no more can: give one \
                         back with braid set weights --connection TOKEN --reset"
                    )));
                }
                own.entry(token).or_default().extend(change.0.clone());
            }
            None => drop(lock(&self.own_weights).remove(&token)),
        }
        let general = lock(&self.weights).clone();
        let done = self
            .put_weights(&general)
            .and_then(|()| self.remember(&manager));
        if let Err(e) = done {
            *lock(&self.own_weights) = before;
            self.put_known_weights();
            return Err(e);
        }
        let own = lock(&self.own_weights).get(&token).cloned();
        let mut all = general;
        all.extend(own.unwrap_or_default());
        Ok(Weights(all))
    }

    /// The connection of this token, after those that have ended are forgotten.
    fn known(&self, token: &str) -> Result<u32, DaemonError> {
        let alive = self.sweep()?;
        let known = token.parse().ok().filter(|t| alive.contains(t));
        known.ok_or_else(|| {
            DaemonError::Unknown(format!(
                "there is no MPTCP connection with the token {token}: braid status --connections \
                 tells those there are"
            ))
        })
    }

    fn possible(&self, token: u32, change: &Weights) -> Result<(), DaemonError> {
        self.check(change)?;
        {
            let engine = lock(&self.engine);
            if !engine.is_mptcp() {
                return Err(one_path());
            }
            let Some(name) = engine.stand_in_name() else {
                return Err(match support::sysctl("net.mptcp.weights") {
                    Some(_) => DaemonError::Lacking(
                        "this kernel's own schedulers have weights for all connections together\n  \
                         to enable it: run it on a kernel without them, where weights come by eBPF"
                            .into(),
                    ),
                    None => DaemonError::Refused(
                        "weights do not count here yet: set those of all connections first, or \
                         [scheduler] name = \"wrr\""
                            .into(),
                    ),
                });
            };
            let other = |s: &&TcpSocket| s.congestion_control != name;
            let sockets = lock(&self.diag).tcp()?;
            let mut mine = sockets.iter().filter(|s| s.token() == Some(token));
            if let Some(s) = mine.find(other) {
                return Err(DaemonError::Refused(format!(
                    "connection {token} has the congestion control {}, not that by which weights \
                     count ({name}): it began before them, or chose its own",
                    s.congestion_control
                )));
            }
        }
        let general = lock(&self.weights);
        for (name, weight) in &change.0 {
            if *weight == 0.0 {
                return Err(DaemonError::Refused(format!(
                    "access \"{name}\": weight 0 makes an access a backup (MP_PRIO), which holds \
                     for all connections: leave out --connection, or take a small weight"
                )));
            }
            if self.role == Role::Device && general.get(name) == Some(&0.0) {
                return Err(DaemonError::Refused(format!(
                    "access \"{name}\" has weight 0, which makes it a backup for all connections: \
                     give it one above 0 first"
                )));
            }
        }
        Ok(())
    }

    /// Forgets the weights of connections that have ended; returns the tokens of
    /// those that live.
    pub(super) fn sweep(&self) -> Result<BTreeSet<u32>, DaemonError> {
        let mut diag = lock(&self.diag);
        let mut alive: BTreeSet<u32> = diag.tcp()?.iter().filter_map(TcpSocket::token).collect();
        alive.extend(diag.mptcp()?.iter().map(|m| m.info.token));
        drop(diag);
        lock(&self.own_weights).retain(|token, _| alive.contains(token));
        Ok(alive)
    }

    /// A connection has ended.
    pub(super) fn forget(&self, token: u32) {
        if lock(&self.own_weights).remove(&token).is_some() {
            self.put_known_weights();
        }
    }

    /// The subflows of all connections: token, address at the device, access.
    pub(super) fn subflows(&self) -> Result<BTreeSet<(u32, IpNet, String)>, DaemonError> {
        let sockets = lock(&self.diag).tcp()?;
        let of = |s: &TcpSocket| {
            let (local, remote) = (s.local.ip(), s.remote.ip());
            let access = self.access_of(Some(local), Some(remote))?;
            let address = match self.role {
                Role::Device => local,
                Role::Proxy => remote,
            };
            Some((s.token()?, address.into(), access))
        };
        Ok(sockets.iter().filter_map(of).collect())
    }

    /// The weights of a connection that has its own.
    pub(super) fn own_weights_of(&self, token: Option<u32>) -> Option<ByName> {
        lock(&self.own_weights).get(&token?).cloned()
    }
}
