//! Steps that the kernel refused, and what they keep out: an address whose route or rule is
//! not as it is to be gets no endpoint, since the kernel would try its subflow once and never
//! again. What needs none of them is done.

use std::net::IpAddr;

use braid_access::view::Route;

use super::diff::Op;
use super::view::View;
use crate::pm::Endpoint;

/// A step that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The step.
    pub op: Op,
    /// Attempt in words, and the kernel's answer.
    pub why: String,
}

impl Refusal {
    /// Whether packets from `address` need this step to leave by the interface, or its
    /// subflows to begin.
    pub fn keeps_out(&self, ifindex: u32, address: IpAddr) -> bool {
        self.is_needed_by(Some(ifindex), address) || self.adds(address)
    }

    /// The interface that it is about, if `view` tells.
    pub fn ifindex(&self, view: &View) -> Option<u32> {
        let has = |is: &dyn Fn(IpAddr) -> bool| {
            let mut all = view.addresses.iter();
            all.find(|a| is(a.address)).map(|a| a.ifindex)
        };
        match &self.op {
            Op::AddRoute(r) | Op::DeleteRoute(r) => Some(r.ifindex),
            Op::AddRule(r) | Op::DeleteRule(r) if r.is_for_unbonded() => None,
            Op::AddRule(r) | Op::DeleteRule(r) => has(&|a| r.source.contains(&a)),
            Op::AddEndpoint(e) | Op::DeleteEndpoint(e) | Op::SetBackup(e, _) => {
                e.ifindex.or_else(|| has(&|a| a == e.address))
            }
        }
    }

    /// Whether the endpoint of `address` must not be added before this step was taken. What
    /// could not be deleted counts, too: it is in the way of what takes its place.
    fn is_needed_by(&self, ifindex: Option<u32>, address: IpAddr) -> bool {
        match &self.op {
            // Subflows that join are bound to their address.
            Op::AddRoute(r) | Op::DeleteRoute(r) if r.is_for_unbonded() => false,
            Op::AddRule(r) | Op::DeleteRule(r) if r.is_for_unbonded() => false,
            Op::AddRoute(r) | Op::DeleteRoute(r) => {
                r.is_v4() == address.is_ipv4() && ifindex.is_none_or(|i| i == r.ifindex)
            }
            Op::AddRule(r) | Op::DeleteRule(r) => r.source.contains(&address),
            Op::DeleteEndpoint(e) => e.address == address,
            Op::AddEndpoint(_) | Op::SetBackup(..) => false,
        }
    }

    fn adds(&self, address: IpAddr) -> bool {
        matches!(&self.op, Op::AddEndpoint(e) if e.address == address)
    }

    /// Whether it is the same step, whatever the endpoint is to be like.
    fn is_like(&self, other: &Self) -> bool {
        match (&self.op, &other.op) {
            (Op::AddEndpoint(a), Op::AddEndpoint(b)) => at(a) == at(b),
            (a, b) => a == b,
        }
    }
}

fn at(e: &Endpoint) -> (IpAddr, Option<u32>) {
    (e.address, e.ifindex)
}

/// The steps that were refused when they were tried last, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refused(Vec<Refusal>);

impl Refused {
    /// Notes that `op` was refused.
    pub fn note(&mut self, op: &Op, why: String) {
        self.0.retain(|r| r.op != *op);
        let op = op.clone();
        self.0.push(Refusal { op, why });
    }

    /// Notes those of `other`, which came later.
    pub fn extend(&mut self, other: Self) {
        for r in other.0 {
            self.note(&r.op, r.why);
        }
    }

    /// Whether `op` has to wait for a step that was refused. What is not bonded does not leave by
    /// an interface for whose own packets there is no route.
    pub fn holds_back(&self, op: &Op) -> bool {
        match op {
            Op::AddEndpoint(e) => {
                let needs = |r: &Refusal| r.is_needed_by(e.ifindex, e.address);
                self.0.iter().any(needs)
            }
            Op::AddRoute(r) if r.is_for_unbonded() => {
                let same = |of: &Route| (of.ifindex, of.is_v4()) == (r.ifindex, r.is_v4());
                let own = |r: &Refusal| matches!(&r.op, Op::AddRoute(of) if same(of) && !of.is_for_unbonded());
                self.0.iter().any(own)
            }
            _ => false,
        }
    }

    /// Whether `op` was refused, or has to wait for one that was.
    pub fn has(&self, op: &Op) -> bool {
        self.holds_back(op) || self.0.iter().any(|r| r.op == *op)
    }

    /// Returns the rejected step that keeps an address out which its access could use.
    pub fn of(&self, ifindex: u32, address: IpAddr) -> Option<&Refusal> {
        self.0.iter().find(|r| r.keeps_out(ifindex, address))
    }

    /// The first one that was not refused `before`.
    pub fn since(&self, before: &Self) -> Option<&Refusal> {
        let new = |r: &&Refusal| !before.0.iter().any(|b| b.is_like(r));
        self.0.iter().find(new)
    }

