//! Scenarios: the experiments that the lab runs, one TOML file each.
//! `docs/scenario.md` is the reference.

mod backhaul;
mod build;
mod case;
mod clock;
mod event;
mod files;
mod link;
mod network;
mod only;
mod place;
mod plan;
mod policy;
mod power;
pub(crate) mod raw;
mod shipped;
mod source;
mod text;
mod traffic;
mod weights;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use braid_api::config::{Estimator, Policy, Transfers};
use braid_api::{SchedulerChange, diagnostic};
use braid_core::sched::WrrMode;
use braid_core::{AccessKind, Rate};
use braid_mptcp::buffers;
use braid_radio::model::wifi::WifiSpec;
use braid_radio::model::{LinkChange, LinkSpec, RateSpec};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

pub(crate) use build::unknown;
pub use diagnostic::Diagnostic;
pub(crate) use diagnostic::Problem;
pub(crate) use diagnostic::nearest;
use files::Files;
pub(crate) use network::queued;
pub use place::{Beside, Place};
pub use power::Power;
pub use shipped::{Shipped, find_trace as shipped_trace, print, shipped};
pub use source::Source;
pub(crate) use text::Text;
pub use traffic::{Bulk, Cbr, Command, Direction, RequestResponse, Traffic, Video, Voip, Web};

pub use crate::engine::{Engine, Mpquic, Mptcp, Tcp};
use crate::summary::PaperFigure;

/// A scenario, checked and with its variants expanded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Description of the scenario, from the comment at the head of the file.
    pub description: String,
    /// Seed of every random draw, unless the command line gives another.
    pub seed: u64,
    /// Addressing.
    pub network: Network,
    /// Shared media by name.
    pub media: IndexMap<String, WifiSpec>,
    /// Every case of every variant, in order.
    pub cases: Vec<Case>,
    /// Numbers printed in a paper, to be shown beside ours.
    pub paper: Vec<PaperFigure>,
    /// The text of the file.
    pub text: String,
    /// The file, or the shipped name.
    pub origin: PathBuf,
}

/// Addressing of the lab's namespaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// IPv6 instead of IPv4.
    pub ipv6: bool,
    /// Range that addresses are taken from, e.g. `10.77.0.0/16`: base and length.
    pub prefix: Option<(IpAddr, u8)>,
    /// MTU of every access, bytes.
    pub mtu: u32,
    /// Receive buffers of TCP sockets: least, initial, greatest, bytes; `None`: by the
    /// kernel that runs.
    pub tcp_rmem: Option<[u32; 3]>,
    /// Send buffers of TCP sockets: least, initial, greatest, bytes; `None`: by
    /// the rates of the accesses.
    pub tcp_wmem: Option<[u32; 3]>,
    /// Whether ends bound what waits on a subflow, where the kernel permits it.
    pub short_queues: bool,
    /// Parameters of the virtual clock's kernel, as `MODULE.PARAMETER`.
    pub module_parameters: BTreeMap<String, i64>,
}

/// One access of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccessSetup {
    /// Its name.
    pub name: String,
    /// Its technology.
    pub kind: AccessKind,
    /// The shared medium that serves it.
    pub medium: Option<String>,
    /// Physical-layer rate on that medium.
    pub phy_rate: Option<Rate>,
    /// The line that it shares with other accesses, whose rate and queue are
    /// then its own.
    pub backhaul: Option<String>,
    /// Used only when no other access works.
    pub backup: bool,
    /// Estimator by which a policy knows it.
    #[serde(default)]
    pub estimator: Estimator,
    /// Power model of its radio; `None`: its energy is not computed.
    #[serde(default)]
    pub power: Option<Power>,
    /// Proxy to device.
    pub down: LinkSpec,
    /// Device to proxy.
    pub up: LinkSpec,
}

/// Further devices of one kind, each in a namespace of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bystander {
    /// Name of the kind; the devices are `name-1`, `name-2`, ...
    pub name: String,
    /// How many.
    pub count: u32,
    /// Their accesses.
    pub accesses: Vec<AccessSetup>,
    /// Traffic of each of them during every case.
    pub traffic: Option<Traffic>,
    /// MPTCP over all its accesses instead of TCP on the first.
    pub mptcp: bool,
    /// Congestion control; `None`: the kernel's default.
    pub cc: Option<String>,
}

impl Bystander {
    /// The names of its devices.
    pub fn devices(&self) -> impl Iterator<Item = String> {
        (1..=self.count).map(|i| format!("{}-{i}", self.name))
    }
}

/// Action of an event on an access.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Action {
    /// Carrier lost: the device sees its interface go down.
    Down,
    /// Both directions swallow everything, and nobody is told.
    Blackhole,
    /// Works again.
    Up,
    /// The device's interface, which is down, loses its address and has this one
    /// from then on: its number, from 1.
    Address(u32),
    /// Changes of the links.
    Change {
        /// Changes of the downlink.
        down: Vec<LinkChange>,
        /// Changes of the uplink.
        up: Vec<LinkChange>,
    },
    /// New weights of accesses, by name.
    Weights(BTreeMap<String, f64>),
}

impl Action {
    /// Returns the changes that it makes to the downlink and to the uplink of its access.
    pub(crate) fn link_changes(&self) -> (Vec<LinkChange>, Vec<LinkChange>) {
        let both = |change: LinkChange| (vec![change.clone()], vec![change]);
        match self {
            Self::Down | Self::Blackhole => both(LinkChange::Down),
            Self::Up => both(LinkChange::Up),
            Self::Change { down, up } => (down.clone(), up.clone()),
            Self::Weights(_) | Self::Address(_) => (Vec::new(), Vec::new()),
        }
    }
}

