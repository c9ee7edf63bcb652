//! Ways of flows that rules send directly: out by an access, past the bond.
//!
//! Each list of accesses that a rule names is a way, with a mark, a routing table and a rule by which
//! the mark leads there. The table has a default route by the first access of the list that works,
//! and the networks on its link; behind them stands a route that refuses, so that nothing falls
//! through to the routes of this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use braid_core::class::DEFAULT_NUMBER;
use braid_core::rules::{Outcome, Rule};
use ipnet::IpNet;

use super::routes::{self, FAMILIES, Hop, Marked, RouteError};
use super::steering::Steered;
use super::{DIRECT, MAX_WAYS};

/// Table of the first way.
const FIRST_TABLE: u32 = 76_999_900;
/// Priority of the rules.
const PRIORITY: u32 = 772;

/// Exit by one access, of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Index of its interface.
    pub by: u32,
    /// Next hop to everywhere; absent where the interface leads to the destination itself.
    pub gateway: Option<IpAddr>,
    /// The gateway is on the link, whatever the networks of the interface are.
    pub onlink: bool,
    /// Networks on the link.
    pub networks: Vec<IpNet>,
}

/// Exits of the accesses that work, by name: of IPv4, and of IPv6.
pub type Exits = BTreeMap<String, [Option<Exit>; 2]>;

/// Change of a way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turned {
    /// Accesses of the way, the preferred first.
    pub accesses: Vec<String>,
    /// Whether it is the way of IPv4, else of IPv6.
    pub v4: bool,
    /// Access by which it leads now; none works where it is absent.
    pub by: Option<String>,
}

/// Ways by which nothing leaves: the number of each, and whether IPv4 does not, else IPv6.
pub type Unled = BTreeSet<(u8, bool)>;

/// Way of flows.
#[derive(Clone, Debug)]
struct Way {
    accesses: Vec<String>,
    /// Routes in place, by family.
    now: [InPlace; 2],
}

/// Routes of a way.
#[derive(Clone, Debug, PartialEq, Eq)]
enum InPlace {
    /// Not known: a step has failed.
    Unknown,
    /// All is refused.
    Refused,
    /// Access by which it leads, and its exit.
    By(String, Exit),
}

impl InPlace {
    /// Returns the access by which it leads, and its interface.
    fn access(&self) -> Option<(&str, u32)> {
        match self {
            Self::By(name, exit) => Some((name, exit.by)),
            Self::Unknown | Self::Refused => None,
        }
    }
}

/// Ways that rules name, which stay until no rule does ([`Direct::keep`]), or until
/// [`remove_routes`](super::remove_routes).
#[derive(Debug, Default)]
pub struct Direct {
    /// By number: absent where no rule has it.
    ways: Vec<Option<Way>>,
}

fn marked(way: u8) -> Marked {
    Marked {
        mark: DIRECT + u32::from(way),
        table: FIRST_TABLE + u32::from(way),
        priority: PRIORITY,
    }
}

impl Direct {
    /// Makes the ways that `rules` name, beside those that there are; new ones refuse until
    /// [`Direct::lead`]. Their numbers stand in what is returned; a rule for which there is no number
    /// has none, and refuses. `class` tells the number of a class.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub async fn add(
        &mut self,
        rules: &[Rule],
        class: impl Fn(&str) -> u8,
    ) -> Result<Vec<Steered>, RouteError> {
        let mut all = Vec::new();
        for rule in rules {
            let (class, way) = match &rule.outcome {
                Outcome::Direct(accesses) => (DEFAULT_NUMBER, self.way(accesses).await?),
                Outcome::Class(name) => (class(name), None),
                Outcome::Block => (DEFAULT_NUMBER, None),
            };
            let rule = rule.clone();
            all.push(Steered { rule, class, way });
        }
        Ok(all)
    }

    /// Returns the number of a way, which is made if there is none.
    async fn way(&mut self, accesses: &[String]) -> Result<Option<u8>, RouteError> {
        let is_it = |w: &Option<Way>| w.as_ref().is_some_and(|w| w.accesses == accesses);
        let there = self.ways.iter().position(is_it);
        let place = match there.or_else(|| self.ways.iter().position(Option::is_none)) {
            Some(place) => place,
            None if self.ways.len() < MAX_WAYS.into() => {
                self.ways.push(None);
                self.ways.len() - 1
            }
            None => return Ok(None),
        };
        let number = u8::try_from(place).unwrap_or(MAX_WAYS);
        if there.is_none() {
            for v4 in FAMILIES {
                // What a killed daemon has left may lead anywhere.
                marked(number).refuse(v4).await?;
                marked(number).add_rule(v4).await?;
            }
            self.ways[place] = Some(Way {
                accesses: accesses.to_vec(),
                now: [InPlace::Refused, InPlace::Refused],
            });
        }
        Ok(Some(number))
    }

    /// Removes the ways that none of these rules has.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub async fn keep(&mut self, rules: &[Steered]) -> Result<(), RouteError> {
        for (place, way) in self.ways.iter_mut().enumerate() {
            let number = u8::try_from(place).ok();
            let is_named = rules.iter().any(|r| r.way.is_some() && r.way == number);
            if let (Some(_), Some(number), false) = (&way, number, is_named) {
                *way = None;
                remove(number).await?;
            }
        }
        Ok(())
    }

    /// Goes by these exits from now on. Returns what has changed, and why something could not be.
    pub async fn lead(&mut self, exits: &Exits) -> (Vec<Turned>, Result<(), RouteError>) {
        let (mut all, mut done) = (Vec::new(), Ok(()));
        for (number, way) in (0..).zip(&mut self.ways) {
            if let Some(way) = way {
                let turned = way.turn(number, exits, &mut all).await;
                done = done.and(turned);
            }
        }
        (all, done)
    }

    /// Lists the ways by which nothing leaves now.
    pub fn unled(&self) -> Unled {
        let ways = (0..).zip(&self.ways);
        let ways = ways.filter_map(|(number, way)| Some((number, way.as_ref()?)));
        let families = ways.flat_map(|(number, way)| {
            let families = FAMILIES.into_iter().zip(&way.now);
            families.map(move |(v4, now)| (number, v4, now.access().is_some()))
        });
        let lost = families.filter(|(.., leads)| !leads);
        lost.map(|(number, v4, _)| (number, v4)).collect()
    }

    /// Returns the accesses by which a list of accesses leads now: of IPv4, and of IPv6.
    pub fn by(&self, accesses: &[String]) -> [Option<&str>; 2] {
        let way = self.ways.iter().flatten().find(|w| w.accesses == accesses);
        [0, 1].map(|family| Some(way?.now[family].access()?.0))
    }
}

