use std::fs;
use std::path::Path;

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
pub(super) struct Cli {
    #[command(subcommand)]
    command: TraceCommand,
}

pub(super) fn go(args: &[&str]) -> Result<(), Failure> {
    let words = std::iter::once("trace").chain(args.iter().copied());
    execute(&Cli::parse_from(words).command)
}

/// Exit status of `braid trace ARGS`.
pub(super) fn status(args: &[&str]) -> u8 {
    go(args).map_or_else(|f| f.status(), |()| 0)
}

/// The message that `braid trace ARGS` fails with.
pub(super) fn message(args: &[&str]) -> String {
    go(args).unwrap_err().to_string()
}

pub(super) fn file(dir: &Path, name: &str, content: &str) -> String {
    let path = dir.join(name);
    fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn imports_with_provenance_and_does_not_overwrite() {
    let dir = tempfile::tempdir().unwrap();
    let source = file(
        dir.path(),
        "5g_trace_1",
        "1.0\t361\t32.0\n2.0\t703\t-\n2.0 703 -\n",
    );
    let out = dir.path().join("drive.csv");
    let out = out.to_str().unwrap();
    let import = ["import", &source, "--column", "lte=four", "--out", out];
    assert_eq!(status(&import), 0);
    let text = fs::read_to_string(out).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("# imported from 5g_trace_1 (5G and 4G measured together) by braid")
    );
    assert!(
        text.contains("# 1 repeated sample (line 3): dropped"),
        "{text}"
    );
    assert_eq!(lines[lines.len() - 3..], ["t_s,four_mbps", "0,32", "1,32"]);

    assert!(message(&import).contains("exists"), "{}", message(&import));
    assert_eq!(status(&import), 2);
    fs::write(out, "mine").unwrap();
    assert_eq!(status(&import), 2);
    assert_eq!(fs::read_to_string(out).unwrap(), "mine");
    let forced = [&import[..], &["--force"]].concat();
    assert_eq!(status(&forced), 0);
    assert_eq!(fs::read_to_string(out).unwrap(), text);
    // Never what is read, not even by force.
    assert_eq!(status(&["import", out, "--out", out, "--force"]), 2);
    assert_eq!(fs::read_to_string(out).unwrap(), text);
}

#[test]
fn imports_to_and_from_mahimahi() {
    let dir = tempfile::tempdir().unwrap();
    let source = file(
        dir.path(),
        "a.csv",
        "t_s,nr_mbps,lte_mbps\n0,12,1\n1,0,1\n2,24,1\n",
    );
    let up = dir.path().join("a.up");
    let up = up.to_str().unwrap();
    let e = message(&["import", &source, "--to", "mahimahi", "--out", up]);
    assert!(e.contains("nr, lte") && e.contains("--column"), "{e}");
    assert_eq!(
        status(&[
            "import", &source, "--to", "mahimahi", "--column", "nr", "--out", up
        ]),
        0
    );
    // 1000 packets in the first second, none in the next, 2000 in the last.
    let lines: Vec<u64> = fs::read_to_string(up)
        .unwrap()
        .lines()
        .map(|l| l.parse().unwrap())
        .collect();
    let (first, last) = lines.split_at(1000);
    assert!(first.iter().copied().eq(1..=1000) && last.len() == 2000 && last[0] == 2001);
    let back = dir.path().join("back.csv");
    let back = back.to_str().unwrap();
    assert_eq!(
        status(&[
            "import", up, "--step", "1 s", "--column", "link=nr", "--out", back
        ]),
        0
    );
    let text = fs::read_to_string(back).unwrap();
    assert!(text.contains("# means over 1 s\nt_s,nr_mbps\n"), "{text}");
    // Packets of a millisecond's end count to the window that begins there.
    assert!(text.ends_with("0,11.988\n1,0.012\n2,24\n"), "{text}");
}

#[test]
fn parts_and_bad_requests() {
    let dir = tempfile::tempdir().unwrap();
    let source = file(dir.path(), "a.csv", "0,12\n1,0\n2,24\n");
    let out = dir.path().join("b.csv");
    let out = out.to_str().unwrap();
    assert_eq!(
        status(&[
            "import", &source, "--start", "1 s", "--length", "1 s", "--out", out
        ]),
        0
    );
    assert!(
        fs::read_to_string(out)
            .unwrap()
            .ends_with("t_s,link1_mbps\n0,0\n")
    );
    for (args, says) in [
        (
            &["--start", "9 s"][..],
            "nothing of the trace is left: it is 3.000 s long",
        ),
        (&["--step", "0 s"], "too short"),
        (&["--column", "nr"], "expected one of link1"),
        (&["--column", "link1=a b"], "cannot name a column"),
        (
            &["--column", "link1", "--column", "link1"],
            "two columns named",
        ),
        (&["--format", "paired"], "a.csv:1:"),
    ] {
        let all = [&["import", &source, "--out", out, "--force"], args].concat();
        assert!(message(&all).contains(says), "{args:?}: {}", message(&all));
        assert_eq!(status(&all), 2);
    }
    // A full disk; the device is written to, never replaced.
    let full = ["import", &source, "--out", "/dev/full", "--force"];
    assert_eq!(status(&full), 1);
    assert_eq!(status(&["import", &source, "--out", "/dev/full"]), 2);
    assert!(
        message(&full).contains("cannot write /dev/full: No space left"),
        "{}",
        message(&full)
    );
}

