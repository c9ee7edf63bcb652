//! Reads what the kernel has set, and takes the steps of a plan.

use std::net::IpAddr;

use braid_access::kernel::Kernel as Network;
use braid_access::links::Hosts;
use braid_mptcp::manage::View;
use braid_mptcp::manage::diff::Op;
use rtnetlink::Handle;

use super::DaemonError;
use crate::engine::mptcp::Endpoints;

/// The kernel, as seen from the namespace of the thread that made it.
pub(super) struct Kernel {
    network: Network,
    pub(super) pm: Option<Endpoints>,
    /// Steps that a test has refused.
    #[cfg(test)]
    pub(super) refuses: Option<fn(&Op) -> bool>,
}

impl Kernel {
    /// Inside a runtime. Without `pm` there are no endpoints.
    pub(super) fn open(pm: Option<Endpoints>) -> Result<Self, DaemonError> {
        Ok(Self {
            network: Network::open()?,
            pm,
            #[cfg(test)]
            refuses: None,
        })
    }

    /// Returns what asks the kernel for more than this.
    pub(super) fn handle(&self) -> &Handle {
        self.network.handle()
    }

    /// Tells whoever follows the changes of routes to which hosts they matter.
    pub(super) fn watched_by(&mut self, hosts: Hosts) {
        self.network.hosts = hosts;
    }

    /// Everything; of routes those to everywhere, to one of `peers`, and ours.
    pub(super) async fn view(&mut self, peers: &[IpAddr]) -> Result<View, DaemonError> {
        let mut view = View::from(self.network.view(peers).await?);
        if let Some(pm) = &self.pm {
            view.endpoints = pm.list().await?;
        }
        Ok(view)
    }

    /// Takes one step. What is as wanted already is no error.
    pub(super) async fn apply(&mut self, op: &Op) -> Result<(), DaemonError> {
        #[cfg(test)]
        if self.refuses.is_some_and(|refuses| refuses(op)) {
            return Err(DaemonError::Failed(format!("take the step {op:?}")));
        }
        match op {
            Op::AddRoute(r) => self.network.add_route(r).await?,
            Op::DeleteRoute(r) => self.network.delete_route(r).await?,
            Op::AddRule(r) => self.network.add_rule(r).await?,
            Op::DeleteRule(r) => self.network.delete_rule(r).await?,
            Op::AddEndpoint(_) | Op::DeleteEndpoint(_) | Op::SetBackup(..) => {
                let Some(pm) = &self.pm else {
                    return Ok(());
                };
                let op = op.clone();
                let change = pm.change(move |pm| match op {
                    Op::AddEndpoint(e) => pm.add(&e).map(|_| ()),
                    Op::DeleteEndpoint(e) => pm.delete(e.id),
                    Op::SetBackup(e, backup) => pm.set_backup(e.id, backup),
                    _ => Ok(()),
                });
                change.await?;
            }
        }
        Ok(())
    }
}
