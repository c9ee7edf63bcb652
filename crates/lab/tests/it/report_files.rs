//! The files of a run: what is written is what is read, whatever it says, and
//! whatever goes wrong leaves what was there before.

use crate::synthetic;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use braid_core::stats::Percentiles;
use braid_lab::report::files::{self, FilesError, RunDir, RunFiles, to_json};
use braid_lab::summary::{CaseResult, EventRow, Host, Summary, TimelineRow};
use proptest::prelude::*;

const COMMAND: &str = "braid lab run static";

fn write(dir: &Path, f: &RunFiles) {
    let run = RunDir::create(dir, COMMAND).unwrap();
    run.write_scenario(&f.scenario).unwrap();
    let mut timeline = run.timeline().unwrap();
    for rows in f.timeline.chunks(7) {
        timeline.append(rows).unwrap();
    }
    run.events().unwrap().append(&f.events).unwrap();
    run.write_summary(&f.summary).unwrap();
}

#[test]
fn a_run_reads_back_as_it_was() {
    for f in [
        synthetic::bulk(2),
        synthetic::requests(),
        synthetic::interruption(3),
        synthetic::contention(),
        synthetic::followed(),
        synthetic::hostile(),
    ] {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), &f);
        assert_eq!(RunFiles::read(dir.path()).unwrap(), f);
    }
}

fn float() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("finite", |v| v.is_finite())
}

prop_compose! {
    fn timeline_row()(
        case in ".*", access in ".*", state in ".*", repeat in any::<u32>(), t_s in float(),
        bytes in any::<u64>(), queue_bytes in any::<u64>(), lost_packets in any::<u64>(),
        rtt_ms in proptest::option::of(float()), cwnd in any::<Option<u32>>(),
        pacing_mbps in proptest::option::of(float()), retransmits in any::<Option<u32>>(),
    )(
        weight in proptest::option::of(float()), busy in proptest::option::of(0.0..1.0f64),
        case in Just(case), access in Just(access), state in Just(state), repeat in Just(repeat),
        t_s in Just(t_s), bytes in Just(bytes), queue_bytes in Just(queue_bytes),
        lost_packets in Just(lost_packets), rtt_ms in Just(rtt_ms), cwnd in Just(cwnd),
        pacing_mbps in Just(pacing_mbps), retransmits in Just(retransmits),
    ) -> TimelineRow {
        #[allow(clippy::needless_update, reason = "a new column needs no line here")]
        TimelineRow { case, repeat, t_s, access, bytes, queue_bytes, lost_packets, rtt_ms, cwnd,
            pacing_mbps, retransmits, weight, state, busy, ..TimelineRow::default() }
    }
}

prop_compose! {
    fn event_row()(
        case in ".*", access in ".*", what in "(?s).*", repeat in any::<u32>(), t_s in float(),
    ) -> EventRow {
        EventRow { case, repeat, t_s, access, what }
    }
}

