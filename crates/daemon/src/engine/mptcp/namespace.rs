//! Setup of an end in its namespace: made, changed on request, and taken away again.

mod congestion;
mod congestion_control;
mod programs;
mod schedule;

use std::collections::BTreeMap;
use std::net::IpAddr;

use braid_api::{PathLimits, Role};
use braid_mptcp::buffers;
use braid_mptcp::pm::{Limits, PathManager};
use braid_mptcp::support::{self, Support};
use braid_mptcp::weights::{self, Rule};

use super::announce::Announced;
use crate::DaemonError;
use crate::config::{Buffers, Config};
use crate::ebpf::{self, Pins, Wrr};
use crate::engine::Result;
use crate::takeover::pins::{self, DEFAULT, Kept, Left, Note};
use crate::takeover::sysctls::Before;
pub(crate) use congestion::Wanted;
use congestion_control::Congestion;

/// Network namespace of one end, as Multipath TCP is set up in it. It is as before when this is
/// dropped.
pub(crate) struct Namespace {
    role: Role,
    /// Path manager; absent until MPTCP is switched on.
    pm: Option<PathManager>,
    announced: Announced,
    before: Before,
    /// Keeps the queues of subflows short.
    queues: Option<ebpf::ShortQueues>,
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

impl Namespace {
    /// Sets up what `config` asks for in the calling thread's namespace.
    pub(crate) fn set_up(config: &Config, role: Role, before: Before) -> Result<Self> {
        let mut namespace = Self {
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
        namespace.switch_on()?;
        namespace.announce(&config.announce)?;
        namespace.shorten(&config.buffers)?;
        namespace.widen(&config.buffers)?;
        let congests = matches!(Wanted::of(config), Wanted::Asked(_));
        namespace.go_on(congests)?;
        Ok(namespace)
    }

    /// Goes on with the weights of an end that was killed, and with its congestion control if
    /// there is to be one.
    fn go_on(&mut self, congests: bool) -> Result<()> {
        pins::sweep();
        let left = Pins::left(pins::congestion_owner(self.role)).ok().flatten();
        let was_left = left.is_some();
        self.left = left.filter(|_| congests && self.pin);
        let unpinned = was_left && self.left.is_none();
        match pins::left(self.role, self.pin) {
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
                pins::restore(known.or(self.before.of(DEFAULT)), true)
            }
            Left::Nothing => pins::restore(self.before.of(DEFAULT), unpinned),
        }
    }

    /// Returns, once, the saved state that a killed end had in force.
    pub(crate) fn gone_on(&mut self) -> Option<Kept> {
        std::mem::take(&mut self.goes_on).then(|| self.kept.clone())
    }

    /// Notes it once, however often it is met.
    pub(crate) fn note(&mut self, what: String) {
        if !self.notes.contains(&what) {
            tracing::warn!("{what}");
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
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Leaves what is in force for the one that comes after this was killed.
    pub(crate) fn remember(&mut self, kept: Kept) -> Result<()> {
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

    fn switch_on(&mut self) -> Result<()> {
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
    pub(crate) fn announce(&mut self, addresses: &[IpAddr]) -> Result<()> {
        match &mut self.pm {
            Some(pm) if self.role == Role::Proxy => self.announced.set(pm, addresses),
            _ => Ok(()),
        }
    }

    /// Takes back what connections were on before.
    pub(crate) fn withdraw(&mut self) -> Result<()> {
        match &mut self.pm {
            Some(pm) => self.announced.withdraw(pm),
            None => Ok(()),
        }
    }

    /// Sockets that begin afterwards have at least the buffers that are configured, or what
    /// the namespace had.
    pub(crate) fn widen(&mut self, wanted: &Buffers) -> Result<()> {
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
    ///
    /// # Errors
    /// That Braid's kernel, which does it by itself, refuses.
    pub(crate) fn shorten(&mut self, wanted: &Buffers) -> Result<()> {
        if support::sysctl(buffers::SHORT_QUEUES).is_some() {
            let on = if wanted.short_queues { "1" } else { "0" };
            return self.set_sysctl(buffers::SHORT_QUEUES, on);
        }
        if !wanted.short_queues {
            self.queues = None;
        } else if self.queues.is_none() {
            match ebpf::bound_queues() {
                Ok(queues) => self.queues = Some(queues),
                // As in a user namespace; `braid doctor` says what that costs.
                Err(e) if e.is_lacking() => {}
                Err(e) => self.note(format!("the queues of subflows are not kept short: {e}")),
            }
        }
        Ok(())
    }

    fn set_sysctl(&mut self, name: &'static str, value: &str) -> Result<()> {
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
    pub(crate) fn stands_in(&self) -> bool {
        self.wrr.is_some()
    }

    /// The congestion control by which they are.
    pub(crate) fn stand_in_name(&self) -> Option<&str> {
        self.wrr.as_ref().map(Wrr::name)
    }

    /// Returns that congestion control where it keeps the ratio of the weights.
    pub(crate) fn strict_name(&self) -> Option<&str> {
        let strict = self.wrr.as_ref().filter(|w| w.is_strict());
        strict.map(Wrr::name)
    }

    /// Makes weights count: by the kernel's own schedulers, or by weighted round robin that is
    /// there or `loaded`.
    pub(crate) fn enable_weights(&mut self, loaded: &mut Option<Wrr>) -> Result<()> {
        match self.wrr.is_some() || weights::known_to_kernel() {
            true => Ok(()),
            false => self.stand_in("wrr", loaded),
        }
    }

    /// Sets the weights of all connections, and those of single ones, by token, if weights
    /// count.
    pub(crate) fn weigh(&mut self, all: &[Rule], own: &BTreeMap<u32, Vec<Rule>>) -> Result<()> {
        match &mut self.wrr {
            Some(wrr) => wrr.set_weights(all, own)?,
            // Another scheduler was chosen since.
            None if !weights::known_to_kernel() => {}
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

    /// Returns the path manager's limits.
    pub(crate) fn limits(&mut self) -> Option<PathLimits> {
        let limits = self.pm.as_mut()?.limits().ok()?;
        Some(PathLimits {
            subflows: limits.subflows,
            add_addr_accepted: limits.add_addr_accepted,
        })
    }
}

impl Drop for Namespace {
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
