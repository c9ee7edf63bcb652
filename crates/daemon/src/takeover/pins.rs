//! Saved state of a killed end, with which the next one goes on: weights by eBPF, which are
//! pinned, and a note beside them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use braid_api::{Role, SchedulerChange};
use braid_mptcp::offer::is_registered;
use braid_mptcp::support::{self, Support};
use nix::libc;
use serde::{Deserialize, Serialize};

use crate::DaemonError;
use crate::config::Config;
use crate::ebpf::{NOTE_MAX, Pins, Wrr, notes, orphans};

pub(crate) use support::CONGESTION_CONTROL as DEFAULT;

/// Congestion controls that kernels are built with.
const BUILT_IN: [&str; 2] = ["cubic", "reno"];
/// How long a congestion control may stay registered whose pins are gone.
const GOES: Duration = Duration::from_secs(1);
/// How often another name is tried where one is taken.
const NAMES: u8 = 8;
/// Count of the numbers in names: one hexadecimal digit, since names have 15 letters at most.
const NUMBERS: u8 = 16;

/// Weights by access.
pub(crate) type ByName = BTreeMap<String, f64>;

/// Returns the accesses that are left out: their weight is 0.
pub(crate) fn without(weights: &ByName) -> Vec<&str> {
    let none = weights.iter().filter(|(_, w)| **w == 0.0);
    none.map(|(name, _)| name.as_str()).collect()
}

/// Scheduling as the configuration file has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Configured {
    scheduler: Option<SchedulerChange>,
    weights: ByName,
}

impl Configured {
    pub(crate) fn of(config: &Config) -> Self {
        let weight = |a: &crate::Access| Some((a.name.clone(), a.weight?));
        let file = config.accesses.iter().filter(|a| a.registered.is_none());
        Self {
            scheduler: config.scheduler.clone(),
            weights: file.filter_map(weight).collect(),
        }
    }
}

/// The weights that are in force, and the file that was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    /// Weights of all connections, by access.
    pub(crate) weights: ByName,
    /// Weights of single connections, by token.
    pub(crate) connections: BTreeMap<u32, ByName>,
    pub(crate) configured: Configured,
}

/// Note that is left beside the pins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Note {
    /// The default congestion control of the namespace before the first end.
    pub(crate) before: String,
    /// The scheduler was asked for as `rr`.
    pub(crate) rr: bool,
    pub(crate) kept: Kept,
}

impl Note {
    pub(crate) fn read(text: &[u8]) -> Option<Self> {
        let note: Self = serde_json::from_slice(text).ok()?;
        let fine = {
            let mut weights = note.kept.connections.values().chain([&note.kept.weights]);
            weights.all(|w| w.values().all(|w| w.is_finite() && *w >= 0.0))
        };
        let letter = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let fine = fine && !is_registered(&note.before);
        let named = !note.before.is_empty() && note.before.chars().all(letter);
        (fine && named).then_some(note)
    }

    /// As text; `None` where it is too long.
    pub(crate) fn write(&self) -> Option<Vec<u8>> {
        let text = serde_json::to_vec(self).ok()?;
        (text.len() <= NOTE_MAX).then_some(text)
    }
}

/// The place of this end's pins, in a word.
pub(crate) const fn owner(role: Role) -> &'static str {
    match role {
        Role::Device => "up",
        Role::Proxy => "proxy",
    }
}

/// The place of the pins of this end's congestion control, in a word.
pub(crate) const fn congestion_owner(role: Role) -> &'static str {
    match role {
        Role::Device => "upcc",
        Role::Proxy => "proxycc",
    }
}

/// Takes away what killed ends have left in network namespaces that are gone. It says what,
/// and what stays though it may be such.
pub(crate) fn sweep() {
    let all = match orphans() {
        Ok(all) => all,
        Err(e) => return tracing::warn!("{e}"),
    };
    for orphan in all {
        match orphan.remove() {
            Ok(()) => tracing::info!(
                "took away {}, which a killed daemon had left in a network namespace that \
                 is gone",
                orphan.directory().display()
            ),
            Err(e) => tracing::warn!("{e}"),
        }
    }
}

/// State of a killed end to go on with, if any.
pub(crate) enum Left {
    Nothing,
    /// Weights as they were.
    Whole(Box<(Wrr, Note)>),
    /// Not what we could go on with: why, and what is known of it.
    Refused(String, Option<Note>),
}

