//! Events of a case: link changes at their exact time, interfaces up and
//! down, and how long an access takes until it is used again.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use braid_core::Time;
use braid_core::api::{self, AccessState, EventKind};
use braid_radio::model::LinkChange;

use super::DEVICE;
use super::ends::Ends;
use super::expected;
use super::radio::Radio;
use super::sampler::data_links;
use crate::scenario::{Action, Case, Event, PathManager};
use crate::summary::EventRow;
use crate::topology::Topology;
use crate::traffic::clock::now;

/// Data on a link after link-up means this much: more than acknowledgements
/// and keep-alives, no more than one full packet.
const DATA: u64 = 1000;
/// How often the link is looked at until then.
const LOOK: Duration = Duration::from_millis(5);

/// An access that is down or has come up again.
#[derive(Clone, Debug)]
pub(super) struct Outage {
    pub(super) access: String,
    pub(super) down: Time,
    pub(super) up: Option<Time>,
    /// The device's end took it out.
    pub(super) out: Option<Time>,
    /// First data on it after that.
    pub(super) reused: Option<Time>,
    /// Bytes handed to its link until it came up.
    seen: u64,
}

#[cfg(test)]
impl Outage {
    pub(super) fn for_test(access: &str, down: Time, up: Time, reused: Option<Time>) -> Self {
        Self {
            access: access.into(),
            down,
            up: Some(up),
            out: None,
            reused,
            seen: 0,
        }
    }
}

/// Carries out the events of a case.
pub(super) struct Schedule {
    case: Case,
    repeat: u32,
    start: Time,
    done: usize,
    pub(super) outages: Vec<Outage>,
    rows: Vec<EventRow>,
    /// The weights of accesses now.
    pub(super) weights: BTreeMap<String, f64>,
    /// Numbers of the addresses that accesses have now, where not the first.
    addresses: BTreeMap<String, u32>,
    /// When the device looks next at what it expects of its accesses.
    look: Option<Duration>,
}

impl Schedule {
    pub(super) fn new(case: &Case, repeat: u32, start: Time) -> Self {
        Self {
            case: case.clone(),
            repeat,
            start,
            done: 0,
            outages: Vec::new(),
            rows: Vec::new(),
            weights: case.weights.clone().unwrap_or_default(),
            addresses: BTreeMap::new(),
            look: case.expect.and_then(|e| e.every),
        }
    }

    /// Hands every change of a link to the emulator, which makes it on time.
    pub(super) async fn arm(&self, radio: &Radio) -> Result<()> {
        for event in &self.case.events {
            let both = |change: LinkChange| (vec![change.clone()], vec![change]);
            let (down, up) = match &event.action {
                Action::Down | Action::Blackhole => both(LinkChange::Down),
                Action::Up => both(LinkChange::Up),
                Action::Change { down, up } => (down.clone(), up.clone()),
                Action::Weights(_) | Action::Address(_) => continue,
            };
            for (changes, way) in [(down, "down"), (up, "up")] {
                for change in changes {
                    radio
                        .change(&format!("{}.{way}", event.access), &change, event.at)
                        .await?;
                }
            }
        }
        Ok(())
    }

    /// When [`Schedule::run`] is needed next.
    pub(super) fn next(&self) -> Time {
        let event = self
            .case
            .events
            .get(self.done)
            .map_or(Time::MAX, |e| self.start + e.at);
        let look = self.look.map_or(Time::MAX, |at| self.start + at);
        let event = event.min(look);
        if self.watching().next().is_some() {
            event.min(now() + LOOK)
        } else {
            event
        }
    }

    fn watching(&self) -> impl Iterator<Item = &Outage> {
        self.outages
            .iter()
            .filter(|o| o.up.is_some() && o.reused.is_none())
    }

    /// Does what is due at `t`.
    pub(super) async fn run(
        &mut self,
        t: Time,
        topology: &Topology,
        radio: &mut Radio,
        ends: &mut Ends,
    ) -> Result<()> {
        while let Some(event) = self.case.events.get(self.done).cloned() {
            if self.start + event.at > t {
                break;
            }
            self.done += 1;
            self.apply(&event, topology, radio, ends).await?;
        }
        while let Some(at) = self.look.filter(|at| self.start + *at <= t) {
            let every = self.case.expect.and_then(|e| e.every);
            self.look = every.map(|every| at + every);
            self.expect_anew(at, ends).await?;
        }
        self.watch(radio).await
    }

    /// Tells the device what to expect of the accesses that are there.
    async fn expect_anew(&self, at: Duration, ends: &mut Ends) -> Result<()> {
        for access in &self.case.accesses {
            let gone = |o: &Outage| o.access == access.name && o.up.is_none();
            if self.outages.iter().any(gone) {
                continue;
            }
            self.expect(&access.name, at, ends).await?;
        }
        Ok(())
    }

