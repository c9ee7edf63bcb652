//! Setup of an end in its namespace: made, changed on request, and taken away again.

mod congestion;
mod coupling;
mod schedule;

use std::collections::BTreeMap;
use std::net::IpAddr;

use braid_api::{Engine as Kind, PathLimits, Role};
use braid_mptcp::buffers;
use braid_mptcp::pm::{Limits, PathManager};
use braid_mptcp::support::{self, Support};
use braid_mptcp::weights::{self, Rule};

use super::DaemonError;
use super::announce::Announced;
use super::before::Before;
use super::config::{Buffers, Config};
use super::keep::{self, DEFAULT, Kept, Left, Note};
use super::stock::{self, Pins, Wrr};
use coupling::Congestion;

/// The engine of one end. What it set up goes when it is dropped.
pub(super) struct Engine {
    role: Role,
    pm: Option<PathManager>,
    announced: Announced,
    before: Before,
    /// Keeps the queues of subflows short.
    queues: Option<stock::ShortQueues>,
    /// Weighted round robin, where the kernel has none of its own.
    wrr: Option<Wrr>,
    /// Its sysctl has the congestion control that it took the place of.
    rr: bool,
    /// The weights that the kernel was given, where it has some of its own.
    table: Option<String>,
    /// The congestion control that was asked for, and what it is.
    cc: Option<(String, Congestion)>,
    /// One of a killed end's, until it is known whether it is what is asked for.
    left: Option<Pins>,
    /// Whether the weights and the congestion control outlive this process if that is killed.
    pin: bool,
    /// Saved state for the next process.
    kept: Kept,
    /// Whether that state is what another process had left.
    goes_on: bool,
    /// Notes on what could not be done, and is not needed.
    notes: Vec<String>,
}

impl Engine {
    /// Sets up what `config` asks for in the calling thread's namespace.
    pub(super) fn set_up(config: &Config, role: Role, before: Before) -> Result<Self, DaemonError> {
        let mut engine = Self {
            role,
            pm: None,
            announced: Announced::default(),
            before,
            queues: None,
            wrr: None,
            rr: false,
            table: None,
            cc: None,
            left: None,
            pin: config.pin,
            kept: Kept::default(),
            goes_on: false,
            notes: Vec::new(),
        };
        if config.engine == Kind::Mptcp {
            engine.switch_on()?;
            engine.announce(&config.announce)?;
            engine.widen(&config.buffers)?;
            engine.shorten(&config.buffers);
            engine.go_on(config.cc.is_some())?;
        }
        Ok(engine)
    }

    /// Goes on with the weights of an end that was killed, and with its congestion control if
    /// there is to be one.
    fn go_on(&mut self, congests: bool) -> Result<(), DaemonError> {
        keep::sweep();
        let left = Pins::left(keep::coupled_owner(self.role)).ok().flatten();
        let was_left = left.is_some();
        self.left = left.filter(|_| congests && self.pin);
        let unpinned = was_left && self.left.is_none();
        match keep::left(self.role, self.pin) {
            Left::Whole(left) => {
                let (wrr, note) = *left;
                self.before.remember(DEFAULT, note.before);
                support::set_sysctl(DEFAULT, wrr.name())?;
                self.rr = note.rr;
                self.wrr = Some(wrr);
                self.kept = note.kept;
                self.goes_on = true;
                Ok(())
            }
            Left::Refused(why, known) => {
                self.note_unused(&why);
                let known = known.as_ref().map(|n| n.before.as_str());
                keep::restore(known.or(self.before.of(DEFAULT)), true)
            }
            Left::Nothing => keep::restore(self.before.of(DEFAULT), unpinned),
        }
    }

    /// Returns, once, the saved state that a killed end had in force.
    pub(super) fn gone_on(&mut self) -> Option<Kept> {
        std::mem::take(&mut self.goes_on).then(|| self.kept.clone())
    }

    /// Once, however often it is met.
    fn note(&mut self, what: String) {
        if !self.notes.contains(&what) {
            eprintln!("braid: {what}");
            self.notes.push(what);
        }
    }

    /// Notes that the state of a killed end is not used, and why.
    fn note_unused(&mut self, why: &str) {
        self.note(format!(
            "what a killed daemon left is not used, connections keep what they have: {why}"
        ));
    }

    /// Returns the notes on what could not be done, and is not needed.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Leaves what is in force for the one that comes after this was killed.
    pub(super) fn remember(&mut self, kept: Kept) -> Result<(), DaemonError> {
        self.kept = kept;
        let note = self.written();
        if let Some(wrr) = self.wrr.as_mut().filter(|w| w.is_pinned()) {
            let note = note.ok_or_else(|| {
                DaemonError::Refused(
                    "there are too many weights, or too long names, to be kept: set fewer, or \
                     [scheduler] pin = false"
                        .into(),
                )
            })?;
            wrr.set_note(&note)?;
        }
        Ok(())
    }

    fn written(&self) -> Option<Vec<u8>> {
        let note = Note {
            before: self.default_before(),
            rr: self.rr,
            kept: self.kept.clone(),
        };
        note.write()
    }