#[test]
fn a_table_with_columns_of_its_own_is_mapped() {
    let dir = tempfile::tempdir().unwrap();
    let table = "when;DL;rtt/2 [ms];lost %\n\
                 2026-01-31T12:01:02Z;300500,5;12;0\n\
                 2026-01-31T12:01:03Z;90000;15,5;2\n";
    let source = file(dir.path(), "modem.log", table);
    let out = dir.path().join("nr.csv");
    let out = out.to_str().unwrap();
    let map = [
        "import",
        &source,
        "--time",
        "when",
        "--rate",
        "DL=nr",
        "--unit",
        "kbit/s",
        "--delay",
        "rtt/2 [ms]=nr",
        "--loss",
        "lost %=nr",
        "--loss-unit",
        "%",
        "--out",
        out,
    ];
    go(&map).unwrap();
    let text = fs::read_to_string(out).unwrap();
    let lines: Vec<&str> = text.lines().filter(|l| !l.starts_with('#')).collect();
    let expected = [
        "t_s,nr_mbps,nr_ms,nr_loss",
        "0,300.5005,12,0",
        "1,90,15.5,0.02",
    ];
    assert_eq!(lines, expected);
    // It is read back as any trace of rates.
    assert_eq!(status(&["info", out]), 0);
    for (wrong, says) in [
        (&["--time", "when"][..], "--rate, --delay or --loss"),
        (&["--time", "wann", "--rate", "DL"], "no column \"wann\""),
        (
            &["--time", "when", "--rate", "DL", "--format", "csv"],
            "--format",
        ),
    ] {
        let args = [&["import", &source][..], wrong].concat();
        assert_eq!(status(&args), 2);
        assert!(message(&args).contains(says), "{}", message(&args));
    }
    let unmapped = message(&["import", &source, "--format", "csv"]);
    assert!(
        unmapped.contains("braid trace import FILE --time COLUMN"),
        "{unmapped}"
    );
}

#[test]
fn bad_input_names_file_and_line() {
    let dir = tempfile::tempdir().unwrap();
    let bad = file(dir.path(), "bad.csv", "t_s,nr_mbps\n0,1\n1,fast\n");
    for command in ["import", "info", "plot"] {
        assert_eq!(status(&[command, &bad]), 2);
        let m = message(&[command, &bad]);
        assert_eq!(
            m,
            format!("{bad}:3: \"fast\" is not a rate: expected Mbit/s, 0 to 1000000")
        );
        assert_eq!(status(&[command, "/nonexistent/trace"]), 2);
    }
    assert!(Cli::try_parse_from(["trace", "info", &bad, "--format", "pcap"]).is_err());
    assert_eq!(status(&["info", &bad, "--outage-below", "NaN"]), 2);
}

#[test]
fn describes_and_draws() {
    let dir = tempfile::tempdir().unwrap();
    let source = file(dir.path(), "a.csv", "t_s,nr_mbps\n0,12\n1,0\n2,24\n");
    assert_eq!(status(&["info", &source]), 0);
    assert_eq!(status(&["info", &source, "--json"]), 0);
    let out = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    assert_eq!(
        status(&[
            "plot",
            &source,
            "--width",
            "400",
            "--height",
            "240",
            "--out",
            &out("a.png")
        ]),
        0
    );
    assert_eq!(status(&["plot", &source, "--out", &out("a.SVG")]), 0);
    let two = file(dir.path(), "b.csv", "t_s,nr_mbps,lte_mbps\n0,1,2\n1,2,3\n");
    assert_eq!(
        status(&["plot", &two, "--column", "lte=four", "--out", &out("b.svg")]),
        0
    );
    let svg = fs::read_to_string(out("b.svg")).unwrap();
    assert!(
        svg.contains("four: mean 2.50") && !svg.contains("nr: "),
        "{svg}"
    );
    assert_eq!(
        status(&["plot", &two, "--column", "wifi", "--out", &out("c.svg")]),
        2
    );
    let left = fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 5, "a half-written file was left");
    assert!(fs::read(out("a.png")).unwrap().starts_with(b"\x89PNG"));
    assert!(
        fs::read_to_string(out("a.SVG"))
            .unwrap()
            .starts_with("<svg")
    );
    assert_eq!(status(&["plot", &source, "--out", &out("a.png")]), 2);
    assert_eq!(status(&["plot", &source, "--out", &out("a.gif")]), 2);
    assert_eq!(
        status(&["plot", &source, "--width", "9999", "--out", &out("b.png")]),
        2
    );
}

#[test]
fn a_link_has_one_column_of_a_kind() {
    let dir = tempfile::tempdir().unwrap();
    let source = file(dir.path(), "a.txt", "t,a,b\n0,12,3\n1,1,3\n");
    let out = dir.path().join("b.csv");
    let import = [
        "import",
        &source,
        "--time",
        "t",
        "--out",
        out.to_str().unwrap(),
    ];
    for twice in [
        ["--rate", "a", "--rate", "a"],
        ["--loss", "a=nr", "--loss", "b=nr"],
    ] {
        let args = [&import[..], &twice].concat();
        assert!(message(&args).contains("two columns for the link"));
        assert_eq!(status(&args), 2);
        assert!(!out.exists());
    }
    let both = ["--rate", "a=nr", "--delay", "b=nr"];
    assert_eq!(status(&[&import[..], &both].concat()), 0);
    let source = file(dir.path(), "c.csv", "0,12\n1,0\n");
    let folder = dir.path().join("none");
    let e = message(&[
        "import",
        &source,
        "--out",
        folder.join("b.csv").to_str().unwrap(),
    ]);
    let said = format!("cannot write to {}: No such file", folder.display());
    assert!(e.starts_with(&said), "{e}");
}
