//! View of the sessions and accesses for the status.

use std::collections::BTreeMap;

use braid_api::{AccessAddress, AccessState, Connection, Ignored, Role};
use braid_mpquic::{Link, PathInfo};

use super::Mpquic;
use super::api_view::{self, Traffic};
use super::unbonded::Unbonded;
use crate::config;
use crate::engine::Detail;
use crate::engine::view::{AccessView, EngineStatus};
use crate::scheduling;
use crate::state::lock;

/// Seconds after which a start takes long.
const STARTING: u64 = 2;

impl Mpquic {
    /// Describes the engine and its accesses.
    pub(super) fn describe(&self, detail: Detail) -> EngineStatus {
        let paths = self.paths();
        self.prove(&paths);
        let traffic = api_view::traffic(&paths);
        let views = lock(&self.accesses).clone();
        let views = views.iter().map(|a| self.view(a, &traffic)).collect();
        let mut notes = lock(&self.notes).clone();
        notes.extend(self.unbonded.iter().flat_map(Unbonded::notes));
        let device = lock(&self.device).clone();
        let ignored = device.map_or_else(Vec::new, |d| d.ignored());
        let ignored = ignored.into_iter();
        let ignored = ignored.map(|(interface, why)| Ignored { interface, why });
        let in_force = lock(&self.steered).scheduling.clone();
        EngineStatus {
            scheduling: Some(scheduling::of_quic(
                &in_force.scheduler,
                in_force.wrr_mode,
                &self.quic.cc,
            )),
            scheduler: Some(in_force.scheduler),
            ignored: ignored.collect(),
            congestion_control: self.quic.cc.clone(),
            recover: true,
            notes: self.outage().into_iter().chain(notes).collect(),
            accesses: views,
            flows: api_view::flows(&paths),
            connections: match detail {
                Detail::Accesses => Vec::new(),
                Detail::Connections => self.connections_of(&paths),
            },
            ..EngineStatus::default()
        }
    }

    /// Describes the sessions that have these paths.
    pub(super) fn connections_of(&self, paths: &[(u32, Vec<PathInfo>)]) -> Vec<Connection> {
        let of =
            |(token, paths): &(u32, Vec<_>)| api_view::connection(*token, paths, &self.quic.cc);
        paths.iter().map(of).collect()
    }

    /// Describes the outage while the device has no session, or none that is heard of.
    fn outage(&self) -> Option<String> {
        let device = lock(&self.device).clone();
        let lost = device.and_then(|d| d.lost_for());
        let seconds = lost.map(|t| t.as_secs());
        let lasting = seconds.map_or(String::new(), |s| format!("; connecting for {s} s"));
        let session = self.current.borrow().clone();
        if session.is_some() {
            let silent = lost?.as_secs();
            return Some(format!(
                "nothing comes back from the proxy on any access for {silent} s: its session is \
                 asked, and another is tried beside it"
            ));
        }
        let trouble = lock(&self.trouble).clone();
        let starting = || {
            seconds
                .filter(|s| *s >= STARTING)
                .map(|_| "no answer yet".to_owned())
        };
        let why = trouble.or_else(starting)?;
        Some(format!("no session: {why}{lasting}"))
    }

    pub(super) fn view(
        &self,
        a: &config::Access,
        traffic: &BTreeMap<String, Traffic>,
    ) -> AccessView {
        let traffic = traffic.get(&a.name).cloned().unwrap_or_default();
        let (backup, enabled) = {
            let steered = lock(&self.steered);
            let backup = steered
                .accesses
                .iter()
                .any(|s| s.name == a.name && s.backup);
            (backup, !steered.disabled.contains(&a.name))
        };
        let device = self.shared.role == Role::Device;
        let link = match &*lock(&self.device) {
            Some(d) => d.link_of(&a.name).unwrap_or_default(),
            None => Link {
                up: !device,
                ..Link::default()
            },
        };
        let proven = lock(&self.proven).contains(&a.name);
        let connected = !lock(&self.sessions).is_empty();
        let configured = a.interface.as_ref().map(ToString::to_string);
        let interface = link.interface.clone().or(configured);
        let (state, why) = judge(&Facts {
            device,
            connected,
            enabled,
            link: &link,
            backup,
            proven,
            traffic: &traffic,
        });
        let notes = traffic.longest.map(|bytes| {
            format!("packets of up to {bytes} bytes pass, longer ones are lost on the way")
        });
        let addresses = link.address.map(|address| AccessAddress {
            address,
            interface: interface.clone(),
            endpoint_id: None,
        });
        AccessView {
            state,
            why,
            notes: notes.into_iter().collect(),
            up: link.up,
            has_address: !device || link.address.is_some(),
            address: link.address.or(a.address.map(|n| n.addr())),
            interface,
            ifindex: None,
            endpoint_id: None,
            addresses: addresses.into_iter().collect(),
            srtt_ms: traffic.srtt_ms,
            probe_rtt_ms: None,
            loss: traffic.loss,
            subflows: traffic.paths,
        }
    }
}

