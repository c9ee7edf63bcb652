//! Routes, rules, interfaces and addresses as the kernel has them, and changes of routes and rules.

mod messages;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use futures_util::TryStreamExt;
use nix::errno::Errno;
use rtnetlink::{Handle, IpVersion, RouteMessageBuilder};

use crate::links::{Hosts, Links};
use crate::reconcile::Step;
use crate::view::{Route, Rule, View};
use crate::{Error, Result};
use messages::{route_message, routes, rule, rule_message, say_route};

/// The kernel, as seen from the namespace of the thread that made it.
#[derive(Debug)]
pub struct Kernel {
    handle: Handle,
    /// Whoever follows the changes of routes is to know to which hosts they matter.
    pub hosts: Hosts,
}

impl Kernel {
    /// Opens a netlink socket, inside a runtime.
    ///
    /// # Errors
    /// There is none to be had.
    pub fn open() -> Result<Self> {
        Ok(Self {
            handle: crate::links::handle()?,
            hosts: Hosts::default(),
        })
    }

    /// Returns what asks the kernel for more than this.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Interfaces and addresses only.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub async fn links(&self) -> Result<View> {
        let links = Links::read(&self.handle).await?;
        Ok(View {
            interfaces: links.interfaces,
            addresses: links.addresses,
            ..View::default()
        })
    }

    /// Everything; of routes those to everywhere, to one of `peers`, and ours.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub async fn view(&self, peers: &[IpAddr]) -> Result<View> {
        // Before anything is read, so that no change falls between.
        self.hosts.set(peers);
        let mut view = self.links().await?;
        let wrong = |e| Error::new("list the routes", e);
        for m in [
            RouteMessageBuilder::<Ipv4Addr>::new().build(),
            RouteMessageBuilder::<Ipv6Addr>::new().build(),
        ] {
            let mut all = self.handle.route().get(m).execute();
            while let Some(m) = all.try_next().await.map_err(wrong)? {
                let counts = |r: &Route| {
                    r.is_default() || r.is_ours() || peers.iter().any(|p| r.to.contains(p))
                };
                view.routes.extend(routes(&m).into_iter().filter(counts));
            }
        }
        let wrong = |e| Error::new("list the routing rules", e);
        for version in [IpVersion::V4, IpVersion::V6] {
            let mut all = self.handle.rule().get(version).execute();
            while let Some(m) = all.try_next().await.map_err(wrong)? {
                view.rules.extend(rule(&m));
            }
        }
        Ok(view)
    }

    /// Takes a step. What is as wanted already is no error.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub async fn take(&self, step: &Step) -> Result<()> {
        match step {
            Step::DeleteRule(r) => self.delete_rule(r).await,
            Step::DeleteRoute(r) => self.delete_route(r).await,
            Step::AddRoute(r) => self.add_route(r).await,
            Step::AddRule(r) => self.add_rule(r).await,
        }
    }

    /// Adds a route. One that is there already is no error.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub async fn add_route(&self, r: &Route) -> Result<()> {
        let add = self.handle.route().add(route_message(r));
        done(add.execute().await, || format!("add {}", say_route(r)))
    }

    /// Deletes a route. One that has gone already is no error.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub async fn delete_route(&self, r: &Route) -> Result<()> {
        let delete = self.handle.route().del(route_message(r));
        done(delete.execute().await, || {
            format!("delete {}", say_route(r))
        })
    }

    /// Adds a rule. One that is there already is no error.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub async fn add_rule(&self, r: &Rule) -> Result<()> {
        let mut add = self.handle.rule().add();
        *add.message_mut() = rule_message(r);
        done(add.execute().await, || format!("add the rule \"{r}\""))
    }

    /// Deletes a rule. One that has gone already is no error.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub async fn delete_rule(&self, r: &Rule) -> Result<()> {
        let delete = self.handle.rule().del(rule_message(r));
        done(delete.execute().await, || {
            format!("delete the rule \"{r}\"")
        })
    }
}

/// There already, or gone already.
const AS_WANTED: [Errno; 3] = [Errno::EEXIST, Errno::ESRCH, Errno::ENOENT];

fn done(
    result: std::result::Result<(), rtnetlink::Error>,
    attempted: impl Fn() -> String,
) -> Result<()> {
    match result {
        Err(rtnetlink::Error::NetlinkError(m))
            if AS_WANTED.contains(&Errno::from_raw(m.raw_code().abs())) =>
        {
            Ok(())
        }
        other => other.map_err(|e| Error::new(attempted(), e)),
    }
}
