//! What an end sets up in its namespace, changes on request, and takes away again.

use std::collections::BTreeMap;

use braid_core::api::{Engine as Kind, PathLimits, Role, SchedulerChange, WrrMode};
use braid_mptcp::pm::{Endpoint, EndpointFlags, Limits, PathManager};
use braid_mptcp::support::{self, Support};
use braid_mptcp::weights::{self, Rule};

use super::EndError;
use super::config::Config;

/// What an access is used for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Use {
    pub(super) enabled: bool,
    pub(super) backup: bool,
    pub(super) endpoint_id: Option<u8>,
    /// The endpoint was there before us: it is left behind.
    adopted: bool,
}

/// The engine of one end. What it set up goes when it is dropped.
pub(super) struct Engine {
    role: Role,
    flags: EndpointFlags,
    pm: Option<PathManager>,
    uses: Vec<Use>,
    limits_before: Option<Limits>,
    sysctls_before: Vec<(&'static str, String)>,
}

impl Engine {
    /// Sets up what `config` asks for in the calling thread's namespace;
    /// `indices` are the interfaces that exist.
    pub(super) fn set_up(
        config: &Config,
        indices: &BTreeMap<String, u32>,
    ) -> Result<Self, EndError> {
        let mut engine = Self {
            role: config.role,
            flags: match config.full_mesh {
                true => EndpointFlags::SUBFLOW | EndpointFlags::FULLMESH,
                false => EndpointFlags::SUBFLOW,
            },
            pm: None,
            uses: Vec::new(),
            limits_before: None,
            sysctls_before: Vec::new(),
        };
        if config.engine == Kind::Mptcp {
            engine.switch_on()?;
        }
        for access in &config.accesses {
            let mut used = Use {
                enabled: true,
                backup: access.backup,
                endpoint_id: None,
                adopted: false,
            };
            if config.role == Role::Device {
                let interface = access.interface.as_deref().unwrap_or_default();
                let Some(&index) = indices.get(interface) else {
                    return Err(EndError::Failed(format!(
                        "access \"{}\": no interface \"{interface}\" in this network namespace",
                        access.name
                    )));
                };
                engine.add(&mut used, access.address, index)?;
            }
            engine.uses.push(used);
        }
        Ok(engine)
    }

    fn switch_on(&mut self) -> Result<(), EndError> {
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
        self.limits_before = Some(pm.limits()?);
        pm.set_limits(Limits::MAX)?;
        self.pm = Some(pm);
        Ok(())
    }

    fn set_sysctl(&mut self, name: &'static str, value: &str) -> Result<(), EndError> {
        let before = support::sysctl(name).unwrap_or_default();
        support::set_sysctl(name, value)?;
        // What it was before us, however often we change it.
        if !self.sysctls_before.iter().any(|(n, _)| *n == name) {
            self.sysctls_before.push((name, before));
        }
        Ok(())
    }

    /// Changes what schedules the packets that this end sends.
    pub(super) fn schedule(&mut self, change: &SchedulerChange) -> Result<(), EndError> {
        if self.pm.is_none() {
            return Err(EndError::Refused(
                "the engine \"tcp\" has one path: there is nothing to schedule".into(),
            ));
        }
        if let Some(name) = &change.name {
            let support = Support::detect();
            support.require_scheduler(name)?;
            // Kernels without the setting have the default alone.
            if support.scheduler.is_some() {
                self.set_sysctl("net.mptcp.scheduler", name)?;
            }
        }
        if let Some(mode) = change.wrr_mode {
            let fill = match mode {
                WrrMode::Strict => "0",
                WrrMode::WorkConserving => "1",
            };
            own_kernel("net.mptcp.rr_cwnd_limited", "a mode of round robin")?;
            self.set_sysctl("net.mptcp.rr_cwnd_limited", fill)?;
        }
        if let Some(n) = change.num_segments {
            own_kernel("net.mptcp.rr_num_segments", "a quota of round robin")?;
            self.set_sysctl("net.mptcp.rr_num_segments", &n.to_string())?;
        }
        let flags = [
            ("net.mptcp.minrtt_opportunistic", change.opportunistic),
            ("net.mptcp.minrtt_penalise", change.penalise),
        ];
        for (name, wanted) in flags {
            if let Some(on) = wanted {
                own_kernel(name, "an option of minrtt")?;
                self.set_sysctl(name, if on { "1" } else { "0" })?;
            }
        }
        Ok(())
    }

