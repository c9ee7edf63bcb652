//! The control loop of an end: observe, decide, apply (`docs/internals/control.md`).
//!
//! [`Control`] owns the loop of core. Requests, the configuration and samples of paths come in
//! as observations; what the policy decides goes out as [`Decided`]: weights, which the engine sets
//! as it does those of a request, and accesses that rest.

mod journal;
mod limits;
mod paths;
mod probe;
mod report;
mod settings;
mod task;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use braid_api::config::WEIGHTED;
use braid_api::{ControlStatus, Role, SchedulerChange};
use braid_core::control::{
    AccessRole, CarriedRates, Decision, Direction, Observation, PerDirection, PowerReading,
    Request, Settings, StateChange, What,
};
use braid_core::control_loop::ControlLoop;
use braid_core::journal::{Header, VERSION};
use braid_core::{AccessState, Rate, Time};
use tokio::sync::{Notify, mpsc};

use super::DaemonError;
use super::config::Config;
use super::state::lock;
use journal::Journal;
use paths::Paths;
use settings::settings;

pub(crate) use limits::{Evidence, Tcp, waits};
pub(crate) use paths::{Key, Reading};
pub(crate) use probe::{Asked, FIRST, LEN, Origin, Probed, run as run_probes};
pub(crate) use task::{Look, Steered, apply, run};

/// Samples in a row without any path on an access, while others have some, after which it counts
/// as lost where nothing else tells its state.
const ABSENT: u32 = 10;
/// Bytes of one sample that are traffic, and not what keeps a connection alive.
const TRAFFIC: u64 = 8_192;
/// Samples without traffic after which an end is idle.
const QUIET: u32 = 10;

/// Next sample that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// Soon: there is traffic.
    Traffic,
    /// Later: there are connections.
    Idle,
    /// When something happens: there is nothing to sample.
    Rest,
}

/// Decision of a policy, in the words of the engines.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Decided {
    /// Weights of this end's direction.
    pub(crate) weights: BTreeMap<String, f64>,
    /// Accesses that carry only where no other can, though nobody wished for a backup.
    pub(crate) resting: BTreeSet<String>,
    /// Reason, one sentence.
    pub(crate) why: String,
}

/// Control loop of one end, shared by its requests and its task.
#[derive(Debug)]
pub(crate) struct Control {
    inner: Mutex<Inner>,
    wake: Notify,
    intake: probe::Intake,
}

#[derive(Debug)]
struct Inner {
    header: Header,
    direction: Direction,
    control: ControlLoop,
    settings: Settings,
    decides: bool,
    journal: Option<Journal>,
    paths: Paths,
    /// States that were observed, and for how many samples an access had no path.
    states: BTreeMap<String, (AccessState, u32)>,
    /// Requests in force, for a journal that begins anew.
    requests: Vec<Request>,
    decision: Option<Decision>,
    quiet: u32,
    /// Readings of counters of power since the last sample.
    power: Vec<PowerReading>,
    trouble: Option<String>,
    now: Time,
    book: probe::Book,
    /// Whether the loop is new: it has to be told what probes have cost.
    new: bool,
}

impl Control {
    /// Begins with `config`. Until paths are sampled, weights are as configured.
    pub(crate) fn new(role: Role, config: &Config, at: Time) -> Self {
        // Each end sends by its own weights.
        let direction = match role {
            Role::Device => Direction::Up,
            Role::Proxy => Direction::Down,
        };
        let header = Header {
            version: VERSION,
            program: format!("braid {}", env!("CARGO_PKG_VERSION")),
            role,
            engine: config.engines[0],
            seed: at.as_nanos(),
        };
        let control = Self {
            inner: Mutex::new(Inner {
                direction,
                control: ControlLoop::new(header.seed),
                header,
                settings: settings(config),
                decides: false,
                journal: None,
                paths: Paths::new(direction),
                states: BTreeMap::new(),
                requests: Vec::new(),
                decision: None,
                quiet: 0,
                power: Vec::new(),
                trouble: None,
                now: Time::ZERO,
                book: probe::Book::default(),
                new: true,
            }),
            wake: Notify::new(),
            intake: probe::Intake::new(probe::Plan::new(role, config)),
        };
        control.configure(config, at);
        control
    }

    /// Whether traffic fills an access now, as the last sample told.
    fn is_full(&self, access: &str) -> bool {
        lock(&self.inner).control.snapshot().is_full(access)
    }

    /// Whether a policy decides the weights.
    pub(crate) fn decides(&self) -> bool {
        lock(&self.inner).decides
    }