/// Looks for what an end of this role has left in this namespace. It is taken away
/// if `wanted` does not hold.
pub(crate) fn left(role: Role, wanted: bool) -> Left {
    let pins = match Pins::left(owner(role)) {
        Ok(Some(pins)) => pins,
        // A living one's is not left. Whoever wants the place is told.
        Ok(None) | Err(_) => return Left::Nothing,
    };
    let known = notes(&pins).iter().find_map(|n| Note::read(n));
    if !wanted {
        let why = format!("{} is not wanted any more", pins.directory().display());
        return Left::Refused(why, known);
    }
    match Wrr::adopt(pins) {
        Ok((wrr, note)) => match Note::read(&note) {
            Some(note) => Left::Whole(Box::new((wrr, note))),
            None => Left::Refused(
                "the note beside the pins is not what Braid writes".into(),
                known,
            ),
        },
        Err(e) => Left::Refused(e.to_string(), known),
    }
}

/// Each end has its own, with weights of its own. Plain TCP gets `plain`.
pub(crate) fn register(plain: &str) -> Result<Wrr, DaemonError> {
    under_free_name("wrr", |name| Wrr::register(name, plain))
}

/// Registers by a name that begins with `prefix` and that no other process of the machine has.
pub(crate) fn under_free_name<T>(
    prefix: &str,
    register: impl Fn(&str) -> braid_mptcp::Result<T>,
) -> Result<T, DaemonError> {
    static NUMBER: AtomicU8 = AtomicU8::new(0);
    let mut tries = 0;
    loop {
        tries += 1;
        let number = NUMBER.fetch_add(1, Ordering::Relaxed) % NUMBERS;
        match register(&format!("{prefix}_{:x}_{number:x}", std::process::id())) {
            // Process ids come again, in containers above all.
            Err(e) if e.raw_os_error() == Some(libc::EEXIST) && tries < NAMES => {}
            done => return Ok(done?),
        }
    }
}

/// The namespace's default congestion control; where that is an end's, the kernel's own.
pub(crate) fn default_of_the_kernel() -> String {
    let support = Support::detect();
    let has = |name: &&str| support.require_congestion_control(name).is_ok();
    match is_registered(&support.default_congestion_control) {
        true => BUILT_IN.into_iter().find(has).unwrap_or("reno").into(),
        false => support.default_congestion_control,
    }
}

/// Gives the namespace its default congestion control back, which was `before` if that is
/// known, where an end that was killed left its own; `unpinned`: its pins have just been taken
/// away, or may have been.
pub(crate) fn restore(before: Option<&str>, unpinned: bool) -> Result<(), DaemonError> {
    // The kernel takes it away a little later.
    let until = Instant::now() + if unpinned { GOES } else { Duration::ZERO };
    loop {
        let support = Support::detect();
        let now = &support.default_congestion_control;
        if !is_registered(now) {
            return Ok(());
        }
        if support.require_congestion_control(now).is_err() {
            break;
        }
        // A living end's.
        if Instant::now() >= until {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    for name in before.into_iter().chain(BUILT_IN) {
        if support::set_sysctl(DEFAULT, name).is_ok() {
            return Ok(());
        }
    }
    Err(DaemonError::Failed(format!(
        "give the network namespace its congestion control back ({DEFAULT}): the kernel has \
         neither cubic nor reno"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn weights() -> impl Strategy<Value = ByName> {
        prop::collection::btree_map("[a-z]{1,9}", 0.0f64..1e6, 0..9)
    }

    proptest! {
        #[test]
        fn a_note_is_read_back(
            general in weights(), own in prop::collection::btree_map(any::<u32>(), weights(), 0..9),
            rr: bool, before in "[a-z]{3,9}",
        ) {
            let note = Note {
                before,
                rr,
                kept: Kept {
                    weights: general.clone(),
                    connections: own,
                    configured: Configured { scheduler: None, weights: general },
                },
            };
            prop_assert_eq!(Note::read(&note.write().unwrap()), Some(note));
        }

        #[test]
        fn garbage_is_no_note(text in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(Note::read(&text), None);
        }
    }

    #[test]
    fn a_note_that_lies_is_none() {
        let good = Note {
            before: "cubic".into(),
            ..Note::default()
        };
        let text = String::from_utf8(good.write().unwrap()).unwrap();
        assert_eq!(Note::read(text.as_bytes()), Some(good));
        for (part, lie) in [
            ("\"cubic\"", "\"wrr_1_0\""),
            ("\"cubic\"", "\"../cubic\""),
            ("\"cubic\"", "\"\""),
            ("\"weights\":{}", "\"weights\":{\"a\":-1}"),
            ("\"rr\"", "\"rs\""),
        ] {
            let lie = text.replacen(part, lie, 1);
            assert_ne!(lie, text);
            assert_eq!(Note::read(lie.as_bytes()), None, "{lie}");
        }
    }
}