    /// How packets are scheduled now.
    pub(super) fn scheduler(&self) -> SchedulerChange {
        let number = |name| support::sysctl(name).and_then(|s| s.parse::<u8>().ok());
        SchedulerChange {
            name: support::sysctl("net.mptcp.scheduler"),
            wrr_mode: number("net.mptcp.rr_cwnd_limited").map(|n| match n {
                0 => WrrMode::Strict,
                _ => WrrMode::WorkConserving,
            }),
            num_segments: number("net.mptcp.rr_num_segments"),
            opportunistic: number("net.mptcp.minrtt_opportunistic").map(|n| n != 0),
            penalise: number("net.mptcp.minrtt_penalise").map(|n| n != 0),
        }
    }

    /// Sets the weights of all accesses, whose addresses are the device's.
    pub(super) fn weigh(&mut self, all: &[(std::net::IpAddr, f64)]) -> Result<(), EndError> {
        own_kernel("net.mptcp.weights", "weights of accesses")?;
        let rules: Vec<Rule> = all
            .iter()
            .map(|&(address, weight)| Rule {
                address,
                remote: self.role == Role::Proxy,
                weight,
            })
            .collect();
        self.set_sysctl("net.mptcp.weights", &weights::table(&rules))
    }

    fn add(
        &mut self,
        used: &mut Use,
        address: std::net::IpAddr,
        index: u32,
    ) -> Result<(), EndError> {
        let Some(pm) = &mut self.pm else {
            return Ok(());
        };
        let mut flags = self.flags;
        flags.set(EndpointFlags::BACKUP, used.backup);
        let wanted = Endpoint::new(address, Some(index), flags);
        // One left by an end that was killed, or set by hand, serves as it is.
        let there = pm
            .find(address, None)?
            .filter(|e| (e.ifindex, e.flags) == (wanted.ifindex, wanted.flags));
        used.adopted = there.is_some();
        used.endpoint_id = Some(match there {
            Some(e) => e.id,
            None => pm.add(&wanted)?,
        });
        Ok(())
    }

    /// What the accesses are used for, in the order of the configuration.
    pub(super) fn uses(&self) -> &[Use] {
        &self.uses
    }

    /// The path manager's limits; `None` without MPTCP.
    pub(super) fn limits(&mut self) -> Option<PathLimits> {
        let limits = self.pm.as_mut()?.limits().ok()?;
        Some(PathLimits {
            subflows: limits.subflows,
            add_addr_accepted: limits.add_addr_accepted,
        })
    }

    /// Changes access number `i` with this address; `index` is its interface's
    /// index now. Says whether anything changed.
    pub(super) fn change(
        &mut self,
        i: usize,
        address: std::net::IpAddr,
        index: Option<u32>,
        backup: Option<bool>,
        enabled: Option<bool>,
    ) -> Result<bool, EndError> {
        if self.role == Role::Proxy {
            return Err(EndError::Refused(
                "an access is changed at the device, which has it; this is the proxy".into(),
            ));
        }
        if self.pm.is_none() {
            return Err(EndError::Refused(
                "the engine \"tcp\" has one fixed access: nothing can be changed".into(),
            ));
        }
        let before = self.uses[i];
        let mut used = before;
        if let (Some(backup), Some(pm)) = (backup.filter(|&b| b != used.backup), &mut self.pm) {
            if let Some(id) = used.endpoint_id {
                pm.set_backup(id, backup)?;
            }
            used.backup = backup;
            self.uses[i] = used;
        }
        if let Some(enabled) = enabled.filter(|&e| e != used.enabled) {
            if enabled {
                let index = index.ok_or_else(|| {
                    EndError::Refused("its interface does not exist now: create it first".into())
                })?;
                self.add(&mut used, address, index)?;
            } else if let (Some(id), Some(pm)) = (used.endpoint_id.take(), &mut self.pm) {
                pm.delete(id)?;
            }
            used.enabled = enabled;
            self.uses[i] = used;
        }
        Ok(used != before)
    }
}

/// Refuses where the running kernel lacks the setting `name`.
fn own_kernel(name: &str, what: &str) -> Result<(), EndError> {
    match support::sysctl(name) {
        Some(_) => Ok(()),
        None => Err(EndError::Lacking(format!(
            "this kernel knows no {what} ({name} is not there)\n  to enable it: run it on \
             Braid's own kernel: --clock virtual, after make kernel guest"
        ))),
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // Best effort: the namespace may already be going.
        if let Some(pm) = &mut self.pm {
            for used in self.uses.iter().filter(|u| !u.adopted) {
                if let Some(id) = used.endpoint_id {
                    let _ = pm.delete(id);
                }
            }
            if let Some(limits) = self.limits_before {
                let _ = pm.set_limits(limits);
            }
        }
        for (name, before) in self.sysctls_before.iter().rev() {
            let _ = support::set_sysctl(name, before);
        }
    }
}
