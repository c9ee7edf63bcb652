//! Reads what the kernel has set, and takes the steps of a plan.

mod messages;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use braid_link::{Hosts, Links};
use braid_mptcp::manage::View;
use braid_mptcp::manage::diff::Op;
use braid_mptcp::manage::view::Route;
use futures_util::TryStreamExt;
use nix::errno::Errno;
use rtnetlink::{Handle, IpVersion, RouteMessageBuilder};

use super::DaemonError;
use super::endpoints::Endpoints;
use messages::{route_message, routes, rule, rule_message, say_route};

/// The kernel, as seen from the namespace of the thread that made it.
pub(super) struct Kernel {
    handle: Handle,
    /// Whoever follows the changes of routes is to know to which hosts they matter.
    pub(super) hosts: Hosts,
    pub(super) pm: Option<Endpoints>,
    /// Steps that a test has refused.
    #[cfg(test)]
    pub(super) refuses: Option<fn(&Op) -> bool>,
}

fn failed(what: &str) -> impl Fn(rtnetlink::Error) -> DaemonError {
    move |e| DaemonError::Failed(format!("{what}: {e}"))
}

impl Kernel {
    /// Inside a runtime. Without `pm` there are no endpoints.
    pub(super) fn open(pm: Option<Endpoints>) -> Result<Self, DaemonError> {
        let handle = braid_link::handle()?;
        Ok(Self {
            handle,
            hosts: Hosts::default(),
            pm,
            #[cfg(test)]
            refuses: None,
        })
    }

    /// Returns what asks the kernel for more than this.
    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Interfaces and addresses only.
    pub(super) async fn links(&self) -> Result<View, DaemonError> {
        let links = Links::read(&self.handle).await?;
        Ok(View {
            interfaces: links.interfaces,
            addresses: links.addresses,
            ..View::default()
        })
    }

    /// Everything; of routes those to everywhere, to one of `peers`, and ours.
    pub(super) async fn view(&mut self, peers: &[IpAddr]) -> Result<View, DaemonError> {
        // Before anything is read, so that no change falls between.
        self.hosts.set(peers);
        let mut view = self.links().await?;
        let wrong = failed("list the routes");
        for m in [
            RouteMessageBuilder::<Ipv4Addr>::new().build(),
            RouteMessageBuilder::<Ipv6Addr>::new().build(),
        ] {
            let mut all = self.handle.route().get(m).execute();
            while let Some(m) = all.try_next().await.map_err(&wrong)? {
                let counts = |r: &Route| {
                    r.is_default() || r.is_ours() || peers.iter().any(|p| r.to.contains(p))
                };
                view.routes.extend(routes(&m).into_iter().filter(counts));
            }
        }
        let wrong = failed("list the routing rules");
        for version in [IpVersion::V4, IpVersion::V6] {
            let mut all = self.handle.rule().get(version).execute();
            while let Some(m) = all.try_next().await.map_err(&wrong)? {
                view.rules.extend(rule(&m));
            }
        }
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
        let (result, what) = match op {
            Op::AddRoute(r) => {
                let add = self.handle.route().add(route_message(r));
                (add.execute().await, format!("add {}", say_route(r)))
            }
            Op::DeleteRoute(r) => {
                let delete = self.handle.route().del(route_message(r));
                (delete.execute().await, format!("delete {}", say_route(r)))
            }
            Op::AddRule(r) => {
                let mut add = self.handle.rule().add();
                *add.message_mut() = rule_message(r);
                (add.execute().await, format!("add the rule \"{r}\""))
            }
            Op::DeleteRule(r) => {
                let delete = self.handle.rule().del(rule_message(r));
                (delete.execute().await, format!("delete the rule \"{r}\""))
            }
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
                return change.await.map_err(DaemonError::from);
            }
        };
        match result {
            Ok(()) => Ok(()),
            Err(rtnetlink::Error::NetlinkError(m))
                if AS_WANTED.contains(&Errno::from_raw(m.raw_code().abs())) =>
            {
                Ok(())
            }
            Err(e) => Err(DaemonError::Failed(format!("{what}: {e}"))),
        }
    }
}

/// There already, or gone already.
const AS_WANTED: [Errno; 3] = [Errno::EEXIST, Errno::ESRCH, Errno::ENOENT];
