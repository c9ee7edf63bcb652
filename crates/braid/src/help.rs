//! Text under the options in `--help`: examples, the page, the exit status.

use clap::Command;

const STATUS: &str = "0 done, 1 failed, 2 bad usage or file, 3 the machine lacks something, \
                      130 interrupted";

/// Exit status of the commands that have one of their own.
const OWN_STATUS: [(&str, &str); 3] = [
    (
        "run",
        "that of the program; 2 bad usage, 3 the machine lacks something",
    ),
    (
        "status",
        "0 done, 1 failed, 2 bad usage, 130 interrupted; with --check 0 all is well, 1 something \
         is wrong, 2 nothing works or no daemon answers, 3 it may not be asked",
    ),
    (
        "doctor",
        "0 Braid can work here, 1 the result cannot be written, 2 bad usage, 3 there is no MPTCP",
    ),
];

/// Command, examples, page.
const EXAMPLES: [(&str, &[&str], &str); 23] = [
    (
        "lab",
        &["braid lab list", "braid lab run static"],
        "docs/scenario.md",
    ),
    ("lab list", &["braid lab list"], "docs/scenario.md"),
    (
        "lab run",
        &[
            "braid lab run static",
            "braid lab run mine.toml --repeat 3 --only MPTCP",
            "braid lab run --print static > mine.toml",
            "braid lab run --check mine.toml",
        ],
        "docs/scenario.md",
    ),
    (
        "lab campaign",
        &[
            "braid lab campaign loss.toml",
            "braid lab campaign loss.toml --collect",
        ],
        "docs/campaign.md",
    ),
    (
        "lab report",
        &["braid lab report out/mine-20260131T120102Z"],
        "docs/report.md",
    ),
    (
        "trace",
        &["braid trace info walk.csv"],
        "docs/traces.md, docs/signals.md",
    ),
    (
        "trace import",
        &["braid trace import cell.mahimahi --out cell.csv"],
        "docs/traces.md",
    ),
    (
        "trace info",
        &["braid trace info walk.csv"],
        "docs/traces.md",
    ),
    (
        "trace plot",
        &["braid trace plot walk.csv --out walk.png"],
        "docs/traces.md",
    ),
    (
        "trace drive",
        &["braid trace drive --seed 1 --out drive.csv"],
        "docs/signals.md",
    ),
    (
        "trace cells",
        &["braid trace cells drive.csv --out cells.png"],
        "docs/signals.md",
    ),
    (
        "trace capacity",
        &["braid trace capacity drive.csv --per carrier --out capacity.csv"],
        "docs/signals.md",
    ),
    (
        "trace plan",
        &["braid trace plan drive.csv --segment road --length \"10 min\" --out plans"],
        "docs/signals.md",
    ),
    (
        "up",
        &["braid up --check", "systemctl enable --now braid"],
        "docs/daemon.md",
    ),
    (
        "proxy",
        &["braid proxy --check", "systemctl enable --now braid-proxy"],
        "docs/daemon.md",
    ),
    (
        "run",
        &["braid run -- iperf3 -c 203.0.113.7 -R"],
        "docs/run.md",
    ),
    (
        "status",
        &[
            "braid status",
            "braid status --watch --connections",
            "braid status --check",
        ],
        "docs/status.md",
    ),
    (
        "events",
        &["braid events", "braid events --follow --json"],
        "docs/status.md",
    ),
    (
        "set",
        &[
            "braid set weights nr=30 wifi=100",
            "braid set weights --down nr=4 wifi=1",
            "braid set backup lifi on",
            "braid set scheduler wrr --mode strict",
        ],
        "docs/status.md",
    ),
    (
        "rules",
        &[
            "braid rules",
            "braid rules --watch",
            "braid rules test --dst 203.0.113.9 --protocol udp --port 443",
        ],
        "docs/rules.md",
    ),
    (
        "rules test",
        &["braid rules test --dst 203.0.113.9 --protocol udp --port 443 --client 192.168.1.7"],
        "docs/rules.md",
    ),
    (
        "replay",
        &[
            "braid replay journal.jsonl",
            "braid replay journal.jsonl --policy static --policy capacity",
        ],
        "docs/internals/control.md",
    ),
    ("down", &["braid down"], "docs/lan.md"),
];

/// Gives `command` and everything below it the text of its name; `above` is that of the
/// commands above it, empty for the program.
pub(crate) fn described(command: Command, above: &str) -> Command {
    let below: Vec<String> = command
        .get_subcommands()
        .filter(|c| !c.is_hide_set())
        .map(|c| c.get_name().to_owned())
        .collect();
    let mut command = command.after_help(text(above));
    for name in below {
        let path = format!("{above} {name}");
        command = command.mut_subcommand(name, |c| described(c, path.trim()));
    }
    command
}

fn text(path: &str) -> String {
    let mut text = String::new();
    if let Some((_, examples, page)) = EXAMPLES.iter().find(|(name, ..)| *name == path) {
        text += &format!("Examples:\n  {}\n\nMore: {page}\n", examples.join("\n  "));
    }
    let own = OWN_STATUS.iter().find(|(name, _)| *name == path);
    text + &format!("Exit status: {}", own.map_or(STATUS, |(_, status)| status))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::{CommandFactory, FromArgMatches};

    use super::*;
    use crate::Cli;

    #[test]
    fn every_command_says_its_exit_status() {
        fn check(command: &mut Command) {
            let help = command.render_help().to_string();
            assert!(help.contains("Exit status: "), "{help}");
            let below = command.get_subcommands_mut();
            for c in below.filter(|c| !c.is_hide_set() && c.get_name() != "help") {
                check(c);
            }
        }
        check(&mut described(Cli::command(), ""));
    }

    #[test]
    fn examples_are_understood_and_pages_exist() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (name, examples, pages) in EXAMPLES {
            let mut command = &described(Cli::command(), "");
            for part in name.split(' ') {
                command = command.find_subcommand(part).expect(name);
            }
            for example in examples.iter().filter(|e| e.starts_with("braid ")) {
                let words = example.replace('"', "");
                let words = words.split(" > ").next().unwrap_or_default();
                let words = words.replace("10 min", "10min");
                let given = Cli::command().try_get_matches_from(words.split(' '));
                let read = given.and_then(|m| Cli::from_arg_matches(&m));
                assert!(read.is_ok(), "{example}: {}", read.unwrap_err());
            }
            for page in pages.split(", ") {
                assert!(root.join(page).is_file(), "{page}");
            }
        }
    }
}
