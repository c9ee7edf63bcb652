//! Subflows that make no progress though their access answers, and paths that carry smaller
//! packets than their interface.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use braid_access::arrivals::{self, Arrivals, Elsewhere, Received};
use braid_access::plan::Use;
use braid_access::probe::packet_size::{Limit, Reach, Sizes};
use braid_access::probe::query::{Subject, Verdict};
use braid_access::route_mtu::{self, Limits};
use braid_access::view::{Action, FIRST_TABLE};
use braid_api::EventKind;
use braid_core::Time;
use braid_mptcp::diag::TcpSocket;
use braid_mptcp::repair::stalls::{Ends, Stalled, Stalls};

use super::super::samples;
use super::Happened;
use super::Manager;
use crate::state::now;

/// State of progress: what is known about it, and what was done.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    stalls: Stalls,
    sizes: Sizes,
    arrivals: Arrivals,
    /// Bytes moved on each address by the last look, and addresses where data flowed before that.
    moved: BTreeMap<IpAddr, u64>,
    flows: BTreeSet<IpAddr>,
    /// The limits that our routes have; `None` before any was set, when a killed daemon's may
    /// be there.
    set: Option<Limits>,
    /// Reports made of addresses: the limit, and when the last stall began.
    limits: BTreeMap<IpAddr, Limit>,
    stalled: BTreeMap<IpAddr, Time>,
}

impl Progress {
    /// When it has something to do.
    pub(crate) fn due(&self) -> Time {
        self.sizes.due()
    }

    /// Takes the response to a size probe; returns whether it ends a search.
    pub(crate) fn size(&mut self, address: IpAddr, number: u32, length: usize, at: Time) -> bool {
        self.sizes.answer(address, number, length, at)
    }
}

impl Manager {
    /// Watches these addresses, which have been planned, and has routes carry the limits that
    /// are known.
    pub(crate) async fn watch_progress(&mut self, addresses: &BTreeSet<IpAddr>) {
        let mtu = |u: &Use| {
            let interface = self.view.interface(u.ifindex)?;
            addresses
                .contains(&u.address)
                .then_some((u.address, interface.mtu))
        };
        let all = self.plan.uses.iter().filter_map(mtu).collect();
        self.repair
            .progress
            .sizes
            .watch(&all, Time::from_nanos(now()));
        // Routes that were added anew have none.
        let stale = self
            .repair
            .progress
            .set
            .as_ref()
            .is_none_or(|l| !l.is_empty());
        if stale || !self.limits().is_empty() {
            self.limit_routes().await;
        }
    }

    /// Goes on with searches for packet sizes; returns what was found out.
    pub(crate) async fn measure(&mut self, t: Time) -> Vec<Happened> {
        let (detector, flows) = (&self.liveness.detector, &self.repair.progress.flows);
        let reach = |a| {
            let rtt = detector.reaches(a)?;
            let flows = flows.contains(&a);
            Some(Reach { rtt, flows })
        };
        let asks = self.repair.progress.sizes.tick(&reach, t);
        asks.iter().for_each(|a| self.liveness.prober.ask_size(a));
        self.lead_the_narrow().await;
        if self.repair.progress.set.as_ref() != Some(&self.limits()) {
            self.limit_routes().await;
        }
        self.limits_found()
    }

    /// Leads packets that have to be small by a route of ours, which says so, where they went by
    /// one of somebody else's. Where the kernel refuses, it is tried again with the next change of
    /// anything.
    async fn lead_the_narrow(&mut self) {
        let sizes = &self.repair.progress.sizes;
        let all = self.plan.uses.iter().map(|u| u.address);
        let narrow: BTreeSet<IpAddr> = all.filter(|a| sizes.limit(*a).is_some()).collect();
        if narrow == self.memory.known.narrow {
            return;
        }
        self.memory.known.narrow = narrow;
        if let Err(e) = self.settle(true).await {
            tracing::warn!("{e}");
        }
    }

