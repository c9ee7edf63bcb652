//! Caps of accesses: what they have carried in their months, and what becomes of one whose month is
//! used up.
//!
//! All that the interfaces of an access carry counts, bonded or not. The ledger outlives the daemon;
//! what flows meanwhile is counted at its next start, by the interfaces' own counters.

mod ledger;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use braid_api::config::{AtCap, Cap, CapLevel};
use braid_api::{AccessChange, CapStatus, EventKind, Role};
use braid_mptcp::support::sysctl;
use jiff::Zoned;
use jiff::civil::Date;

use crate::DaemonError;
use crate::config::{Access, Config};
use crate::daemon::Daemon;
use crate::interfaces;
use crate::json_file;
use crate::state::lock;
use ledger::{Counter, Ledger, Turn, month_of, next_month};

/// Time between two looks at the counters.
const EVERY: Duration = Duration::from_secs(2);
/// Longest time for which the file is older than the ledger.
const WRITE_EVERY: Duration = Duration::from_secs(60);

/// Usage of the accesses that have caps.
#[derive(Debug, Default)]
pub(crate) struct Usage(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    path: PathBuf,
    ledger: Ledger,
    /// Whether the file was read.
    read: bool,
    written: Option<Instant>,
    /// Accesses that are used otherwise for their caps.
    held: BTreeSet<String>,
    /// Reason why the ledger is not read or written.
    trouble: Option<String>,
}

impl State {
    /// Goes by the file of this path.
    fn open(&mut self, path: &Path) {
        if self.read && self.path == path {
            return;
        }
        path.clone_into(&mut self.path);
        self.read = true;
        match json_file::read(path) {
            Ok(ledger) => self.ledger = ledger,
            Err(e) if e.kind() == io::ErrorKind::NotFound => self.ledger = Ledger::default(),
            Err(e) => self.failed("read", &e),
        }
    }

    fn write(&mut self) {
        self.written = Some(Instant::now());
        match json_file::write(&self.path, &self.ledger) {
            Ok(()) => self.trouble = None,
            Err(e) => self.failed("write", &e),
        }
    }

    fn failed(&mut self, what: &str, e: &io::Error) {
        let why = format!(
            "cannot {what} {}, which remembers how much of their caps accesses have used: {e}: see \
             ledger in [usage]",
            self.path.display()
        );
        if self.trouble.as_ref() != Some(&why) {
            tracing::warn!("{why}");
        }
        self.trouble = Some(why);
    }
}

impl Usage {
    /// Returns how much of its cap an access has used.
    pub(crate) fn status(&self, access: &str, cap: &Cap) -> CapStatus {
        let state = lock(&self.0);
        let account = state.ledger.account(access);
        let since = account.map_or_else(|| month_of(today(), cap.reset_day), |a| a.since);
        let used_bytes = account.map_or(0, |a| a.bytes);
        CapStatus {
            monthly_bytes: cap.monthly,
            used_bytes,
            since: since.to_string(),
            until: next_month(since, cap.reset_day).to_string(),
            level: cap.level(used_bytes),
        }
    }

    /// Returns why the ledger is not kept.
    pub(crate) fn note(&self) -> Option<String> {
        lock(&self.0).trouble.clone()
    }

    /// Notes that accesses are used as configured again.
    pub(crate) fn released(&self) {
        lock(&self.0).held.clear();
    }

    /// Writes the ledger as it is.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.0);
        if state.written.is_some() {
            state.write();
        }
    }

    /// Takes what interfaces have counted; returns what has turned.
    fn count(
        &self,
        config: &Config,
        serving: &BTreeMap<String, BTreeSet<String>>,
        boot: &str,
    ) -> Vec<(Access, Cap, Turn)> {
        let mut state = lock(&self.0);
        state.open(&config.usage);
        let (counters, today) = (counters(), today());
        let mut all = Vec::new();
        for (access, cap) in capped(config) {
            let serving = serving.get(&access.name).cloned().unwrap_or_default();
            let of = (access.name.as_str(), cap);
            let turn = state.ledger.count(of, serving, &counters, (boot, today));
            all.extend(turn.map(|t| (access.clone(), *cap, t)));
        }
        let is_capped = |name: &str| capped(config).any(|(a, _)| a.name == name);
        state.ledger.keep(is_capped);
        let due = state.written.is_none_or(|t| t.elapsed() >= WRITE_EVERY);
        if due || !all.is_empty() {
            state.write();
        }
        all
    }

    /// Lists the accesses that are to be held and are not yet.
    fn to_hold(&self, config: &Config) -> Vec<(Access, Cap)> {
        let state = lock(&self.0);
        let reached = |name: &str, cap: &Cap| {
            let account = state.ledger.account(name);
            account.is_some_and(|a| cap.level(a.bytes) == CapLevel::Reached)
        };
        let all = capped(config);
        let all = all.filter(|(a, cap)| reached(&a.name, cap) && !state.held.contains(&a.name));
        all.map(|(a, cap)| (a.clone(), *cap)).collect()
    }
}

