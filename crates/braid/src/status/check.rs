//! `braid status --check`: one line and an exit status for monitoring, as plugins of Nagios have
//! them.

use std::io;

use braid_api::client::Error;

use super::view::{AccessView, View};

/// Verdict on a daemon; its number is the exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    Ok = 0,
    Warning = 1,
    Critical = 2,
    Unknown = 3,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warning => "WARNING",
            Self::Critical => "CRITICAL",
            Self::Unknown => "UNKNOWN",
        }
    }
}

/// Returns the line of a verdict; line feeds and `|`, behind which monitors look for figures, are
/// replaced.
pub(super) fn line(level: Level, text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let text = lines.join("; ").replace('|', "/");
    format!("BRAID {} - {text}\n", level.word())
}

/// Returns the verdict on a daemon that does not answer: one that may not be asked may be well.
pub(super) fn unanswered(e: &Error) -> Level {
    match e {
        Error::Unreachable { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            Level::Unknown
        }
        _ => Level::Critical,
    }
}

/// Judges the state of a daemon.
pub(super) fn judge(view: &View) -> (Level, String) {
    let at_proxy = view.role == "proxy";
    // What a request has switched off is meant so.
    let wanted = view
        .accesses
        .iter()
        .filter(|a| a.enabled != Some(false) || a.state().0 != "ignored");
    let wanted: Vec<&AccessView> = wanted.collect();
    let fine = |a: &&&AccessView| match a.state().0 {
        "active" | "backup" => true,
        // A proxy waits for devices.
        "init" | "down" => at_proxy,
        _ => false,
    };
    let good = wanted.iter().filter(fine).count();
    let bad: Vec<String> = wanted
        .iter()
        .filter(|a| !fine(a))
        .map(|a| match a.state() {
            (state, Some(why)) => format!("{} {state} ({why})", a.name),
            (state, None) => format!("{} {state}", a.name),
        })
        .collect();
    let lacks = view.proxy_unreachable.iter().cloned();
    let file = view.config_error.iter();
    let lacks = lacks.chain(file.map(|e| format!("not all of the configuration is in force: {e}")));
    let lacks: Vec<String> = lacks.chain(bad).collect();
    let level = match (good, lacks.is_empty()) {
        (_, true) => Level::Ok,
        (0, false) if !wanted.is_empty() && !at_proxy => Level::Critical,
        (_, false) => Level::Warning,
    };
    let mut text = match at_proxy {
        true => format!("proxy, {good} of {} accesses without fault", wanted.len()),
        false => format!("{good} of {} accesses work", wanted.len()),
    };
    for lack in lacks {
        text += &format!("; {lack}");
    }
    (level, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(role: &str, states: &[&str], more: &str) -> (Level, String) {
        let access = |(n, s): (usize, &&str)| {
            format!(
                "{{\"name\": \"a{n}\", \"state\": \"{s}\", \"why\": \"so\", \"backup\": {}}}",
                *s == "backup"
            )
        };
        let all: Vec<String> = states.iter().enumerate().map(access).collect();
        let json = format!(
            "{{\"role\": \"{role}\", \"accesses\": [{}]{more}}}",
            all.join(", ")
        );
        judge(&serde_json::from_str(&json).unwrap())
    }

    #[test]
    fn a_device_is_judged_by_its_accesses() {
        let of = |states: &[&str]| judged("device", states, "");
        let all = of(&["active", "active", "backup"]);
        assert_eq!(all, (Level::Ok, "3 of 3 accesses work".into()));
        let one = of(&["active", "silent"]);
        assert_eq!(
            one,
            (
                Level::Warning,
                "1 of 2 accesses work; a1 silent (so)".into()
            )
        );
        assert_eq!(of(&["active", "init"]).0, Level::Warning);
        assert_eq!(of(&["init", "silent"]).0, Level::Critical);
        assert_eq!(of(&[]).0, Level::Ok);
    }

    #[test]
    fn what_is_switched_off_by_a_request_is_no_fault() {
        let json = |enabled| {
            format!(
                "{{\"role\": \"device\", \"accesses\": [{{\"name\": \"nr\", \"state\": \"active\"}}, \
                 {{\"name\": \"lte\", \"state\": \"ignored\", \"enabled\": {enabled}}}]}}"
            )
        };
        let of = |enabled| judge(&serde_json::from_str(&json(enabled)).unwrap()).0;
        assert_eq!(of(false), Level::Ok);
        assert_eq!(of(true), Level::Warning, "the kernel refused it");
    }

    #[test]
    fn a_proxy_that_does_not_answer_is_worse_where_nothing_works() {
        let why = ", \"proxy_unreachable\": \"it does not answer\"";
        let (level, text) = judged("device", &["active"], why);
        assert_eq!(level, Level::Warning);
        assert!(text.contains("it does not answer"), "{text}");
        assert_eq!(judged("device", &["init", "init"], why).0, Level::Critical);
        let error = ", \"config_error\": \"braid.toml:1:1: no\"";
        assert_eq!(judged("device", &["active"], error).0, Level::Warning);
    }

    #[test]
    fn a_proxy_waits_for_devices() {
        assert_eq!(
            judged("proxy", &["init", "active", "down"], "").0,
            Level::Ok
        );
        assert_eq!(judged("proxy", &["silent"], "").0, Level::Warning);
        assert_eq!(judged("proxy", &[], "").0, Level::Ok);
    }

    #[test]
    fn a_line_is_one_line_without_figures() {
        let said = line(Level::Critical, "no daemon\n  start one | or not\n");
        assert_eq!(said, "BRAID CRITICAL - no daemon; start one / or not\n");
    }
}
