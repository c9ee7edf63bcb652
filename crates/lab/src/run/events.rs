//! Events of a case: link changes at their exact time, interfaces up and
//! down, and how long an access takes until it is used again.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use braid_api::{self as api, EventKind};
use braid_core::Time;

use super::DEVICE;
use super::daemons::Ends;
use super::radio::Radio;
use super::sampler::data_links;
use crate::engine::expected;
use crate::scenario::{Action, Case, Event, PathManager};
use crate::summary::EventRow;
use braid_netns::Topology;
use braid_radio::emulator::api::Stats;
use braid_traffic::clock::now;

/// Data on a link after link-up means this much: more than acknowledgements
/// and keep-alives, no more than one full packet.
const DATA: u64 = 1000;

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
}

impl Outage {
    /// When the last subflow on the access had ended of those that ended before the daemon
    /// said that the access is out, which it says when it has tidied up. Where none ended:
    /// when it said so.
    fn taken_out(&self, events: &[api::Event]) -> Option<Time> {
        let during = |t: Time| t >= self.down && self.up.is_none_or(|up| t < up);
        let mine = events.iter().filter_map(|e| {
            let t = Time::from_nanos(e.t_ns);
            (e.access.as_ref() == Some(&self.access) && during(t)).then_some((t, &e.what))
        });
        let mut ended = None;
        for (t, what) in mine {
            match what {
                EventKind::SubflowClosed(_) => ended = Some(t),
                EventKind::AccessState { state, .. } if !state.is_used() => {
                    return ended.or(Some(t));
                }
                _ => {}
            }
        }
        None
    }
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
            let (down, up) = event.action.link_changes();
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
        event.min(look)
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
        Ok(())
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
        // Before it is carried out: what comes of it may be seen before that has returned.
        let mut t = now();
        match event.action {
            Action::Down => {
                topology.link_down(DEVICE, &event.access)?;
                self.tell(ends, &event.access, false).await?;
            }
            Action::Up => {
                self.expect(&event.access, event.at, ends).await?;
                // The emulator keeps the time: what the daemons do upon link-up holds up the lab.
                for link in data_links(&event.access, self.case.traffic.direction()) {
                    radio.mark(&link, DATA).await?;
                }
                t = now();
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
                });
            }
            (Action::Up, Some(i)) => {
                self.outages[i].up = Some(t);
            }
            _ => {}
        }
        self.row(t, &event.access, event.label.clone());
        Ok(())
    }

    /// Takes from the device's own events when it had taken an access out in each outage.
    pub(super) fn hear(&mut self, events: &[api::Event]) {
        for o in &mut self.outages {
            o.out = o.taken_out(events);
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

    /// Takes from the emulator's counters when accesses that came back were used again.
    pub(super) fn watch(&mut self, stats: &Stats) {
        for access in &self.case.accesses {
            // The mark is that of the last one.
            let of = |o: &&mut Outage| o.access == access.name;
            let Some(o) = self.outages.iter_mut().rev().find(of) else {
                continue;
            };
            let at = reused(stats, &self.case, &o.access);
            if let (Some(up), None, Some(at)) = (o.up, o.reused, at) {
                let t = (self.start + at).max(up);
                o.reused = Some(t);
                let row = self.event(t, &access.name, "used again".to_owned());
                self.rows.push(row);
            }
        }
    }

    fn row(&mut self, t: Time, access: &str, what: String) {
        self.rows.push(self.event(t, access, what));
    }

    fn event(&self, t: Time, access: &str, what: String) -> EventRow {
        EventRow {
            case: self.case.name.clone(),
            repeat: self.repeat,
            t_s: t.since(self.start).as_secs_f64(),
            access: access.to_owned(),
            what,
        }
    }

    pub(super) fn rows(&self) -> Vec<EventRow> {
        self.rows.clone()
    }
}

/// Scenario time at which the first of an access's links in the measured direction had data
/// since its mark.
fn reused(stats: &Stats, case: &Case, access: &str) -> Option<Duration> {
    let links = data_links(access, case.traffic.direction());
    let marked = links
        .iter()
        .filter_map(|l| stats.links.get(l)?.model.marked_ns);
    marked.min().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_api::AccessState;

    #[test]
    fn an_access_is_out_when_its_subflows_have_ended_and_the_daemon_says_so() {
        let at = |ms: u64| Time::from(Duration::from_millis(ms));
        let event = |ms: u64, access: &str, what: EventKind| api::Event {
            seq: ms,
            t_ns: at(ms).as_nanos(),
            unix_ms: 0,
            access: Some(access.into()),
            what,
        };
        let closed = |ms, access| {
            let subflow = api::SubflowEvent {
                token: 1,
                local_id: 1,
                remote_id: 0,
                local: None,
                remote: None,
                backup: false,
                error: None,
            };
            event(ms, access, EventKind::SubflowClosed(subflow))
        };
        let state = |ms, state| {
            let why = String::new();
            event(ms, "wifi", EventKind::AccessState { state, why })
        };
        let outage = Outage::for_test("wifi", at(1000), at(2000), None);
        let out = |events: &[api::Event]| outage.taken_out(events);
        let others = [closed(900, "wifi"), closed(1050, "nr")];
        assert_eq!(out(&others), None);
        // It ended by itself: the daemon took nothing out.
        assert_eq!(out(&[closed(1100, "wifi")]), None);
        assert_eq!(out(&[state(1120, AccessState::Silent)]), Some(at(1120)));
        let all = [
            closed(900, "wifi"),
            closed(1100, "wifi"),
            closed(1104, "wifi"),
            closed(1106, "nr"),
            state(1120, AccessState::Silent),
            closed(1500, "wifi"),
            state(2100, AccessState::Silent),
        ];
        assert_eq!(out(&all), Some(at(1104)));
        assert_eq!(out(&all[5..]), None);
        assert_eq!(out(&[state(1010, AccessState::Active)]), None);
    }
}