/// Lists the accesses that have caps.
fn capped(config: &Config) -> impl Iterator<Item = (&Access, &Cap)> {
    let all = config.accesses.iter();
    all.filter_map(|a| Some((a, a.cap.as_ref()?)))
}

/// Returns the day of the machine's own time.
fn today() -> Date {
    Zoned::now().date()
}

/// Reads the counters of all interfaces, both directions together.
fn counters() -> BTreeMap<String, Counter> {
    let all = interfaces::counters().into_iter();
    all.map(|(name, c)| {
        let bytes = c.received.saturating_add(c.sent);
        let index = c.index;
        (name, Counter { index, bytes })
    })
    .collect()
}

/// Follows what accesses carry, and has those be used otherwise whose month is used up, for ever.
pub(crate) async fn follow(daemon: Arc<Daemon>) -> DaemonError {
    if daemon.shared().role == Role::Proxy {
        return std::future::pending().await;
    }
    let boot = sysctl("kernel.random.boot_id").unwrap_or_default();
    let mut every = tokio::time::interval(EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        let config = daemon.config();
        if capped(&config).next().is_none() {
            continue;
        }
        let accesses = capped(&config).map(|(a, _)| a);
        let serving = interfaces::serving(&daemon, accesses).await;
        let usage = &daemon.shared().usage;
        for (access, cap, turn) in usage.count(&config, &serving, &boot) {
            if matches!(turn, Turn::Month(_)) {
                release(&daemon, &access).await;
            }
            let why = say(&cap, turn, &usage.status(&access.name, &cap));
            daemon
                .shared()
                .log(Some(access.name), EventKind::AccessCap { why });
        }
        for (access, cap) in usage.to_hold(&config) {
            hold(&daemon, &access, &cap).await;
        }
    }
}

/// Changes the use of an access until its month ends or somebody asks for another use.
async fn hold(daemon: &Daemon, access: &Access, cap: &Cap) {
    let name = &access.name;
    lock(&daemon.shared().usage.0).held.insert(name.clone());
    let change = match cap.at {
        AtCap::Warn => return,
        AtCap::Backup => AccessChange {
            backup: Some(true),
            ..AccessChange::default()
        },
        AtCap::Slow => AccessChange {
            limit: Some(access.limit.and(cap.limit())),
            ..AccessChange::default()
        },
        AtCap::Off => AccessChange {
            enabled: Some(false),
            ..AccessChange::default()
        },
    };
    if let Err(e) = daemon.change(name, change).await {
        tracing::warn!("access \"{name}\": its month is used up, and it is used as before: {e}");
    }
}

/// Restores the configured use of an access.
async fn release(daemon: &Daemon, access: &Access) {
    if !lock(&daemon.shared().usage.0).held.remove(&access.name) {
        return;
    }
    let slowed = access.cap.is_some_and(|cap| cap.at == AtCap::Slow);
    let change = AccessChange {
        backup: Some(access.backup),
        enabled: Some(true),
        limit: slowed.then_some(access.limit),
        ..AccessChange::default()
    };
    if let Err(e) = daemon.change(&access.name, change).await {
        tracing::warn!("access \"{}\": its month has begun anew: {e}", access.name);
    }
}

/// Says what has turned.
fn say(cap: &Cap, turn: Turn, status: &CapStatus) -> String {
    let of = megabytes(cap.monthly);
    let until = &status.until;
    match turn {
        Turn::Month(_) => format!("a new month has begun: it may carry {of} until {until}"),
        Turn::Level(level) => level_in_words(cap, level, status),
    }
}

/// Says how much is used, and what becomes of the access.
fn level_in_words(cap: &Cap, level: CapLevel, status: &CapStatus) -> String {
    let (of, until) = (megabytes(cap.monthly), &status.until);
    if level < CapLevel::Reached {
        let used = megabytes(status.used_bytes);
        return format!("{used} of its {of} until {until} are used");
    }
    let then = match cap.at {
        AtCap::Warn => "it is used as before",
        AtCap::Backup => "it is a backup",
        AtCap::Off => "it is off",
        AtCap::Slow => {
            let rate = cap.slow.map(|r| r.to_string()).unwrap_or_default();
            return format!(
                "its {of} of the month are used up: it carries {rate} each way at most until {until}"
            );
        }
    };
    format!("its {of} of the month are used up: {then} until {until}")
}

/// Returns a note on a cap of which little is left.
pub(crate) fn note(cap: &Cap, status: &CapStatus) -> Option<String> {
    let told = status.level > CapLevel::Below;
    told.then(|| level_in_words(cap, status.level, status))
}

fn megabytes(bytes: u64) -> String {
    match bytes as f64 / 1e9 {
        gb if gb >= 1.0 => format!("{gb:.1} GB"),
        gb => format!("{:.1} MB", gb * 1e3),
    }
}
