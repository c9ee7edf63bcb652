//! Requests that change something: checked once for all engines, then made by each.

use std::sync::Arc;

use braid_api::{
    AccessChange, AccessStatus, EventKind, Limit, Priorities, Role, SchedulerChange,
    Weights as Given,
};
use braid_core::control::{Direction, PerDirection, Request};
use braid_core::{Time, weight};

use super::Daemon;
use crate::DaemonError;
use crate::accesses::order;
use crate::config::Access;
use crate::engine::{ByName, Can, Change, Engine, Result};
use crate::state::{lock, now};
use crate::takeover;

impl Daemon {
    /// Changes the use of an access.
    pub(crate) async fn change(&self, name: &str, change: AccessChange) -> Result<AccessStatus> {
        // Before its number is looked up, and until it is shown: the file may be read again.
        let _turn = self.turn.lock().await;
        let i = self.find(name)?;
        self.can_change(name, change)?;
        let before = lock(&self.wanted)[i].clone();
        let by = |change| {
            let change = self.with_rest(name, change);
            move |_: &dyn Engine| Change::Access(name.to_owned(), change)
        };
        self.all_or_none(by(change), by(before.undo(change)))
            .await?;
        let now = {
            let mut wanted = lock(&self.wanted);
            wanted[i].apply(change);
            wanted[i].clone()
        };
        self.save();
        self.observe_change(name, change).await?;
        if now != before {
            let what = EventKind::AccessChanged {
                enabled: now.enabled,
                backup: now.backup,
            };
            self.shared.log(Some(name.to_owned()), what);
        }
        Ok(self.status().await?.accesses.swap_remove(i))
    }

    /// Checks that an access can be changed so here.
    fn can_change(&self, name: &str, change: AccessChange) -> Result<()> {
        let of = |why: &str| format!("access \"{name}\": {why}");
        if let Some(expected) = change.expected {
            expected.check().map_err(|e| DaemonError::Config(of(&e)))?;
            let (down, up) = (self.expects(Direction::Down), self.expects(Direction::Up));
            let refused = match (expected.down, expected.up) {
                // What was expected is taken back.
                (None, None) => down.err().and(up.err()),
                (d, u) => d.and(down.err()).or(u.and(up.err())),
            };
            if let Some(why) = refused {
                return Err(DaemonError::Refused(of(why)));
            }
        }
        if let Some(limit) = change.limit {
            limit.check().map_err(|e| DaemonError::Config(of(&e)))?;
            // What another engine sends beside is not limited.
            let all = self.engines.iter().map(|e| e.capabilities().limit);
            if let Some(why) = all.reduce(|best, can| best.or(can)).and_then(Can::err) {
                return Err(DaemonError::Refused(of(why)));
            }
        }
        self.all_can(|c| c.change)
    }

    /// Returns the limits of the accesses, by their names.
    pub(crate) fn limits(&self) -> Vec<(String, Limit)> {
        let wanted = lock(&self.wanted);
        wanted.iter().map(|a| (a.name.clone(), a.limit)).collect()
    }

    /// Whether an engine makes use of the rates that accesses are expected to carry.
    fn expects(&self, direction: Direction) -> Can {
        let mut all = self.engines.iter();
        let can = |e: &Arc<dyn Engine>| *e.capabilities().expect.get(direction);
        let first = all.next().map_or(Ok(()), can);
        all.map(can).fold(first, |best, can| best.or(can.or(best)))
    }

    /// Tells the policy of a change, and sets what it decides.
    async fn observe_change(&self, name: &str, change: AccessChange) -> Result<()> {
        let mut decided = None;
        for request in requests(name, change) {
            let at = Time::from_nanos(now());
            decided = self.shared.control.request(request, at);
        }
        match decided {
            Some(decided) => self.set_decided(decided).await,
            None => Ok(()),
        }
    }

    /// Saves what requests changed, so that it outlives this process if that is killed.
    pub(super) fn save(&self) {
        let configured = crate::accesses::Wanted::configured(&lock(&self.config).accesses);
        self.saved.keep(&configured, &lock(&self.wanted));
    }

    /// Changes the order of the accesses; returns that of all.
    pub(crate) async fn set_priorities(&self, change: &Priorities) -> Result<Priorities> {
        let _turn = self.turn.lock().await;
        for name in change.0.keys() {
            self.find(name)?;
        }
        self.all_can(|c| c.order)?;
        let before = order(&lock(&self.wanted));
        let by = |order: &Priorities| {
            let order = order.clone();
            move |_: &dyn Engine| Change::Order(order.clone())
        };
        self.all_or_none(by(change), by(&before)).await?;
        for a in lock(&self.wanted).iter_mut() {
            if let Some(place) = change.0.get(&a.name) {
                a.priority = *place;
            }
        }
        self.save();
        Ok(order(&lock(&self.wanted)))
    }

    /// Changes how packets are scheduled; returns how they are now.
    pub(crate) async fn set_scheduler(&self, change: &SchedulerChange) -> Result<SchedulerChange> {
        let _turn = self.turn.lock().await;
        self.shared.control.allows(change)?;
        self.all_can(|c| c.schedule)?;
        let before: Vec<_> = self.engines.iter().map(|e| e.scheduler()).collect();
        let back = |e: &dyn Engine| {
            let mut all = self.engines.iter().zip(&before);
            let mine = all.find(|(of, _)| of.kind() == e.kind());
            Change::Scheduler(mine.map(|(_, s)| s.clone()).unwrap_or_default())
        };
        self.all_or_none(|_| Change::Scheduler(change.clone()), back)
            .await?;
        Ok(self.engines[0].scheduler())
    }