    /// The limits of our tables, the least of the addresses that each serves.
    fn limits(&self) -> Limits {
        let mut all = Limits::new();
        for rule in self.plan.rules.iter().filter(|r| r.is_ours()) {
            let address = rule.source.addr();
            let limit = self.repair.progress.sizes.limit(address);
            // One of the rules of an address asks the main table, which is not ours.
            if let (Some(limit), Action::Lookup(table @ FIRST_TABLE..)) = (limit, rule.action) {
                let of_table = (table, address.is_ipv4());
                let bytes = all.entry(of_table).or_insert(limit.bytes);
                *bytes = limit.bytes.min(*bytes);
            }
        }
        // One table leads by several interfaces here.
        for route in self.plan.routes.iter().filter(|r| r.is_for_unbonded()) {
            let limit = route
                .source
                .and_then(|s| self.repair.progress.sizes.limit(s));
            if let Some(limit) = limit {
                let of_table = (route.table, route.is_v4());
                let bytes = all.entry(of_table).or_insert(limit.bytes);
                *bytes = limit.bytes.min(*bytes);
            }
        }
        all
    }

    /// Where the kernel refuses, it is tried again with the next change of anything.
    async fn limit_routes(&mut self) {
        let limits = self.limits();
        if let Err(e) = route_mtu::apply(self.kernel.handle(), &limits).await {
            tracing::warn!("{e}");
        }
        self.repair.progress.set = Some(limits);
    }

    /// News about limits.
    fn limits_found(&mut self) -> Vec<Happened> {
        let mut happened = Vec::new();
        let mut known = BTreeMap::new();
        for u in &self.plan.uses {
            let limit = self.repair.progress.sizes.limit(u.address);
            let before = self.repair.progress.limits.get(&u.address);
            known.extend(limit.map(|l| (u.address, l)));
            let bytes = |l: &Limit| l.bytes;
            if before.map(bytes) == limit.as_ref().map(bytes) {
                continue;
            }
            if limit.is_some() {
                // What ended for this reason does not do so again.
                self.repair.subflow_reopen.explained(u.address);
            }
            let why = match limit {
                Some(l) => self.too_large(u.address, &u.interface, &l),
                None => format!("packets of all sizes pass on {} again", u.interface),
            };
            let Some(access) = self.settings.accesses.get(u.access) else {
                continue;
            };
            tracing::warn!("access \"{}\": {why}", access.name);
            happened.push((Some(access.name.clone()), EventKind::PacketSize { why }));
        }
        self.repair.progress.limits = known;
        happened
    }

    fn too_large(&self, address: IpAddr, interface: &str, limit: &Limit) -> String {
        let ours = self.plan.rules.iter();
        let ours = ours
            .filter(|r| r.is_ours())
            .any(|r| r.source.addr() == address);
        let Limit {
            bytes,
            interface: mtu,
            ..
        } = limit;
        let done = match ours {
            true => format!("its routes carry no larger ones now (mtu {bytes})"),
            false => format!(
                "its routes are somebody else's and stay as they are: ip link set dev {interface} \
                 mtu {bytes}"
            ),
        };
        format!(
            "packets of more than {bytes} bytes do not pass on {interface}, which takes {mtu}: \
             {done}"
        )
    }

    /// Looks for subflows without progress, and asks the other end about those that it alone
    /// can judge; returns those that stall, and news.
    pub(crate) fn look_for_stalls(
        &mut self,
        sockets: &[TcpSocket],
        since_tick: Duration,
        t: Time,
    ) -> (BTreeSet<Ends>, Vec<Happened>) {
        self.look_at_flows(sockets);
        let looks = samples::progress(sockets, since_tick, &self.config.proxy);
        let detector = &self.liveness.detector;
        let questions = self
            .repair
            .progress
            .stalls
            .look(&looks, &|a| detector.last_answered(a), t);
        questions.into_iter().for_each(|q| {
            self.liveness
                .prober
                .ask_subflows(q.address, q.number, q.subjects)
        });
        let stalled = self.repair.progress.stalls.now();
        // The search takes as long as it takes until a stall is certain: it is over by then.
        let suspects: Vec<_> = self.repair.progress.stalls.suspects().collect();
        for (address, since) in suspects {
            self.repair.progress.sizes.suspect(address, since, t);
        }
        (stalled, self.stalls_found())
    }

    /// Takes where data flows: at full size, so that it is no single packet of a handshake.
    fn look_at_flows(&mut self, sockets: &[TcpSocket]) {
        /// Bytes between two looks, 1 Mbit/s.
        const SOME: u64 = 30_000;
        let mut moved: BTreeMap<IpAddr, u64> = BTreeMap::new();
        for s in sockets.iter().filter(|s| s.carries()) {
            *moved.entry(s.local.ip()).or_default() += s.tcp.bytes_acked + s.tcp.bytes_received;
        }
        let before = &self.repair.progress.moved;
        let flows = |(a, now): (&IpAddr, &u64)| {
            let more = now.saturating_sub(*before.get(a)?);
            (more > SOME).then_some(*a)
        };
        self.repair.progress.flows = moved.iter().filter_map(flows).collect();
        self.repair.progress.moved = moved;
    }