    fn switch_on(&mut self) -> Result<(), DaemonError> {
        let support = Support::detect();
        if !support.enabled {
            // Not built in: said by the kernel's lack of the sysctl.
            if !support.compiled {
                support.require()?;
            }
            self.set_sysctl("net.mptcp.enabled", "1")?;
        }
        // "path_manager" came with Linux 6.15 and replaces "pm_type".
        match support::sysctl("net.mptcp.path_manager").as_deref() {
            Some("kernel") => {}
            Some(_) => self.set_sysctl("net.mptcp.path_manager", "kernel")?,
            None if support::sysctl("net.mptcp.pm_type").is_some_and(|t| t != "0") => {
                self.set_sysctl("net.mptcp.pm_type", "0")?;
            }
            None => {}
        }
        let mut pm = PathManager::open()?;
        self.before.remember_limits(pm.limits()?);
        pm.set_limits(Limits::MAX)?;
        self.pm = Some(pm);
        Ok(())
    }

    /// Announces these addresses of the proxy to devices.
    pub(super) fn announce(&mut self, addresses: &[IpAddr]) -> Result<(), DaemonError> {
        match &mut self.pm {
            Some(pm) if self.role == Role::Proxy => self.announced.set(pm, addresses),
            _ => Ok(()),
        }
    }

    /// Takes back what connections were on before.
    pub(super) fn withdraw(&mut self) -> Result<(), DaemonError> {
        match &mut self.pm {
            Some(pm) => self.announced.withdraw(pm),
            None => Ok(()),
        }
    }

    /// Sockets that begin afterwards have at least the buffers that are configured, or what
    /// the namespace had.
    pub(super) fn widen(&mut self, wanted: &Buffers) -> Result<(), DaemonError> {
        if self.pm.is_none() {
            return Ok(());
        }
        for (name, least) in [
            (buffers::RECEIVE, wanted.tcp_rmem),
            (buffers::SEND, wanted.tcp_wmem),
        ] {
            let now = support::sysctl(name).unwrap_or_default();
            let before = self.before.of(name).unwrap_or(&now).to_owned();
            let raised = buffers::raised(&before, least).filter(|_| wanted.manage);
            let value = raised.unwrap_or(before);
            if value != now {
                self.set_sysctl(name, &value)?;
            }
        }
        Ok(())
    }

    /// Makes sockets that begin afterwards keep little waiting on each subflow, if configured
    /// and if the machine can.
    pub(super) fn shorten(&mut self, wanted: &Buffers) {
        if !wanted.short_queues || self.pm.is_none() {
            self.queues = None;
        } else if self.queues.is_none() {
            match stock::bound_queues() {
                Ok(queues) => self.queues = Some(queues),
                // As in a user namespace; `braid doctor` says what that costs.
                Err(e) if e.is_lacking() => {}
                Err(e) => self.note(format!("the queues of subflows are not kept short: {e}")),
            }
        }
    }

    fn set_sysctl(&mut self, name: &'static str, value: &str) -> Result<(), DaemonError> {
        // First: this process may be killed at any moment.
        let now = match support::sysctl(name) {
            // A killed end's that this one goes on with is nothing to go back to.
            Some(now) if name == DEFAULT && now == value => self.default_before(),
            now => now.unwrap_or_default(),
        };
        self.before.remember(name, now);
        Ok(support::set_sysctl(name, value)?)
    }

    /// Whether weights are pacing rates, by which no access can be left out.
    pub(super) fn stands_in(&self) -> bool {
        self.wrr.is_some()
    }

    /// The congestion control by which they are.
    pub(super) fn stand_in_name(&self) -> Option<&str> {
        self.wrr.as_ref().map(Wrr::name)
    }

    /// Whether there are several paths.
    pub(super) fn is_mptcp(&self) -> bool {
        self.pm.is_some()
    }

    /// Sets the weights of all connections, and those of single ones, by token.
    pub(super) fn weigh(
        &mut self,
        all: &[Rule],
        own: &BTreeMap<u32, Vec<Rule>>,
    ) -> Result<(), DaemonError> {
        if self.pm.is_none() {
            return Err(one_path());
        }
        if self.wrr.is_none() && !weights::known_to_kernel() {
            self.stand_in("wrr")?;
        }
        match &mut self.wrr {
            Some(wrr) => wrr.set_weights(all, own)?,
            None => {
                let table = weights::table(all);
                // The kernel's turns begin anew with each.
                if self.table.as_ref() != Some(&table) {
                    self.set_sysctl(weights::SYSCTL, &table)?;
                    self.table = Some(table);
                }
            }
        }
        Ok(())
    }

    /// The path manager's limits; `None` without MPTCP.
    pub(super) fn limits(&mut self) -> Option<PathLimits> {
        let limits = self.pm.as_mut()?.limits().ok()?;
        Some(PathLimits {
            subflows: limits.subflows,
            add_addr_accepted: limits.add_addr_accepted,
        })
    }
}

pub(super) fn one_path() -> DaemonError {
    DaemonError::Refused("the engine \"tcp\" has one path: there is nothing to schedule".into())
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Best effort: the namespace may already be going.
        let _ = self.announce(&[]);
        self.before.restore(self.pm.as_mut());
        let gone = [
            self.wrr.take().is_some(),
            self.cc.take().is_some(),
            self.left.take().is_some(),
        ];
        // What was there before may not be known, or not be had.
        if gone.contains(&true) {
            self.give_default_back();
        }
    }
}