prop_compose! {
    fn case_result()(
        name in "(?s).*", notes in proptest::collection::vec(".*", 0..3), goodput in any::<f64>(),
        late in any::<f64>(), ceiling in proptest::option::of(any::<f64>()),
        share in proptest::collection::btree_map(".*", any::<f64>(), 0..4),
        latency in proptest::option::of(any::<[f64; 5]>()),
        cdf in proptest::collection::vec((any::<f64>(), any::<f64>()), 0..5),
        resent in any::<Option<u64>>(), failed in proptest::option::of(".*"),
    ) -> CaseResult {
        CaseResult {
            name, notes, failed,
            goodput_mbps: goodput,
            ceiling_mbps: ceiling,
            share,
            host: Host { late_wakes: 1, max_late_ms: late },
            latency_ms: latency.map(|[mean, p50, p90, p99, max]| Percentiles { mean, p50, p90, p99, max }),
            latency_cdf: cdf,
            retransmitted_bytes: resent,
            ..CaseResult::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_rows_round_trip(
        timeline in proptest::collection::vec(timeline_row(), 0..20),
        events in proptest::collection::vec(event_row(), 0..20),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let f = RunFiles { timeline, events, ..RunFiles::default() };
        write(dir.path(), &f);
        prop_assert_eq!(RunFiles::read(dir.path()).unwrap(), f);
    }

    /// Also with numbers that JSON cannot hold: what is read is then stable.
    #[test]
    fn any_summary_is_readable(cases in proptest::collection::vec(case_result(), 0..4)) {
        let s = Summary { cases, ..Summary::default() };
        let once: Summary = serde_json::from_str(&to_json(&s)).unwrap();
        let twice: Summary = serde_json::from_str(&to_json(&once)).unwrap();
        prop_assert_eq!(&once, &twice);
        for (a, b) in s.cases.iter().zip(&once.cases) {
            prop_assert_eq!(&a.name, &b.name);
            if a.goodput_mbps.is_finite() {
                prop_assert_eq!(a.goodput_mbps, b.goodput_mbps);
            }
        }
    }

    /// A crash may cut a file anywhere: all whole rows before it are read.
    #[test]
    fn a_cut_file_keeps_its_whole_rows(cut in 0usize..1500) {
        let dir = tempfile::tempdir().unwrap();
        let mut f = synthetic::bulk(1);
        f.timeline.truncate(15);
        write(dir.path(), &f);
        let path = dir.path().join(files::TIMELINE);
        let text = fs::read(&path).unwrap();
        let text = &text[..cut.min(text.len())];
        fs::write(&path, text).unwrap();
        let whole = text.iter().filter(|&&b| b == b'\n').count().saturating_sub(1);
        let got = RunFiles::read(dir.path()).unwrap();
        prop_assert_eq!(&got.timeline, &f.timeline[..whole]);
    }
}

#[test]
fn default_names_tell_scenario_and_time() {
    let t = SystemTime::UNIX_EPOCH + Duration::from_secs(1_769_860_862);
    assert_eq!(RunDir::default_name("static", t), "static-20260131T120102Z");
    assert_eq!(
        RunDir::default_name("../../etc/x y", t),
        "-..-etc-x-y-20260131T120102Z"
    );
    assert_eq!(files::rfc3339(t), "2026-01-31T12:01:02Z");
    let base = tempfile::tempdir().unwrap();
    let make = || RunDir::create_default(&base.path().join("out"), "static", t, COMMAND).unwrap();
    let (a, b) = (make(), make());
    assert!(a.path().ends_with("out/static-20260131T120102Z"));
    assert!(b.path().ends_with("out/static-20260131T120102Z-2"));
}

#[test]
fn journals_are_among_the_files_of_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(dir.path(), COMMAND).unwrap();
    let name = run.write_journal(2, "proxy", "{}\n").unwrap();
    assert_eq!(name, "journal-2-proxy.jsonl");
    run.write_journal(12, "device.old", "{}\n").unwrap();
    assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), "{}\n");
    drop(run);
    // The next run takes the folder over.
    drop(RunDir::create(dir.path(), COMMAND).unwrap());
    assert!(!dir.path().join("journal-12-device.old.jsonl").exists());
    for foreign in [
        "journal-mine.jsonl",
        "journal-1-mine.jsonl",
        "journal-2.jsonl",
    ] {
        fs::write(dir.path().join(foreign), "mine").unwrap();
        let e = RunDir::create(dir.path(), COMMAND).unwrap_err();
        assert!(
            matches!(&e, FilesError::Foreign { found, .. } if found == foreign),
            "{e}"
        );
        fs::remove_file(dir.path().join(foreign)).unwrap();
    }
}

#[test]
fn a_foreign_directory_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    // Even where the name is one of ours: nothing says that a run wrote it.
    for name in ["thesis.tex", "scenario.toml", "run.log"] {
        let file = dir.path().join(name);
        fs::write(&file, "mine").unwrap();
        let e = RunDir::create(dir.path(), COMMAND).unwrap_err();
        assert!(
            matches!(&e, FilesError::Foreign { found, .. } if found == name),
            "{e}"
        );
        assert_eq!(e.exit_status(), 2);
        assert!(e.to_string().contains("--out"), "{e}");
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
        fs::remove_file(&file).unwrap();
    }
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    for p in [file.clone(), file.join("below")] {
        let e = RunDir::create(&p, COMMAND).unwrap_err();
        assert!(matches!(e, FilesError::NotADirectory { .. }), "{e}");
    }
    // Not even root makes one there.
    let e = RunDir::create(Path::new("/proc/braid"), COMMAND).unwrap_err();
    assert!(matches!(e, FilesError::Unwritable { .. }), "{e}");
    assert_eq!(e.exit_status(), 2);
}

