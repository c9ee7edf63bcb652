//! Views of engines: what each shows of itself and of its accesses, and what they show together.

use std::net::IpAddr;

use braid_api::{
    AccessAddress, AccessState, Connection, Engine as Kind, Ignored, PathLimits, Scheduling,
};

use crate::meter::Flow;

/// State of an engine.
#[derive(Debug, Default)]
pub(crate) struct EngineStatus {
    pub(crate) limits: Option<PathLimits>,
    /// Scheduler and congestion control in force, as a configuration calls them.
    pub(crate) scheduling: Option<Scheduling>,
    /// Packet scheduler, where it has one.
    pub(crate) scheduler: Option<String>,
    /// Congestion control of connections that begin.
    pub(crate) congestion_control: String,
    /// Whether it repairs what it sees.
    pub(crate) recover: bool,
    /// Interfaces that serve as no access.
    pub(crate) ignored: Vec<Ignored>,
    /// Steps that could not be done and are not needed.
    pub(crate) notes: Vec<String>,
    /// One view per access, in the order of the configuration.
    pub(crate) accesses: Vec<AccessView>,
    /// Flows at the same moment.
    pub(crate) flows: Vec<Flow>,
    /// Connections at the same moment, where they were asked for.
    pub(crate) connections: Vec<Connection>,
}

/// Access as an engine sees it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AccessView {
    pub(crate) state: AccessState,
    /// Sentence that says whether it is used, and if not, why.
    pub(crate) why: String,
    /// Drawbacks of the access while it is used.
    pub(crate) notes: Vec<String>,
    pub(crate) up: bool,
    pub(crate) has_address: bool,
    pub(crate) address: Option<IpAddr>,
    pub(crate) interface: Option<String>,
    pub(crate) ifindex: Option<u32>,
    pub(crate) endpoint_id: Option<u8>,
    pub(crate) addresses: Vec<AccessAddress>,
    pub(crate) srtt_ms: Option<f64>,
    pub(crate) probe_rtt_ms: Option<f64>,
    /// Share of what was sent that was sent again, 0 to 1.
    pub(crate) loss: Option<f64>,
    /// Subflows, paths and plain TCP connections.
    pub(crate) subflows: u32,
}

/// Returns how good a state is: the better one of two engines counts.
pub(crate) fn rank(state: AccessState) -> u8 {
    match state {
        AccessState::Active => 6,
        AccessState::Backup => 5,
        AccessState::Init => 4,
        AccessState::Silent => 3,
        AccessState::Stripped => 2,
        AccessState::NoAddress => 1,
        AccessState::Down | AccessState::Ignored => 0,
    }
}

/// Joins the views that the engines have of one access. It is as good as the best of them says;
/// the reasons of others that see it otherwise become notes. Without any engine there is none.
pub(crate) fn join(views: Vec<(Kind, AccessView)>) -> AccessView {
    let mut best: Option<(Kind, AccessView)> = None;
    for (kind, view) in views {
        best = Some(match best {
            None => (kind, view),
            Some((of, best)) => match rank(view.state) > rank(best.state) {
                true => (kind, view.with(of, best)),
                false => (of, best.with(kind, view)),
            },
        });
    }
    best.map(|(_, view)| view).unwrap_or_default()
}

impl AccessView {
    /// Adds the view of another engine, which says the same or less.
    fn with(mut self, kind: Kind, other: Self) -> Self {
        if other.state != self.state {
            let (kind, state) = (kind.as_str(), other.state.as_str());
            self.notes.push(format!("{kind}: {state}: {}", other.why));
        }
        for note in other.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        let least = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::min);
        let most = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::max);
        self.up |= other.up;
        self.has_address |= other.has_address;
        self.address = self.address.or(other.address);
        self.interface = self.interface.or(other.interface);
        self.ifindex = self.ifindex.or(other.ifindex);
        self.endpoint_id = self.endpoint_id.or(other.endpoint_id);
        for a in other.addresses {
            match self.addresses.iter_mut().find(|b| b.address == a.address) {
                Some(b) => b.endpoint_id = b.endpoint_id.or(a.endpoint_id),
                None => self.addresses.push(a),
            }
        }
        self.srtt_ms = least(self.srtt_ms, other.srtt_ms);
        self.probe_rtt_ms = self.probe_rtt_ms.or(other.probe_rtt_ms);
        self.loss = most(self.loss, other.loss);
        self.subflows += other.subflows;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(state: AccessState, why: &str, subflows: u32) -> AccessView {
        AccessView {
            state,
            why: why.into(),
            subflows,
            ..AccessView::default()
        }
    }

    #[test]
    fn an_access_is_as_good_as_the_best_engine_says() {
        use AccessState::{Active, Silent};
        let mut slow = view(Silent, "nothing comes back", 1);
        (slow.srtt_ms, slow.loss) = (Some(20.0), Some(0.1));
        let mut fast = view(Active, "used", 2);
        (fast.srtt_ms, fast.endpoint_id) = (Some(30.0), Some(4));
        for order in [
            vec![(Kind::Mptcp, slow.clone()), (Kind::Mpquic, fast.clone())],
            vec![(Kind::Mpquic, fast.clone()), (Kind::Mptcp, slow.clone())],
        ] {
            let both = join(order);
            assert_eq!((both.state, both.why.as_str()), (Active, "used"));
            assert_eq!(both.notes, ["mptcp: silent: nothing comes back"]);
            assert_eq!((both.srtt_ms, both.loss), (Some(20.0), Some(0.1)));
            assert_eq!((both.subflows, both.endpoint_id), (3, Some(4)));
        }
        assert_eq!(join(vec![(Kind::Tcp, fast.clone())]), fast);
    }

    #[test]
    fn one_reason_is_told_once() {
        let down = view(AccessState::Down, "its link is down", 0);
        let both = join(vec![
            (Kind::Mptcp, down.clone()),
            (Kind::Mpquic, down.clone()),
        ]);
        assert_eq!(both, down);
    }
}
