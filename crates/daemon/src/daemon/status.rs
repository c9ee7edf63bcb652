//! Status of an end: what its engines show, joined.

use std::time::Instant;

use braid_api::{AccessStatus, Status};

use super::Daemon;
use crate::accesses::Wanted;
use crate::config::Access;
use crate::engine::view::{AccessView, EngineStatus, join};
use crate::engine::{Detail, Result};
use crate::lan::Lan;
use crate::state::{lock, now};
use crate::usage;

impl Daemon {
    pub(crate) async fn status(&self) -> Result<Status> {
        self.described(Detail::Accesses).await
    }

    /// Returns the status with the connections at the same moment: the kernel lists the sockets
    /// once for both.
    pub(crate) async fn status_with_connections(&self) -> Result<Status> {
        self.described(Detail::Connections).await
    }

    async fn described(&self, detail: Detail) -> Result<Status> {
        let begun = Instant::now();
        let mut all = Vec::new();
        for e in &self.engines {
            all.push((e.kind(), e.status(detail).await?));
        }
        let t_ns = now();
        let connections = (detail == Detail::Connections).then(|| {
            let all = all.iter_mut();
            let all = all.map(|(kind, s)| (*kind, std::mem::take(&mut s.connections)));
            self.joined(all, t_ns, begun)
        });
        let flows = all
            .iter_mut()
            .flat_map(|(_, s)| std::mem::take(&mut s.flows));
        lock(&self.shared.meter).read(t_ns, flows);
        let config = lock(&self.config).clone();
        let wanted = lock(&self.wanted).clone();
        let weights = self.weights_in_force();
        let known = config.accesses.iter().zip(&wanted).enumerate();
        let access = |(i, (a, wanted)): (usize, (&Access, &Wanted))| {
            let views = all.iter();
            let views = views.filter_map(|(k, s)| Some((*k, s.accesses.get(i)?.clone())));
            let weight = weights.get(&a.name).copied();
            self.access(a, wanted, weight, join(views.collect()))
        };
        let accesses = known.map(access).collect();
        let mut notes: Vec<String> = Vec::new();
        let mut ignored = Vec::new();
        for (_, s) in &all {
            notes.extend(s.notes.iter().cloned());
            ignored.extend(s.ignored.iter().cloned());
        }
        notes.extend(self.shared.control.notes());
        notes.extend(self.shared.names.note());
        notes.extend(self.shared.proxies.note());
        notes.extend(self.shared.registration.note());
        notes.extend(self.shared.usage.note());
        notes.extend(self.shared.energy.notes());
        notes.extend(self.shared.conversion.note());
        notes.extend(lock(&self.converting).note.clone());
        let down_weights = match self.registers_somewhere() {
            true => Some(self.registers().weights()),
            false => None,
        };
        let lan = self.lan.lock().await.as_ref().map(Lan::status);
        let of = |f: fn(&EngineStatus) -> Option<String>| all.iter().find_map(|(_, s)| f(s));
        Ok(Status {
            role: self.shared.role,
            engine: config.engines[0],
            engines: config.engines.clone(),
            t_ns,
            accesses,
            limits: all.iter().find_map(|(_, s)| s.limits),
            scheduler: of(|s| s.scheduler.clone()),
            scheduling: all.iter().find_map(|(_, s)| s.scheduling.clone()),
            default_congestion_control: of(|s| Some(s.congestion_control.clone()))
                .unwrap_or_default(),
            recover: all.iter().any(|(_, s)| s.recover),
            ignored,
            config_error: lock(&self.config_error).clone(),
            proxy_unreachable: self.shared.contact.trouble(),
            down_weights,
            lan,
            power: self.shared.energy.counters(),
            notes,
            connections,
        })
    }

    fn access(
        &self,
        a: &Access,
        wanted: &Wanted,
        weight: Option<f64>,
        view: AccessView,
    ) -> AccessStatus {
        let (carried, rate_mbps) = lock(&self.shared.meter).carried(&a.name);
        let cap = a.cap.as_ref();
        let cap = cap.map(|cap| (cap, self.shared.usage.status(&a.name, cap)));
        let capped = cap.as_ref().and_then(|(cap, s)| usage::note(cap, s));
        let mut notes = view.notes;
        notes.extend(capped);
        AccessStatus {
            name: a.name.clone(),
            kind: a.kind,
            address: view.address,
            interface: view.interface,
            ifindex: view.ifindex,
            up: view.up,
            has_address: view.has_address,
            enabled: wanted.enabled,
            backup: wanted.backup,
            weight,
            priority: wanted.priority,
            expected: wanted.expected,
            limit: wanted.limit,
            endpoint_id: view.endpoint_id,
            state: view.state,
            why: view.why,
            note: (!notes.is_empty()).then(|| notes.join("; ")),
            addresses: view.addresses,
            srtt_ms: view.srtt_ms,
            probe_rtt_ms: view.probe_rtt_ms,
            loss: view.loss,
            rate_mbps,
            sent_bytes: carried.sent,
            retransmitted_bytes: carried.retransmitted,
            received_bytes: carried.received,
            subflows: view.subflows,
            cap: cap.map(|(_, status)| status),
            energy: self.shared.energy.of(&a.name),
        }
    }
}