    /// All of them.
    pub fn iter(&self) -> std::slice::Iter<'_, Refusal> {
        self.0.iter()
    }

    /// Whether everything was taken.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pm::EndpointFlags;
    use braid_access::view::{
        Address, DEFAULT_PRIORITY, DEFAULT_TABLE, FIRST_TABLE, PROTOCOL, RULE_PRIORITY, Rule,
        everywhere,
    };

    fn address(k: u8) -> IpAddr {
        IpAddr::from([10, 77, k, 2])
    }

    fn endpoint(k: u8) -> Op {
        let flags = EndpointFlags::SUBFLOW;
        Op::AddEndpoint(Endpoint::new(address(k), Some(k.into()), flags))
    }

    fn route(k: u8) -> Route {
        Route {
            metric: 1,
            protocol: PROTOCOL,
            ..Route::new(FIRST_TABLE + u32::from(k), everywhere(true), k.into())
        }
    }

    fn rule(k: u8) -> Rule {
        Rule {
            protocol: PROTOCOL,
            ..Rule::new(RULE_PRIORITY, address(k).into(), FIRST_TABLE + u32::from(k))
        }
    }

    #[test]
    fn an_endpoint_waits_for_its_own_route_and_rule_alone() {
        let one = |k: u8| Address {
            ifindex: k.into(),
            address: address(k),
            prefix_len: 24,
            global: true,
            unusable: false,
            deprecated: false,
            temporary: false,
        };
        let mut view = View::default();
        view.network.addresses = [2, 1].map(one).into();
        for op in [
            Op::AddRoute(route(1)),
            Op::DeleteRoute(route(1)),
            Op::AddRule(rule(1)),
            Op::DeleteRule(rule(1)),
        ] {
            let mut refused = Refused::default();
            refused.note(&op, "no".into());
            assert!(refused.holds_back(&endpoint(1)), "{op:?}");
            assert!(!refused.holds_back(&endpoint(2)), "{op:?}");
            assert!(!refused.holds_back(&Op::AddRule(rule(1))), "{op:?}");
            let of_six = "fd77::2".parse().unwrap();
            assert_eq!(refused.of(1, of_six), None);
            assert!(refused.of(1, address(1)).is_some() && refused.of(2, address(2)).is_none());
            assert_eq!(refused.iter().next().unwrap().ifindex(&view), Some(1));
        }
    }

    #[test]
    fn no_endpoint_waits_for_what_is_not_bonded() {
        let to_all = Rule {
            protocol: PROTOCOL,
            ..Rule::new(DEFAULT_PRIORITY, everywhere(true), DEFAULT_TABLE)
        };
        let by_one = Route {
            table: DEFAULT_TABLE,
            ..route(1)
        };
        for op in [Op::AddRule(to_all), Op::AddRoute(by_one)] {
            let mut refused = Refused::default();
            refused.note(&op, "no".into());
            assert!(refused.has(&op) && !refused.has(&endpoint(1)), "{op:?}");
            assert_eq!(refused.of(1, address(1)), None);
        }
        // Nor is it tried by an interface whose own route was refused.
        let by = |k: u8| {
            Op::AddRoute(Route {
                table: DEFAULT_TABLE,
                ..route(k)
            })
        };
        let mut refused = Refused::default();
        refused.note(&Op::AddRoute(route(1)), "no".into());
        assert!(refused.holds_back(&by(1)) && !refused.holds_back(&by(2)));
    }

    #[test]
    fn an_endpoint_that_was_refused_keeps_its_own_address_out() {
        let mut refused = Refused::default();
        refused.note(&endpoint(1), "no".into());
        assert!(!refused.holds_back(&endpoint(1)) && refused.has(&endpoint(1)));
        assert_eq!(refused.of(1, address(1)).unwrap().why, "no");
        assert_eq!(refused.of(2, address(2)), None);
        let Op::AddEndpoint(e) = endpoint(1) else {
            unreachable!()
        };
        let mut marked = Refused::default();
        marked.note(&Op::SetBackup(e, true), "no".into());
        assert_eq!(
            marked.of(1, address(1)),
            None,
            "it is used, though not as asked"
        );
        assert_eq!(
            marked.iter().next().unwrap().ifindex(&View::default()),
            Some(1)
        );
    }

    #[test]
    fn only_what_is_new_counts_against_a_change() {
        let mut before = Refused::default();
        before.note(&endpoint(1), "no".into());
        let mut now = before.clone();
        assert_eq!(now.since(&before), None);
        let Op::AddEndpoint(e) = endpoint(1) else {
            unreachable!()
        };
        let flags = e.flags | EndpointFlags::BACKUP;
        let mut other = Refused::default();
        other.note(&Op::AddEndpoint(Endpoint { flags, ..e }), "no".into());
        assert_eq!(other.since(&before), None, "the same, as a backup");
        now.note(&Op::AddRule(rule(2)), "nor that".into());
        now.note(&endpoint(1), "still not".into());
        assert_eq!(now.since(&before).unwrap().why, "nor that");
        assert_eq!(now.iter().count(), 2);
    }
}