    /// Changes some weights, all of them at once or none; returns those in force.
    pub(crate) async fn set_weights(&self, change: &Given) -> Result<Given> {
        // Before anything is read: another request may be under way.
        let _turn = self.turn.lock().await;
        self.check_weights(change)?;
        self.all_can(|c| c.schedule)?;
        self.can_leave_out(change)?;
        let mut new = self.sweep()?;
        new.all.extend(change.0.clone());
        let accesses = lock(&self.config).accesses.clone();
        new.check(&accesses).map_err(DaemonError::Config)?;
        // Under `static` the request itself is the decision.
        if !self.shared.control.decides() {
            self.set(new).await?;
        }
        let request = Request::Weights(change.0.clone());
        let at = Time::from_nanos(now());
        if let Some(decided) = self.shared.control.request(request, at) {
            self.set_decided(decided).await?;
        }
        Ok(Given(self.weights_in_force()))
    }

    /// Changes some weights of downlinks at the proxy; returns those in force.
    pub(crate) async fn set_down_weights(&self, change: &Given) -> Result<Given> {
        let refused = |why: &str| DaemonError::Refused(format!("weights of downlinks: {why}"));
        if self.shared.role == Role::Proxy {
            return Err(refused(
                "this is the proxy, whose weights are those of downlinks: set them without --down",
            ));
        }
        self.check_weights(change)?;
        if !self.registers_somewhere() {
            return Err(refused(
                "the accesses are registered at no proxy: it takes `proxy`, and enabled = true in \
                 [registration] and [probe]",
            ));
        }
        let set = self.registers().set_weights(self, &change.0).await;
        set.map(Given).map_err(|why| refused(&why))
    }

    /// Whether this device registers its accesses at a proxy, once it reaches it.
    pub(super) fn registers_somewhere(&self) -> bool {
        let config = lock(&self.config);
        let by_tcp = |e: &Arc<dyn Engine>| e.capabilities().checks && config.probe.enabled;
        let by = |e: &Arc<dyn Engine>| e.capabilities().registers || by_tcp(e);
        let has_proxy = !config.hosts.is_empty() || !config.proxy.is_empty();
        let can = self.shared.role == Role::Device && config.registration.enabled;
        can && has_proxy && self.engines.iter().any(by)
    }

    /// Checks that these are weights of accesses.
    fn check_weights(&self, change: &Given) -> Result<()> {
        for (name, &weight) in &change.0 {
            self.find(name)?;
            weight::check(name, weight).map_err(DaemonError::Config)?;
        }
        Ok(())
    }

    /// Checks that accesses of the weight 0 can be left out here.
    fn can_leave_out(&self, change: &Given) -> Result<()> {
        let Some(name) = takeover::pins::without(&change.0).first().copied() else {
            return Ok(());
        };
        self.all_can(|c| c.leave_out)
            .map_err(|why| DaemonError::Refused(format!("access \"{name}\": {why}")))
    }

    /// Changes the weights of the connection of this token; `None` gives it back to those of
    /// all. Returns the weights that it has then.
    pub(crate) async fn set_connection_weights(
        &self,
        token: &str,
        change: Option<&Given>,
    ) -> Result<Given> {
        let _turn = self.turn.lock().await;
        let (token, engine) = self.connection(token)?;
        let mut new = self.sweep()?;
        match change {
            Some(change) => {
                self.check_weights(change)?;
                engine.check_connection(token, &change.0, &new.of(engine.kind()))?;
                let own = new.connections.entry(token);
                let (_, own) = own.or_insert_with(|| (engine.kind(), ByName::new()));
                own.extend(change.0.clone());
            }
            None => drop(new.connections.remove(&token)),
        }
        let accesses: Vec<Access> = lock(&self.config).accesses.clone();
        new.check(&accesses).map_err(DaemonError::Config)?;
        let own = new.connections.get(&token).map(|(_, own)| own.clone());
        if *lock(&self.weights) != new {
            self.set(new).await?;
        }
        let mut all = self.weights_in_force();
        all.extend(own.unwrap_or_default());
        Ok(Given(all))
    }

    /// Finds a connection that lives, and its engine.
    fn connection(&self, token: &str) -> Result<(u32, &dyn Engine)> {
        if let Ok(number) = token.parse() {
            for e in &self.engines {
                if e.tokens()?.contains(&number) {
                    return Ok((number, &**e));
                }
            }
        }
        let what: Vec<_> = self.engines.iter().map(|e| e.connection_word()).collect();
        Err(DaemonError::Unknown(format!(
            "there is no {} with the token {token}: braid status --connections tells those there \
             are",
            what.join(" or ")
        )))
    }
}

/// Returns a change of an access in the words of the loop.
fn requests(access: &str, change: AccessChange) -> Vec<Request> {
    let access = || access.to_owned();
    let backup = change.backup.map(|backup| Request::Backup {
        access: access(),
        backup,
    });
    let enabled = change.enabled.map(|enabled| Request::Enabled {
        access: access(),
        enabled,
    });
    let expected = change.expected.map(|e| Request::Expected {
        access: access(),
        expected: PerDirection {
            down: e.down,
            up: e.up,
        },
    });
    [backup, enabled, expected].into_iter().flatten().collect()
}
