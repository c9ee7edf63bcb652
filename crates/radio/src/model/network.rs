//! The links and media of a run.

use std::fmt;

use braid_core::Time;
use serde::{Deserialize, Serialize};

use super::backhaul::Backhaul;
use super::link::{Beside, Link, codel};
use super::medium::{Medium, MediumStats};
use super::shared::{Station, View};
use super::spec::{LinkChange, LinkSpec, RateSpec};
use super::stats::LinkStats;
use super::train::{DropCause, Sink, Span, Train};

mod succession;

/// Handle of a link of a [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LinkId(pub u32);

/// A link that a station of a medium serves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StationLink {
    /// The link.
    pub link: LinkId,
    /// Physical-layer data rate towards its receiver, Mbit/s; `None`: the
    /// medium's default.
    pub phy_mbps: Option<f64>,
}

/// A set of links, each served by itself or by a medium, in virtual time.
///
/// Time is what the caller says, and never goes back (an earlier time counts
/// as the latest one). What comes out depends on the arrivals and changes with
/// their times alone, not on how often or how late [`Network::advance`] is
/// called: a late call catches up, and says when everything was due.
pub struct Network {
    seed: u64,
    now: Time,
    links: Vec<Link>,
    names: Vec<String>,
    /// Next event of each link; [`Time::MAX`]: none.
    events: Vec<Time>,
    /// The medium and station of each link that has one.
    places: Vec<Option<(usize, usize)>>,
    media: Vec<Shared>,
    /// The backhaul of each link that has one.
    behind: Vec<Option<usize>>,
    backhauls: Vec<Backhaul>,
}

struct Shared {
    name: String,
    medium: Box<dyn Medium>,
    stations: Vec<Station>,
    /// [`Time::MAX`]: idle.
    event: Time,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("now", &self.now)
            .field("links", &self.names)
            .finish_non_exhaustive()
    }
}