/// A change of an access at a point in time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Since the start of the case.
    pub at: Duration,
    /// The access; empty for what concerns them all.
    pub access: String,
    /// Action on the access.
    pub action: Action,
    /// How `events.csv` calls it.
    pub label: String,
}

/// Path manager: keeps MPTCP's endpoints in step with accesses that go and come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PathManager {
    /// In-kernel path manager, as configured at the start: nothing follows the accesses.
    #[default]
    Kernel,
    /// The device's engine end is told, as by a connection manager's hook, and
    /// deletes or adds the access's endpoint.
    Notified,
    /// Braid's own: follows interfaces, probes accesses, and repairs.
    Braid,
}

/// One case of one variant: everything that is needed to run it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// Name; with variants `variant: case`.
    pub name: String,
    /// The variant it belongs to.
    pub variant: Option<String>,
    /// The name that the file gives it.
    pub base_name: String,
    /// The engine.
    pub engine: Engine,
    /// Packet scheduler; `None`: the engine's default.
    pub scheduler: Option<String>,
    /// Behaviour of round robin when a window is full; `None`: the kernel's default.
    pub wrr_mode: Option<WrrMode>,
    /// Segments of a turn of round robin; `None`: the kernel's default.
    pub num_segments: Option<u8>,
    /// Whether `minrtt` repeats what blocks the window; `None`: it does not.
    pub opportunistic: Option<bool>,
    /// Whether `minrtt` slows down those that block it; `None`: it does not.
    pub penalise: Option<bool>,
    /// Path manager: keeps MPTCP's endpoints in step with the accesses.
    pub path_manager: PathManager,
    /// Congestion control; `None`: the kernel's default.
    pub cc: Option<String>,
    /// Expectation that the device has of its accesses, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expect>,
    /// Weights per access.
    pub weights: Option<BTreeMap<String, f64>>,
    /// Policy that decides the weights, at both ends.
    #[serde(default)]
    pub policy: Policy,
    /// Transfers by which accesses with the estimator `probe` are known, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<Transfers>,
    /// Traffic of the application.
    pub traffic: Traffic,
    /// Place where it begins.
    #[serde(default)]
    pub from: Place,
    /// Traffic of another application at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    /// Receive buffers of TCP sockets: least, initial, greatest, bytes; `None`: by the
    /// kernel that runs.
    pub tcp_rmem: Option<[u32; 3]>,
    /// Send buffers of TCP sockets: least, initial, greatest, bytes.
    pub tcp_wmem: [u32; 3],
    /// Whether ends bound what waits on a subflow, where the kernel permits it.
    pub short_queues: bool,
    /// Length, warm-up included.
    pub duration: Duration,
    /// Time at the start that is not measured.
    pub warmup: Duration,
    /// The accesses of the device.
    pub accesses: Vec<AccessSetup>,
    /// Further devices.
    pub bystanders: Vec<Bystander>,
    /// Events, in order of time.
    pub events: Vec<Event>,
    /// Capacity of an ideal single path, to be shown beside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ideal: Option<RateSpec>,
}

impl Case {
    /// Receive buffers of TCP sockets on the kernel that runs here.
    pub fn receive_buffers(&self) -> [u32; 3] {
        self.tcp_rmem.unwrap_or_else(buffers::to_receive)
    }

    /// Returns the traffic of its applications, the measured one first.
    pub fn traffics(&self) -> impl Iterator<Item = (&Traffic, Place)> {
        let beside = self.beside.iter().map(|b| (&b.traffic, b.from));
        std::iter::once((&self.traffic, self.from)).chain(beside)
    }

    /// Whether some of its traffic begins at a host behind the device.
    pub fn has_hosts(&self) -> bool {
        self.traffics().any(|(_, from)| from == Place::Lan)
    }

    /// Returns the scheduler and its keys as the control API takes them.
    pub(crate) fn scheduler_change(&self) -> SchedulerChange {
        SchedulerChange {
            name: self.scheduler.clone(),
            wrr_mode: self.wrr_mode,
            num_segments: self.num_segments,
            opportunistic: self.opportunistic,
            penalise: self.penalise,
        }
    }
}

/// Expectation that a device has of its accesses: what they carry, times a factor and an error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expect {
    /// Above 0, at most 100.
    pub factor: f64,
    /// Standard deviation of the error, which is log-normal and drawn each time the device
    /// looks, dB (0 to 20).
    pub error_db: f64,
    /// Seed of the draws.
    pub seed: u64,
    /// How often it looks, beside the start and when an access comes up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<Duration>,
}

/// Changes that the command line makes to a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// `--duration`: length of every case; the warm-up shrinks with it.
    pub duration: Option<Duration>,
    /// `--scale`: factor on every rate.
    pub scale: Option<f64>,
    /// `--seed`.
    pub seed: Option<u64>,
    /// `--only`: names of cases, of variants, or of cases in every variant.
    pub only: Vec<String>,
}

impl Scenario {
    /// Reads a shipped scenario by name, or a file by path.
    ///
    /// # Errors
    /// No such scenario or file, or anything wrong in it: where, what, and
    /// what was expected.
    pub fn load(name_or_path: &str, overrides: &Overrides) -> Result<Self, Diagnostic> {
        let source = Source::open(name_or_path)?;
        source.parse(&source.text, &source.origin, overrides)
    }

    /// Reads a scenario from `text`; `origin` names it in errors, and relative
    /// trace paths start at `dir`.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn parse(
        text: &str,
        origin: &Path,
        dir: &Path,
        overrides: &Overrides,
    ) -> Result<Self, Diagnostic> {
        build::parse(text, origin, &Files::In(dir), overrides)
    }
}