impl Way {
    /// Leads by the first of the accesses that works. Adds what has changed to `all`.
    async fn turn(
        &mut self,
        number: u8,
        exits: &Exits,
        all: &mut Vec<Turned>,
    ) -> Result<(), RouteError> {
        let mut done = Ok(());
        for (family, v4) in FAMILIES.into_iter().enumerate() {
            let exit = |name: &String| {
                let exit = exits.get(name)?[family].clone()?;
                Some(InPlace::By(name.clone(), exit))
            };
            let new = self.accesses.iter().find_map(exit);
            let new = new.unwrap_or(InPlace::Refused);
            if new == self.now[family] {
                continue;
            }
            let old = std::mem::replace(&mut self.now[family], InPlace::Unknown);
            if let Err(e) = replace(marked(number), v4, &old, &new).await {
                done = done.and(Err(e));
                continue;
            }
            if old.access() != new.access() {
                all.push(Turned {
                    accesses: self.accesses.clone(),
                    v4,
                    by: new.access().map(|(name, _)| name.to_owned()),
                });
            }
            self.now[family] = new;
        }
        done
    }
}

impl Exit {
    fn hop(&self) -> Hop {
        match self.gateway {
            Some(gateway) => Hop::Gateway {
                by: self.by,
                gateway,
                onlink: self.onlink,
            },
            None => Hop::Link(self.by),
        }
    }
}

/// Puts routes in place of others. Behind them stands the one that refuses, all the time.
async fn replace(marked: Marked, v4: bool, old: &InPlace, new: &InPlace) -> Result<(), RouteError> {
    match (old, new) {
        // What fails here leaves what leads elsewhere.
        (InPlace::Unknown, _) => marked.refuse(v4).await?,
        (InPlace::Refused, _) => {}
        (InPlace::By(_, old), _) => {
            for net in &old.networks {
                marked.unset(v4, Some(*net), Hop::Link(old.by)).await?;
            }
            if *new == InPlace::Refused {
                marked.unset(v4, None, old.hop()).await?;
            }
        }
    }
    if let InPlace::By(_, exit) = new {
        marked.set(v4, None, exit.hop()).await?;
        for net in &exit.networks {
            marked.set(v4, Some(*net), Hop::Link(exit.by)).await?;
        }
    }
    Ok(())
}

async fn remove(way: u8) -> Result<(), RouteError> {
    marked(way).remove_rules().await?;
    for v4 in FAMILIES {
        marked(way).clear(v4).await?;
    }
    Ok(())
}

/// Removes all ways that an earlier daemon has left.
///
/// # Errors
/// What the kernel refuses.
pub(super) async fn remove_all() -> Result<(), RouteError> {
    for way in 0..MAX_WAYS {
        marked(way).remove_rules().await?;
    }
    for v4 in FAMILIES {
        let last = marked(MAX_WAYS - 1).table;
        routes::clear(v4, FIRST_TABLE..=last, true).await?;
    }
    Ok(())
}