impl Network {
    /// An empty network; every link draws from its own stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            now: Time::ZERO,
            links: Vec::new(),
            names: Vec::new(),
            events: Vec::new(),
            places: Vec::new(),
            media: Vec::new(),
            behind: Vec::new(),
            backhauls: Vec::new(),
        }
    }

    /// Adds a link. Its random draws follow from the seed and `name` alone.
    pub fn add_link(&mut self, name: &str, spec: &LinkSpec) -> LinkId {
        let id = LinkId(u32::try_from(self.links.len()).unwrap_or(u32::MAX));
        self.links.push(Link::new(self.seed, name, spec));
        self.names.push(name.to_owned());
        self.events.push(Time::MAX);
        self.places.push(None);
        self.behind.push(None);
        id
    }

    /// Adds `medium`, which serves the links of `stations` in place of their own rate;
    /// their queue, loss, delay and outages stay theirs. Each inner list is one
    /// station, which gives its links one frame each in turn. A link belongs
    /// to one station; to be called before traffic starts.
    pub fn add_medium(
        &mut self,
        name: &str,
        medium: Box<dyn Medium>,
        stations: Vec<Vec<StationLink>>,
    ) {
        let m = self.media.len();
        for (s, links) in stations.iter().enumerate() {
            for at in links {
                let i = at.link.0 as usize;
                if let (Some(link), Some(place)) = (self.links.get_mut(i), self.places.get_mut(i)) {
                    link.shared = true;
                    *place = Some((m, s));
                }
            }
        }
        self.media.push(Shared {
            name: name.to_owned(),
            medium,
            stations: stations.into_iter().map(Station::new).collect(),
            event: Time::MAX,
        });
    }

    /// Sends `links` through one line of `rate`, in place of their own: their
    /// packets leave it in order of arrival, each link's limit is held against
    /// what waits in all of them, and if the first link has CoDel, one CoDel
    /// manages them all. Their own rate only says what a limit in time means;
    /// delay, loss and outages stay theirs. A link belongs to one backhaul or
    /// medium; to be called before traffic starts.
    pub fn add_backhaul(&mut self, rate: &RateSpec, links: &[LinkId]) {
        let b = self.backhauls.len();
        let indices: Vec<usize> = links.iter().map(|l| l.0 as usize).collect();
        let known = |i: &usize| *i < self.links.len();
        let indices: Vec<usize> = indices.into_iter().filter(known).collect();
        for &i in &indices {
            self.links[i].shared = true;
            self.behind[i] = Some(b);
        }
        let codel = indices.first().and_then(|&i| codel(self.links[i].limit));
        self.backhauls.push(Backhaul::new(rate, codel, indices));
    }

    /// The link called `name`.
    pub fn link(&self, name: &str) -> Option<LinkId> {
        let i = self.names.iter().position(|n| n == name)?;
        u32::try_from(i).ok().map(LinkId)
    }

    /// The name of `link`.
    pub fn name(&self, link: LinkId) -> Option<&str> {
        self.names.get(link.0 as usize).map(String::as_str)
    }

    /// `train` arrives at `link` at `now`. Nothing is delivered before the
    /// next [`Network::advance`], which may be for the same time.
    pub fn enqueue(&mut self, link: LinkId, now: Time, train: Train, sink: &mut dyn Sink) {
        let now = self.clock(now);
        let i = link.0 as usize;
        let Some(place) = self.places.get(i).copied() else {
            let all = Span {
                id: train.id,
                first: 0,
                end: train.packets,
            };
            sink.discard(all, DropCause::LinkDown);
            return;
        };
        if let Some((m, _)) = place {
            self.run_medium(m, now, sink);
        }
        let mut beside = Beside::default();
        if let Some(backhaul) = self.behind[i].and_then(|b| self.backhauls.get_mut(b)) {
            backhaul.commit(now, &mut self.links, sink);
            beside = backhaul.beside(i, train.packet_bytes(0).into(), now, &self.links);
        }
        self.links[i].enqueue(now, train, beside, sink);
        if let Some(b) = self.behind[i] {
            self.run_backhaul(b, now, sink);
        }
        self.update(i);
        if let Some((m, s)) = place {
            self.media[m].stations[s].settle(&self.links);
            self.plan_medium(m, sink);
        }
    }

    /// Delivers everything due by `now`, in order of due time across links
    /// (then of link).
    pub fn advance(&mut self, now: Time, sink: &mut dyn Sink) {
        let now = self.clock(now);
        loop {
            let (link, at) = first(self.events.iter().copied());
            let (medium, medium_at) = first(self.media.iter().map(|m| m.event));
            let (backhaul, backhaul_at) = first(self.backhauls.iter().map(|b| b.event));
            let next = at.min(medium_at).min(backhaul_at);
            if next > now || next == Time::MAX {
                return;
            }
            if backhaul_at == next {
                self.run_backhaul(backhaul, next, sink);
            } else if medium_at == next {
                self.step_medium(medium, sink);
            } else {
                self.links[link].advance(at, sink);
                self.update(link);
                if let Some(b) = self.behind[link] {
                    self.backhauls[b].plan(&self.links);
                }
            }
        }
    }

    /// When [`Network::advance`] has something to do next, if nothing arrives
    /// before. Past where advance is late.
    pub fn next_event(&self) -> Option<Time> {
        let events = self.events.iter().copied();
        let media = self.media.iter().map(|m| m.event);
        let backhauls = self.backhauls.iter().map(|b| b.event);
        let next = events.chain(media).chain(backhauls).min()?;
        (next < Time::MAX).then_some(next)
    }

    /// Applies `change` to `link` at `now`, after delivering everything due
    /// by then.
    pub fn apply(&mut self, link: LinkId, now: Time, change: &LinkChange, sink: &mut dyn Sink) {
        let now = self.clock(now);
        self.advance(now, sink);
        let i = link.0 as usize;
        let Some(place) = self.places.get(i).copied() else {
            return;
        };
        if let Some(b) = self.behind[i] {
            self.run_backhaul(b, now, sink);
        }
        let had_taken = self.links[i].has_taken();
        self.links[i].apply(now, change, sink);
        self.update(i);
        if let Some(b) = self.behind[i] {
            self.run_backhaul(b, now, sink);
        }
        if let Some((m, s)) = place {
            if had_taken && !self.links[i].has_taken() {
                let links = &self.media[m].stations[s].links;
                if let Some(receiver) = links.iter().position(|at| at.link == link) {
                    self.media[m].medium.forget(s, receiver as u32);
                }
            }
            self.media[m].stations[s].settle(&self.links);
            self.plan_medium(m, sink);
        }
    }

    /// Counters of `link` (all zero where there is no such link), as of the
    /// latest call with a time.
    pub fn stats(&self, link: LinkId) -> LinkStats {
        self.links
            .get(link.0 as usize)
            .map(Link::stats)
            .unwrap_or_default()
    }

    /// Notes when `bytes` more have been handed to `link`: [`LinkStats::marked_ns`]. A mark takes
    /// the place of the one before.
    pub fn mark(&mut self, link: LinkId, bytes: u64) {
        if let Some(link) = self.links.get_mut(link.0 as usize) {
            link.mark(bytes);
        }
    }

    /// Name and counters of every medium.
    pub fn medium_stats(&self) -> Vec<(String, MediumStats)> {
        self.media
            .iter()
            .map(|m| (m.name.clone(), m.medium.stats()))
            .collect()
    }

    /// Bits that the rate of `link` allows from `from` until before `to`, all
    /// changes so far included, outages as zero; infinite where the rate is
    /// unlimited. Includes the link-layer overhead of packets if the link has
    /// one. For a link on a medium this is its own rate, which the medium does
    /// not heed.
    pub fn capacity_bits(&self, link: LinkId, from: Time, to: Time) -> f64 {
        self.links
            .get(link.0 as usize)
            .map_or(0.0, |l| l.capacity_bits(from, to))
    }

    fn clock(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }

    fn update(&mut self, link: usize) {
        self.events[link] = self.links[link].next_event().unwrap_or(Time::MAX);
    }

    /// Serves from backhaul `b` what is due by `now`.
    fn run_backhaul(&mut self, b: usize, now: Time, sink: &mut dyn Sink) {
        self.backhauls[b].commit(now, &mut self.links, sink);
        for k in 0..self.backhauls[b].links().len() {
            self.update(self.backhauls[b].links()[k]);
        }
        self.backhauls[b].plan(&self.links);
    }

    /// Brings medium `m` up to `now`, event by event.
    fn run_medium(&mut self, m: usize, now: Time, sink: &mut dyn Sink) {
        while self.media[m].event <= now && self.media[m].event < Time::MAX {
            self.step_medium(m, sink);
        }
    }

    /// Advances medium `m` by its next event.
    fn step_medium(&mut self, m: usize, sink: &mut dyn Sink) {
        let shared = &mut self.media[m];
        let at = shared.event;
        let mut view = View {
            links: &mut self.links,
            stations: &mut shared.stations,
            sink,
        };
        shared.medium.advance(at, &mut view);
        let next = shared.medium.next_event(&view).unwrap_or(Time::MAX);
        // A medium that would do the same again for ever must not stop us.
        shared.event = next.max(Time::from_nanos(at.as_nanos().saturating_add(1)));
        for s in 0..self.media[m].stations.len() {
            for l in 0..self.media[m].stations[s].links.len() {
                self.update(self.media[m].stations[s].links[l].link.0 as usize);
            }
        }
    }

    /// Asks medium `m` anew for its next event.
    fn plan_medium(&mut self, m: usize, sink: &mut dyn Sink) {
        let shared = &mut self.media[m];
        let view = View {
            links: &mut self.links,
            stations: &mut shared.stations,
            sink,
        };
        shared.event = shared.medium.next_event(&view).unwrap_or(Time::MAX);
    }
}

/// Index and value of the first smallest of `times`.
fn first(times: impl Iterator<Item = Time>) -> (usize, Time) {
    times.enumerate().fold(
        (0, Time::MAX),
        |best, (i, t)| if t < best.1 { (i, t) } else { best },
    )
}