#[test]
fn an_earlier_run_gives_way_but_a_live_one_does_not() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &synthetic::bulk(1));
    let run = RunDir::create(dir.path(), COMMAND).unwrap();
    assert_eq!(listed(dir.path()), [".braid-earlier", files::LOG]);
    let e = RunDir::create(dir.path(), COMMAND).unwrap_err();
    assert!(matches!(e, FilesError::Busy { .. }), "{e}");
    run.log().unwrap().line("first\nsecond").unwrap();
    let log = fs::read_to_string(dir.path().join(files::LOG)).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    assert!(
        lines[0].starts_with("braid ") && lines[0].ends_with(COMMAND),
        "{log}"
    );
    assert!(
        lines[1].ends_with("  first") && lines[2].trim() == "second",
        "{log}"
    );
    drop(run);
    RunDir::create(dir.path(), COMMAND).unwrap();
}

/// Names in a directory, in order.
fn listed(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let name = |e: std::io::Result<fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

#[test]
fn an_earlier_run_stays_until_there_are_new_results() {
    let (dir, killed) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let written = synthetic::bulk(1);
    write(dir.path(), &written);
    let before = RunFiles::read(dir.path()).unwrap();
    let names = listed(dir.path());
    let read = |p: &Path| RunFiles::read(p).unwrap();

    // Stopped, with files begun, in its first case.
    let run = RunDir::create(dir.path(), "braid lab run other").unwrap();
    run.write_scenario("other").unwrap();
    drop(run.timeline().unwrap());
    // What a kill at this moment leaves.
    let aside = killed.path().join(".braid-earlier");
    fs::create_dir(&aside).unwrap();
    for (from, to) in [
        (dir.path(), killed.path()),
        (&dir.path().join(".braid-earlier"), &aside),
    ] {
        for name in listed(from).iter().filter(|n| *n != ".braid-earlier") {
            fs::copy(from.join(name), to.join(name)).unwrap();
        }
    }
    drop(run);
    assert_eq!(
        (read(dir.path()), listed(dir.path())),
        (before.clone(), names.clone())
    );
    drop(RunDir::create(killed.path(), COMMAND).unwrap());
    assert_eq!(
        (read(killed.path()), listed(killed.path())),
        (before, names)
    );

    // One case that is measured is enough.
    let other = synthetic::interruption(3);
    let run = RunDir::create(dir.path(), COMMAND).unwrap();
    run.write_summary(&other.summary).unwrap();
    drop(run);
    assert_eq!(read(dir.path()).summary, other.summary);
    assert!(!dir.path().join(".braid-earlier").exists());
}

#[test]
fn what_is_no_run_is_said_so() {
    let dir = tempfile::tempdir().unwrap();
    let why = |p: &Path| {
        let e = RunFiles::read(p).unwrap_err();
        assert_eq!(e.exit_status(), 2);
        e.to_string()
    };
    assert!(why(&dir.path().join("no")).contains("no such directory"));
    assert!(why(dir.path()).contains("summary.json"));
    RunDir::create(dir.path(), COMMAND).unwrap();
    assert!(why(dir.path()).contains("run.log"));
    fs::write(dir.path().join(files::SUMMARY), "{\n\"scenario\": 1}").unwrap();
    assert!(
        why(dir.path()).contains("summary.json:2: "),
        "{}",
        why(dir.path())
    );
    write(dir.path(), &synthetic::requests());
    let path = dir.path().join(files::EVENTS);
    fs::write(
        &path,
        "case,repeat,t_s,access,what\na,1,zero,b,c\na,1,1,b,c\n",
    )
    .unwrap();
    assert!(
        why(dir.path()).contains("events.csv:2: "),
        "{}",
        why(dir.path())
    );
    for name in [files::EVENTS, files::TIMELINE, files::SCENARIO] {
        fs::remove_file(dir.path().join(name)).unwrap();
    }
    assert_eq!(RunFiles::read(dir.path()).unwrap().warnings.len(), 3);
}

/// Runs `test` of this file in a process of its own whose files may not grow
/// past `kilobytes`.
fn limited(test: &str, kilobytes: u32) {
    let exe = std::env::current_exe().unwrap();
    // `trap '' XFSZ`: the write fails instead of killing the process.
    let script = format!(
        "trap '' XFSZ; ulimit -f {kilobytes}; exec \"$0\" --exact {test} --ignored --nocapture"
    );
    let out = Command::new("bash")
        .arg("-c")
        .arg(script)
        .arg(exe)
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stdout)
    );
    assert!(String::from_utf8_lossy(&out.stdout).contains("1 passed"));
}