    /// Checks a request for another scheduler against the policy.
    pub(crate) fn allows(&self, change: &SchedulerChange) -> Result<(), DaemonError> {
        match &change.name {
            Some(name) if name != WEIGHTED && self.decides() => {
                let policy = lock(&self.inner).settings.policy.name.clone();
                Err(DaemonError::Refused(format!(
                    "policy \"{policy}\" sets weights, which scheduler \"{name}\" does not \
                     follow: keep \"{WEIGHTED}\", or set [control] policy = \"static\" first"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Whether paths are to be sampled: for a policy, or for a journal.
    pub(crate) fn samples(&self) -> bool {
        let inner = lock(&self.inner);
        inner.decides || inner.journal.is_some()
    }

    /// Tells the task that there may be something to sample.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Notes what keeps the loop from working, or that nothing does any more.
    fn trouble(&self, what: Option<String>) {
        let mut inner = lock(&self.inner);
        if inner.trouble == what {
            return;
        }
        if let Some(what) = &what {
            tracing::warn!("{what}");
        }
        inner.trouble = what;
    }

    /// Returns what keeps the loop from working, each in a sentence.
    pub(crate) fn notes(&self) -> Vec<String> {
        let inner = lock(&self.inner);
        let journal = inner.journal.as_ref().and_then(Journal::trouble);
        let all = inner.trouble.as_deref().into_iter().chain(journal);
        let all = all.chain(inner.book.trouble());
        all.map(str::to_owned).collect()
    }

    /// Returns where connections go that ask for a transfer ([`FIRST`]).
    pub(crate) fn transfers(&self) -> mpsc::Sender<Asked> {
        self.intake.hands()
    }

    /// Takes the configuration, at the start and whenever it is read again. Returns what
    /// the policy has in force, if it decides.
    pub(crate) fn configure(&self, config: &Config, at: Time) -> Option<Decided> {
        let mut inner = lock(&self.inner);
        inner.settings = settings(config);
        inner.decides = config.control.policy.decides();
        inner.requests.clear();
        inner.follow_journal(config);
        let plan = probe::Plan::new(inner.header.role, config);
        inner.book.follow(&plan);
        let what = inner.configuration();
        inner.step(at, what);
        self.intake.plan.send_replace(plan);
        self.wake.notify_one();
        inner.decided()
    }

    /// Takes the configuration with other accesses than before; requests stay in force. Returns
    /// what the policy has in force, if it decides.
    pub(crate) fn go_on_with(&self, config: &Config, at: Time) -> Option<Decided> {
        let mut inner = lock(&self.inner);
        inner.settings = settings(config);
        let plan = probe::Plan::new(inner.header.role, config);
        inner.book.follow(&plan);
        let requests = inner.requests.clone();
        let mut what = inner.configuration();
        what.extend(requests.into_iter().map(What::Request));
        inner.step(at, what);
        self.intake.plan.send_replace(plan);
        self.wake.notify_one();
        inner.decided()
    }

    /// Takes a request that was checked. Returns what the policy has in force, if it
    /// decides.
    pub(crate) fn request(&self, request: Request, at: Time) -> Option<Decided> {
        let mut inner = lock(&self.inner);
        inner.rotate(at);
        inner.remember(&request);
        inner.step(at, vec![What::Request(request)]);
        inner.decided()
    }

    /// Takes readings of counters of power, which are observed with the next sample.
    pub(crate) fn observe_power(&self, readings: Vec<PowerReading>) {
        if self.samples() {
            lock(&self.inner).power = readings;
        }
    }

    /// Takes what accesses carry; returns what is to be set now.
    pub(crate) fn observe_carried(
        &self,
        at: Time,
        rates: BTreeMap<String, PerDirection<Rate>>,
    ) -> Option<Decided> {
        let mut inner = lock(&self.inner);
        let anew = inner.rotate(at);
        let what = rates
            .into_iter()
            .map(|(access, rate)| What::Carried(CarriedRates { access, rate }));
        let decided = inner.step(at, what.collect()) || anew;
        inner.decided().filter(|_| decided)
    }

    /// Takes a look at the paths. Returns what is to be set now, and when to look next.
    fn sample(&self, at: Time, look: Look) -> (Option<Decided>, Pace) {
        let mut inner = lock(&self.inner);
        let anew = inner.rotate(at);
        let any = !look.paths.is_empty();
        let mut what = inner.states(look.states);
        let (samples, bytes) = inner.paths.sample(at, look.paths);
        what.extend(samples);
        what.extend(
            std::mem::take(&mut inner.power)
                .into_iter()
                .map(What::Power),
        );
        inner.quiet = match bytes >= TRAFFIC {
            true => 0,
            false => inner.quiet.saturating_add(1),
        };
        let decides = inner.step(at, what) || anew;
        let decided = inner.decided();
        // Those that rest have no paths to sample, and may be all that is left.
        let rests = decided.as_ref().is_some_and(|d| !d.resting.is_empty());
        let pace = match (any, inner.quiet < QUIET) {
            (true, true) => Pace::Traffic,
            (true, false) => Pace::Idle,
            (false, _) if rests => Pace::Idle,
            (false, _) => Pace::Rest,
        };
        (decided.filter(|_| decides), pace)
    }

    /// Returns the state of the loop for the API.
    pub(crate) fn report(&self, at: Time) -> ControlStatus {
        lock(&self.inner).report(at)
    }
}

impl Inner {
    /// Takes in observations of one moment and decides; returns whether there is a decision.
    fn step(&mut self, at: Time, what: Vec<What>) -> bool {
        if what.is_empty() {
            return false;
        }
        // A replay tells moments by their times.
        self.now = at.max(self.now + std::time::Duration::from_nanos(1));
        let at = self.now;
        for what in what {
            let observation = Observation { at, what };
            match self.control.observe(&observation) {
                Ok(()) => {
                    if let Some(journal) = &mut self.journal {
                        journal.observation(observation);
                    }
                }
                // What people write was checked before.
                Err(e) => self.trouble = Some(format!("an observation is left out: {e}")),
            }
        }
        let Some(decision) = self.control.decide(at) else {
            return false;
        };
        if let Some(journal) = &mut self.journal {
            journal.decision(decision.clone());
        }
        self.decision = Some(decision);
        true
    }

    /// Returns what the policy has in force.
    fn decided(&self) -> Option<Decided> {
        let steering = &self.decision.as_ref().filter(|_| self.decides)?.steering;
        let wished = &self.control.snapshot().accesses;
        let rests = |name: &str, role| {
            let wish = wished.get(name).is_some_and(|a| a.backup || !a.enabled);
            role == AccessRole::Backup && !wish
        };
        let all = || steering.accesses.iter();
        let resting = all().filter(|(name, a)| rests(name, a.role));
        Some(Decided {
            weights: all()
                .map(|(n, a)| (n.clone(), *a.weight.get(self.direction)))
                .collect(),
            resting: resting.map(|(name, _)| name.clone()).collect(),
            why: steering.why.clone(),
        })
    }

    /// Begins or ends the journal as configured.
    fn follow_journal(&mut self, config: &Config) {
        let limit = config.control.journal_bytes;
        let wanted = config.control.journal.as_deref();
        let goes_on = match (&self.journal, wanted) {
            (Some(journal), Some(path)) => journal.is(path, limit) && journal.trouble().is_none(),
            (None, None) => true,
            _ => false,
        };
        if !goes_on {
            self.journal = wanted.map(|path| Journal::new(path, limit, self.header.clone()));
            if self.now > Time::ZERO {
                self.restart();
            }
        }
    }

    /// Begins a new file where the journal is full; returns whether it did. A replay must know
    /// what the file before has told: the loop begins anew as well, and takes in the
    /// configuration and the requests in force.
    fn rotate(&mut self, at: Time) -> bool {
        let full = self.journal.as_mut().filter(|j| j.is_full());
        let Some(journal) = full else {
            return false;
        };
        journal.begin();
        self.restart();
        let mut what = self.configuration();
        what.extend(self.requests.iter().cloned().map(What::Request));
        self.step(at, what)
    }

    /// Returns the configuration as an observation, and what probes have cost to a loop that is
    /// new.
    fn configuration(&mut self) -> Vec<What> {
        let mut what = vec![What::Configuration(self.settings.clone())];
        if std::mem::take(&mut self.new) {
            what.extend(self.book.spending());
        }
        what
    }

    fn restart(&mut self) {
        self.new = true;
        self.control = ControlLoop::new(self.header.seed);
        self.paths = Paths::new(self.direction);
        // They are observed with the next sample.
        self.states.clear();
    }

    /// Keeps a request in place of those before that it overrides.
    fn remember(&mut self, request: &Request) {
        let subject = |r: &Request| match r {
            Request::Weights(_) => None,
            Request::Backup { access, .. }
            | Request::Enabled { access, .. }
            | Request::Expected { access, .. } => Some(access.clone()),
        };
        let same = |r: &Request| {
            std::mem::discriminant(r) == std::mem::discriminant(request)
                && subject(r) == subject(request)
        };
        let mut new = request.clone();
        if let Some(i) = self.requests.iter().position(same) {
            let before = self.requests.remove(i);
            if let (Request::Weights(before), Request::Weights(now)) = (before, &mut new) {
                for (name, weight) in before {
                    now.entry(name).or_insert(weight);
                }
            }
        }
        self.requests.push(new);
    }

    /// Returns the changes of states. Where nothing tells the state of an access, it is active
    /// until others have had paths for a while and it had none. A backup, which is not sampled, has
    /// paths, too.
    fn states(&mut self, states: Vec<(String, Option<AccessState>)>) -> Vec<What> {
        let works = |s: &AccessState| matches!(s, AccessState::Active | AccessState::Backup);
        let any = states.iter().any(|(_, s)| s.as_ref().is_some_and(works));
        let mut changes = Vec::new();
        for (access, told) in states {
            let before = self.states.get(&access).copied();
            let (state, absent) = match (told, before) {
                (Some(state), _) => (state, 0),
                (None, None) => (AccessState::Active, 0),
                (None, Some((state, absent))) => match absent + u32::from(any) {
                    n if n >= ABSENT => (AccessState::Down, ABSENT),
                    n => (state, n),
                },
            };
            self.states.insert(access.clone(), (state, absent));
            if before.map(|(s, _)| s) != Some(state) {
                changes.push(What::AccessState(StateChange { access, state }));
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests;