    /// Addresses on which nothing is opened again yet: the size of packets is being found out.
    pub(crate) fn held(&self, t: Time) -> BTreeSet<IpAddr> {
        let all = self.plan.uses.iter().map(|u| u.address);
        all.filter(|a| self.repair.progress.sizes.searches(*a, t))
            .collect()
    }

    /// Takes what the other end says of subflows.
    pub(crate) fn told_of_subflows(
        &mut self,
        address: IpAddr,
        number: u32,
        verdicts: &[(Subject, Verdict)],
    ) {
        self.repair
            .progress
            .stalls
            .answer(address, number, verdicts);
    }

    /// Compares what addresses receive with what their interfaces do.
    pub(crate) fn look_at_arrivals(&mut self, sockets: &[TcpSocket], t: Time) {
        if !self.repair.progress.arrivals.is_due(t) {
            return;
        }
        let mut received: BTreeMap<IpAddr, Received> = BTreeMap::new();
        for u in &self.plan.uses {
            let mine = sockets.iter().filter(|s| s.local.ip() == u.address);
            let of = Received {
                interface: u.interface.clone(),
                payload: mine.map(|s| s.tcp.bytes_received).sum(),
            };
            received.insert(u.address, of);
        }
        // Of the namespace of this thread.
        let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
        let counters = arrivals::counters(&text);
        self.repair.progress.arrivals.look(&received, &counters, t);
    }

    /// News about stalls.
    fn stalls_found(&mut self) -> Vec<Happened> {
        let mut happened = Vec::new();
        let mut known = BTreeMap::new();
        for u in &self.plan.uses {
            let Some(s) = self.repair.progress.stalls.of(u.address) else {
                continue;
            };
            known.insert(u.address, s.since);
            if self.repair.progress.stalled.get(&u.address) == Some(&s.since) {
                continue;
            }
            let why = format!(
                "a subflow on {} makes no progress though the access answers: it is opened again",
                u.interface
            );
            let access = self.settings.accesses.get(u.access);
            let name = access.map(|a| a.name.clone());
            happened.push((name, EventKind::SubflowStalled { why }));
        }
        self.repair.progress.stalled = known;
        happened
    }

    /// Notes on packet sizes and stalls of access number `i`.
    pub(crate) fn progress_notes(&self, i: usize) -> Vec<String> {
        let t = Time::from_nanos(now());
        let mut notes = Vec::new();
        for u in self.plan.uses.iter().filter(|u| u.access == i) {
            if let Some(l) = self.repair.progress.sizes.limit(u.address) {
                let since = t.since(l.since).as_secs();
                let what = self.too_large(u.address, &u.interface, &l);
                notes.push(format!("{what}, found {since} s ago"));
            }
            let stalled = self.repair.progress.stalls.of(u.address);
            notes.extend(stalled.map(|s| say_stalled(&s, t)));
            let elsewhere = self.repair.progress.arrivals.of(u.address);
            notes.extend(elsewhere.map(|e| say_elsewhere(u, e, t)));
        }
        notes.dedup();
        notes
    }
}

fn say_elsewhere(u: &Use, e: &Elsewhere, t: Time) -> String {
    let on = match &e.on {
        Some(other) => format!("on {other}"),
        None => "elsewhere".to_owned(),
    };
    format!(
        "what is sent to {} arrives {on}, not on {}, since {} s ago: its router has learned a wrong \
         place, as where two interfaces are in one LAN: ip neigh flush all at the router, or \
         sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2 here",
        u.address,
        u.interface,
        t.since(e.since).as_secs()
    )
}

fn say_stalled(s: &Stalled, t: Time) -> String {
    let ago = t.since(s.since).as_secs();
    let what = match s.subflows {
        1 => "a subflow made no progress though the access answers".to_owned(),
        n => format!("{n} subflows made no progress though the access answers, the last one"),
    };
    format!(
        "{what} since {ago} s ago: it is opened again (a NAT that forgets connections early, or a \
         filter, does that)"
    )
}