#[test]
fn a_file_that_cannot_grow_keeps_whole_rows() {
    limited("report_files::in_a_limited_process", 8);
}

#[test]
#[ignore = "run by a_file_that_cannot_grow_keeps_whole_rows under its limit"]
fn in_a_limited_process() {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(dir.path(), COMMAND).unwrap();
    let mut f = synthetic::bulk(1);
    f.summary.cases.truncate(1);
    f.summary.paper.clear();
    run.write_summary(&f.summary).unwrap();
    let mut timeline = run.timeline().unwrap();
    let mut written = 0;
    let e = loop {
        match timeline.append(&f.timeline[written..written + 5]) {
            Ok(()) => written += 5,
            Err(e) => break e,
        }
    };
    check_full(&e, files::TIMELINE);
    assert!(written > 20, "{written}");
    // The whole summary does not fit: the old one stays.
    let e = run.write_summary(&synthetic::bulk(9).summary).unwrap_err();
    check_full(&e, files::SUMMARY);
    let got = RunFiles::read(dir.path()).unwrap();
    assert_eq!(got.timeline, f.timeline[..written]);
    assert_eq!(got.summary, f.summary);
    assert!(
        !fs::read_dir(dir.path()).unwrap().any(|e| e
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with('.'))
    );
}

fn check_full(e: &FilesError, file: &str) {
    assert!(matches!(e, FilesError::Full { .. }), "{e}");
    assert_eq!(e.exit_status(), 1);
    let text = e.to_string();
    for part in [file, "free", "kept", "--out"] {
        assert!(text.contains(part), "{text}");
    }
}

/// Checks whole rows on a file system that is really full; needs the right to mount.
#[test]
fn a_full_disk_keeps_whole_rows() {
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_owned();
    // A thread of its own, so that the mount is seen by nobody else.
    let done = std::thread::spawn(move || {
        let none = None::<&str>;
        let mounted = unshare(CloneFlags::CLONE_FS | CloneFlags::CLONE_NEWNS)
            .and_then(|()| mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none))
            .and_then(|()| {
                mount(
                    Some("full"),
                    &at,
                    Some("tmpfs"),
                    MsFlags::empty(),
                    Some("size=64k"),
                )
            });
        if let Err(e) = mounted {
            println!("skipped: cannot mount a small file system here: {e}");
            return;
        }
        let run = RunDir::create(&at, COMMAND).unwrap();
        let f = synthetic::bulk(1);
        let mut timeline = run.timeline().unwrap();
        let mut written = 0;
        let e = loop {
            match timeline.append(&f.timeline[written..written + 50]) {
                Ok(()) => written += 50,
                Err(e) => break e,
            }
        };
        check_full(&e, files::TIMELINE);
        assert!(
            e.to_string().contains("no space is left on the disk"),
            "{e}"
        );
        let e = run.write_summary(&f.summary).unwrap_err();
        check_full(&e, files::SUMMARY);
        // Room appears, and the run goes on where it was.
        drop(timeline);
        let kept = fs::read_to_string(at.join(files::TIMELINE)).unwrap();
        assert_eq!(kept.lines().count(), written + 1);
        assert!(kept.ends_with('\n'));
    });
    done.join().unwrap();
}