impl Mpquic {
    /// Notes the accesses on which paths are validated; those that lead nowhere begin anew.
    pub(super) fn prove(&self, sessions: &[(u32, Vec<PathInfo>)]) {
        let usable = sessions.iter().flat_map(|(_, paths)| paths);
        let usable = usable.filter(|p| p.usable).filter_map(|p| p.access.clone());
        let device = lock(&self.device).clone();
        let leads = |name: &String| match &device {
            Some(d) => d.link_of(name).is_ok_and(|l| l.up && l.out.is_none()),
            None => true,
        };
        let mut proven = lock(&self.proven);
        proven.retain(leads);
        proven.extend(usable);
    }
}

/// Facts by which an access is judged.
struct Facts<'a> {
    device: bool,
    connected: bool,
    enabled: bool,
    link: &'a Link,
    backup: bool,
    /// Whether a path on it was validated before.
    proven: bool,
    traffic: &'a Traffic,
}

/// Whether an access is used, and if not, why.
fn judge(facts: &Facts<'_>) -> (AccessState, String) {
    let Facts {
        device,
        connected,
        enabled,
        link,
        backup,
        proven,
        traffic,
    } = *facts;
    if let (true, Some(out)) = (enabled && traffic.usable == 0, &link.out) {
        return out.clone();
    }
    let (state, why) = match traffic {
        _ if !enabled => (AccessState::Ignored, "left out by a request"),
        t if t.usable > 0 && backup => (AccessState::Backup, "used when no other access is"),
        t if device && t.usable > 0 && t.left == t.usable => (
            AccessState::Backup,
            "the proxy leaves it: what it sends there is not answered, or it was told to",
        ),
        t if t.usable > 0 => (AccessState::Active, "a path on it carries data"),
        _ if !device && !proven => (AccessState::Init, "no device has used it yet"),
        t if t.paths > 0 && !proven => (AccessState::Init, "nothing has come back on its path yet"),
        _ if !proven => (
            AccessState::Init,
            "nothing has come back on it yet: it has no path",
        ),
        _ if device && !connected => (AccessState::Silent, "there is no session with the proxy"),
        _ if !connected => (AccessState::Down, "no device is connected"),
        t if t.paths > 0 => (AccessState::Silent, "nothing comes back on its path"),
        _ => (
            AccessState::Silent,
            "it has no path: attempts to open one get no answer",
        ),
    };
    (state, why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_access_that_is_out_says_why() {
        let cause = "no default route leads out by wwan0";
        let link = Link {
            up: true,
            out: Some((AccessState::NoAddress, cause.to_owned())),
            ..Link::default()
        };
        let traffic = |usable| Traffic {
            paths: 1,
            usable,
            ..Traffic::default()
        };
        let none = traffic(0);
        let out = Facts {
            device: true,
            connected: true,
            enabled: true,
            link: &link,
            backup: false,
            proven: true,
            traffic: &none,
        };
        let state = |enabled, usable| {
            judge(&Facts {
                enabled,
                traffic: &traffic(usable),
                ..out
            })
        };
        assert_eq!(state(true, 0), (AccessState::NoAddress, cause.to_owned()));
        // What carries data is used, whatever the routes look like.
        assert_eq!(state(true, 1).0, AccessState::Active);
        assert_eq!(state(false, 0).0, AccessState::Ignored);
        let left = Traffic {
            left: 1,
            ..traffic(1)
        };
        let judged = |device| {
            let traffic = &left;
            judge(&Facts {
                device,
                traffic,
                ..out
            })
        };
        let (state_of_left, why) = judged(true);
        assert_eq!(state_of_left, AccessState::Backup);
        assert!(why.contains("the proxy leaves it"), "{why}");
        assert_eq!(judged(false).0, AccessState::Active);
        let there = Facts {
            link: &Link::default(),
            ..out
        };
        assert_eq!(judge(&there).0, AccessState::Silent);
        let new = Facts {
            proven: false,
            ..there
        };
        let (state, why) = judge(&new);
        assert_eq!(state, AccessState::Init);
        assert!(why.contains("nothing has come back"), "{why}");
        let at_proxy = Facts {
            device: false,
            connected: false,
            ..new
        };
        assert_eq!(judge(&at_proxy).1, "no device has used it yet");
    }
}
