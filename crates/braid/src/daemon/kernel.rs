//! Reads what the kernel has set, and takes the steps of a plan.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use braid_link::Links;
use braid_mptcp::manage::View;
use braid_mptcp::manage::diff::Op;
use braid_mptcp::manage::view::{DefaultRoute, SourceRule};
use futures_util::TryStreamExt;
use ipnet::IpNet;
use nix::errno::Errno;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use rtnetlink::{Handle, IpVersion, RouteMessageBuilder};

use super::DaemonError;
use super::endpoints::Endpoints;

/// The kernel, as seen from the namespace of the thread that made it.
pub(super) struct Kernel {
    handle: Handle,
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
            pm,
            #[cfg(test)]
            refuses: None,
        })
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

    /// Everything.
    pub(super) async fn view(&mut self) -> Result<View, DaemonError> {
        let mut view = self.links().await?;
        let wrong = failed("list the routes");
        for m in [
            RouteMessageBuilder::<Ipv4Addr>::new().build(),
            RouteMessageBuilder::<Ipv6Addr>::new().build(),
        ] {
            let mut all = self.handle.route().get(m).execute();
            while let Some(m) = all.try_next().await.map_err(&wrong)? {
                view.routes.extend(default_route(&m));
            }
        }
        let wrong = failed("list the routing rules");
        for version in [IpVersion::V4, IpVersion::V6] {
            let mut all = self.handle.rule().get(version).execute();
            while let Some(m) = all.try_next().await.map_err(&wrong)? {
                view.rules.extend(source_rule(&m));
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
                (add.execute().await, format!("add {}", say_rule(r)))
            }
            Op::DeleteRule(r) => {
                let delete = self.handle.rule().del(rule_message(r));
                (delete.execute().await, format!("delete {}", say_rule(r)))
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

fn default_route(m: &RouteMessage) -> Option<DefaultRoute> {
    if m.header.destination_prefix_length != 0 || m.header.kind != RouteType::Unicast {
        return None;
    }
    let mut r = DefaultRoute {
        table: m.header.table.into(),
        v4: m.header.address_family == AddressFamily::Inet,
        ifindex: 0,
        gateway: None,
        metric: 0,
        protocol: m.header.protocol.into(),
    };
    for a in &m.attributes {
        match a {
            RouteAttribute::Table(t) => r.table = *t,
            RouteAttribute::Oif(i) => r.ifindex = *i,
            RouteAttribute::Priority(p) => r.metric = *p,
            RouteAttribute::Gateway(RouteAddress::Inet(g)) => r.gateway = Some((*g).into()),
            RouteAttribute::Gateway(RouteAddress::Inet6(g)) => r.gateway = Some((*g).into()),
            _ => {}
        }
    }
    (r.ifindex != 0).then_some(r)
}

fn route_message(r: &DefaultRoute) -> RouteMessage {
    let scope = match r.gateway {
        Some(_) => RouteScope::Universe,
        None => RouteScope::Link,
    };
    if r.v4 {
        let mut b = RouteMessageBuilder::<Ipv4Addr>::new()
            .output_interface(r.ifindex)
            .table_id(r.table)
            .priority(r.metric)
            .scope(scope)
            .protocol(RouteProtocol::from(r.protocol));
        if let Some(IpAddr::V4(g)) = r.gateway {
            b = b.gateway(g);
        }
        return b.build();
    }
    let mut b = RouteMessageBuilder::<Ipv6Addr>::new()
        .output_interface(r.ifindex)
        .table_id(r.table)
        .priority(r.metric)
        .protocol(RouteProtocol::from(r.protocol));
    if let Some(IpAddr::V6(g)) = r.gateway {
        b = b.gateway(g);
    }
    b.build()
}

fn source_rule(m: &RuleMessage) -> Option<SourceRule> {
    if m.header.action != RuleAction::ToTable || m.header.dst_len != 0 || m.header.tos != 0 {
        return None;
    }
    let (mut source, mut priority, mut protocol) = (None, 0, 0);
    let mut table = m.header.table.into();
    for a in &m.attributes {
        match a {
            RuleAttribute::Source(a) => source = Some(*a),
            RuleAttribute::Priority(p) => priority = *p,
            RuleAttribute::Protocol(p) => protocol = u8::from(*p),
            RuleAttribute::Table(t) => table = *t,
            RuleAttribute::SuppressPrefixLen(u32::MAX) => {}
            // A condition that not every packet from the source meets.
            RuleAttribute::Iifname(_)
            | RuleAttribute::Oifname(_)
            | RuleAttribute::FwMark(_)
            | RuleAttribute::UidRange(_)
            | RuleAttribute::IpProtocol(_)
            | RuleAttribute::SourcePortRange(_)
            | RuleAttribute::DestinationPortRange(_)
            | RuleAttribute::L3MDev(_) => return None,
            _ => {}
        }
    }
    Some(SourceRule {
        priority,
        source: IpNet::new(source?, m.header.src_len).ok()?,
        table,
        protocol,
    })
}

fn rule_message(r: &SourceRule) -> RuleMessage {
    let mut m = RuleMessage::default();
    m.header.family = match r.source {
        IpNet::V4(_) => AddressFamily::Inet,
        IpNet::V6(_) => AddressFamily::Inet6,
    };
    m.header.src_len = r.source.prefix_len();
    m.header.action = RuleAction::ToTable;
    m.attributes = vec![
        RuleAttribute::Source(r.source.addr()),
        RuleAttribute::Priority(r.priority),
        RuleAttribute::Table(r.table),
        RuleAttribute::Protocol(RouteProtocol::from(r.protocol)),
    ];
    m
}

fn say_route(r: &DefaultRoute) -> String {
    let by = r.gateway.map(|g| format!(" via {g}")).unwrap_or_default();
    format!(
        "the default route{by} by interface {} in table {}",
        r.ifindex, r.table
    )
}

fn say_rule(r: &SourceRule) -> String {
    format!("the rule from {} to table {}", r.source, r.table)
}