    /// Tells the device what to expect of one access.
    async fn expect(&self, access: &str, at: Duration, ends: &mut Ends) -> Result<()> {
        match expected::of(&self.case, access, at) {
            Some(expected) => ends.expect(access, expected).await,
            None => Ok(()),
        }
    }

    async fn apply(
        &mut self,
        event: &Event,
        topology: &Topology,
        radio: &Radio,
        ends: &mut Ends,
    ) -> Result<()> {
        match event.action {
            Action::Down => {
                topology.link_down(DEVICE, &event.access)?;
                self.tell(ends, &event.access, false).await?;
            }
            Action::Up => {
                self.expect(&event.access, event.at, ends).await?;
                let (interface, _) = topology.link_state(DEVICE, &event.access)?;
                if !interface {
                    topology.link_up(DEVICE, &event.access, self.address(&event.access))?;
                    self.tell(ends, &event.access, true).await?;
                }
            }
            Action::Address(new) => {
                let old = self.address(&event.access);
                topology.forget_address(DEVICE, &event.access, old)?;
                self.addresses.insert(event.access.clone(), new);
            }
            Action::Weights(ref weights) => {
                ends.weigh(weights).await?;
                self.weights.extend(weights.clone());
            }
            Action::Blackhole | Action::Change { .. } => {}
        }
        let t = now();
        let open = self
            .outages
            .iter()
            .position(|o| o.access == event.access && o.up.is_none());
        match (&event.action, open) {
            (Action::Down | Action::Blackhole, None) => {
                self.outages.push(Outage {
                    access: event.access.clone(),
                    down: t,
                    up: None,
                    out: None,
                    reused: None,
                    seen: 0,
                });
            }
            (Action::Up, Some(i)) => {
                let stats = radio.stats().await?;
                self.outages[i].seen = offered(&stats, &self.case, &event.access);
                self.outages[i].up = Some(t);
            }
            _ => {}
        }
        self.row(t, &event.access, event.label.clone());
        Ok(())
    }

    /// Takes from the device's own events when it had found out about each outage.
    pub(super) fn hear(&mut self, events: &[api::Event]) {
        for o in &mut self.outages {
            let during = |t: Time| t >= o.down && o.up.is_none_or(|up| t < up);
            let found = events.iter().find(|e| {
                // Its subflow ends some time before the daemon has tidied up.
                let out = match &e.what {
                    EventKind::SubflowClosed(_) => true,
                    EventKind::AccessState { state, .. } => {
                        !matches!(state, AccessState::Active | AccessState::Backup)
                    }
                    _ => false,
                };
                out && e.access.as_ref() == Some(&o.access) && during(Time::from_nanos(e.t_ns))
            });
            o.out = found.map(|e| Time::from_nanos(e.t_ns));
        }
    }

    fn address(&self, access: &str) -> u32 {
        self.addresses.get(access).copied().unwrap_or(1)
    }

    /// Tells the device's end that an access came or went.
    async fn tell(&self, ends: &mut Ends, access: &str, enabled: bool) -> Result<()> {
        match self.case.path_manager {
            PathManager::Kernel | PathManager::Braid => Ok(()),
            PathManager::Notified => ends.enable(access, enabled).await,
        }
    }

    async fn watch(&mut self, radio: &Radio) -> Result<()> {
        if self.watching().next().is_none() {
            return Ok(());
        }
        let stats = radio.stats().await?;
        let t = now();
        let mut found = Vec::new();
        for o in self
            .outages
            .iter_mut()
            .filter(|o| o.up.is_some() && o.reused.is_none())
        {
            if offered(&stats, &self.case, &o.access) >= o.seen + DATA {
                o.reused = Some(t);
                found.push(o.access.clone());
            }
        }
        for access in found {
            self.row(t, &access, "used again".to_owned());
        }
        Ok(())
    }

    fn row(&mut self, t: Time, access: &str, what: String) {
        self.rows.push(EventRow {
            case: self.case.name.clone(),
            repeat: self.repeat,
            t_s: t.since(self.start).as_secs_f64(),
            access: access.to_owned(),
            what,
        });
    }

    pub(super) fn rows(&self) -> Vec<EventRow> {
        self.rows.clone()
    }
}

/// Bytes handed to an access's link in the measured direction.
fn offered(stats: &braid_radio::emulator::api::Stats, case: &Case, access: &str) -> u64 {
    data_links(access, case.traffic.direction())
        .iter()
        .filter_map(|l| stats.links.get(l))
        .map(|l| l.model.in_bytes)
        .sum()
}
