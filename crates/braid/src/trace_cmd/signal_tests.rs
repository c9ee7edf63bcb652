//! Commands on received powers.

use std::fs;
use std::path::Path;

use clap::Parser;

use super::tests::{Cli, file, go, message, status};

const SIGNALS: &str = "time_s,operator,carrier,cell,rsrp_dbm,bandwidth_mhz\n\
    0,one,1800,a,-90,20\n0,two,800,x,-95,10\n\
    1,one,1800,a,-92,20\n1,one,1800,b,-89,20\n1,two,800,x,-95,10\n\
    2,one,1800,b,-85,20\n2,two,-,-,-,-\n";

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap()
}

fn out(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

/// Rows without comments.
fn rows(path: &str) -> Vec<String> {
    let rows = read(path);
    let rows = rows.lines().filter(|l| !l.starts_with('#'));
    rows.map(str::to_owned).collect()
}

#[test]
fn a_drive_is_generated_described_and_planned() {
    let dir = tempfile::tempdir().unwrap();
    let drive = out(dir.path(), "d.signal.csv");
    let make = [
        "drive", "--seed", "3", "--length", "10 min", "--out", &drive,
    ];
    assert_eq!(status(&make), 0);
    assert_eq!(status(&make), 2); // it exists
    assert!(read(&drive).starts_with("# generated from drive, seed 3, 600 s, by braid"));
    for flags in [&["--json"][..], &["--paper"], &["--segment", "residential"]] {
        assert_eq!(status(&[&["cells", &drive][..], flags].concat()), 0);
    }
    let picture = out(dir.path(), "d.png");
    assert_eq!(status(&["cells", &drive, "--out", &picture]), 0);
    assert!(fs::read(&picture).unwrap().starts_with(b"\x89PNG"));
    assert_eq!(status(&["cells", &drive, "--out", &picture]), 2);
    let plans = dir.path().to_str().unwrap();
    assert_eq!(
        status(&["plan", &drive, "--out", plans, "--length", "2 min"]),
        0
    );
    for case in ["sp", "1", "2", "3", "4"] {
        let text = fs::read(dir.path().join(format!("d.signal.{case}.plan.csv"))).unwrap();
        let plan = braid_traces::signal::plan::parse(&text).unwrap();
        assert_eq!(plan.length.as_secs(), 120);
    }
}

#[test]
fn capacity_by_hand() {
    let dir = tempfile::tempdir().unwrap();
    let source = file(dir.path(), "s.csv", SIGNALS);
    let made = out(dir.path(), "c.csv");
    let go = |args: &[&str]| {
        let all = [&["capacity", &source, "--out", &made, "--force"][..], args].concat();
        assert_eq!(status(&all), 0, "{args:?}");
        rows(&made)
    };
    // Without other cells the SINR is -90 + 123.2 = 33 dB: above what 5.5547 needs.
    let rates = go(&[]);
    assert_eq!(
        rates[..2],
        ["t_s,one.1800_mbps,two.800_mbps", "0,111.094,55.547"]
    );
    assert_eq!(rates[3], "2,111.094,0");
    // At full load: -89 against -92 dBm and noise: 3.0 dB, 0.9449 log2(1.967).
    let loaded = go(&["--load", "1"]);
    let rate: f64 = loaded[2].split(',').nth(1).unwrap().parse().unwrap();
    assert!(
        (rate - 20.0 * 0.9449 * 1.9665f64.log2()).abs() < 0.1,
        "{rate}"
    );
    assert_eq!(go(&["--per", "total"])[1], "0,111.094,166.641");
    assert_eq!(
        go(&["--per", "operator", "--bandwidth", "800=20"])[1],
        "0,111.094,111.094"
    );
    let cells = go(&["--per", "cell"]);
    assert_eq!(
        cells[0],
        "t_s,one.1800.a_mbps,two.800.x_mbps,one.1800.b_mbps"
    );
    assert_eq!(go(&["--start", "2 s"]).len(), 2);
}

#[test]
fn plans_by_hand() {
    let dir = tempfile::tempdir().unwrap();
    let source = file(dir.path(), "s.csv", SIGNALS);
    let made = out(dir.path(), "p.csv");
    let plan = [
        "plan", &source, "--case", "2", "--out", &made, "--delay", "20 ms",
    ];
    assert_eq!(status(&plan), 0);
    assert!(
        read(&made).contains("# case 2, delay points:0=20\n"),
        "{}",
        read(&made)
    );
    let rows = rows(&made);
    assert_eq!(rows[1], "0,1,up,one,1800,a,111.094,20,1");
    assert_eq!(rows[2], "0,2,up,two,800,x,55.547,20,1");
    // a is not heard any more at 2 s; two is out of coverage.
    assert!(
        rows.contains(&"2,1,handover,one,1800,b,111.094,20,2".to_owned()),
        "{rows:?}"
    );
    assert!(
        rows.contains(&"2.05,1,up,one,1800,b,111.094,20,2".to_owned()),
        "{rows:?}"
    );
    assert!(rows.contains(&"2,2,down,,,,,,".to_owned()), "{rows:?}");
    assert_eq!(rows.last().unwrap(), "3,,end,,,,,,");
}

#[test]
fn capacity_traces_are_planned_too() {
    let dir = tempfile::tempdir().unwrap();
    let paired = file(
        dir.path(),
        "5g_trace_1",
        "1.0\t361\t32.0\n2.0\t0\t44.5\n3.0\t9\t40\n",
    );
    let made = out(dir.path(), "p.csv");
    assert_eq!(
        status(&["plan", &paired, "--case", "sp", "--out", &made]),
        0
    );
    assert!(
        rows(&made)[2].starts_with("1,1,up,lte,lte,lte,44.5,"),
        "{:?}",
        rows(&made)
    );
    assert_eq!(status(&["cells", &paired, "--json"]), 0);
    let mahimahi = file(dir.path(), "m", "100\n2500\n");
    assert_eq!(status(&["cells", &mahimahi]), 0);
    assert_eq!(
        status(&["plan", &mahimahi, "--case", "1", "--out", &made, "--force"]),
        0
    );
}

#[test]
fn signals_are_imported() {
    let dir = tempfile::tempdir().unwrap();
    let ucc = file(
        dir.path(),
        "u.csv",
        "Timestamp,Operatorname,RAWCELLID,NetworkMode,RSRP,RSRQ,SNR,DL_bitrate,UL_bitrate,NRxRSRP\n\
         2019.12.14_10.16.30,B,7,5G,-99,-15,6.0,7000,1,-101\n\
         2019.12.14_10.16.31,B,7,HSPA+,-99,-15,6.0,7000,1,-\n\
         2019.12.14_10.16.32,B,8,LTE,-80,-9,-,9000,1,-\n",
    );
    let made = out(dir.path(), "u.signal.csv");
    assert_eq!(
        status(&["import", &ucc, "--to", "signal", "--out", &made]),
        0
    );
    assert_eq!(
        rows(&made)[1..],
        [
            "0,B,5G,7,-99,-15,6,-,-",
            "0,B,5G,neighbour,-101,-,-,-,-",
            "1,B,-,-,-,-,-,-,-",
            "2,B,LTE,8,-80,-9,-,-,-"
        ]
    );
    assert!(read(&made).contains("1 rows of a technology without RSRP (first at line 3)"));
    // The same file is a capacity trace as well, and what was uploaded is no cell.
    let cap = out(dir.path(), "c.csv");
    assert_eq!(status(&["capacity", &ucc, "--rates", "--out", &cap]), 0);
    assert_eq!(rows(&cap)[..2], ["t_s,down_mbps", "0,7"]);
    let measured = [
        "capacity",
        &ucc,
        "--measured-sinr",
        "--out",
        &cap,
        "--force",
    ];
    assert_eq!(status(&measured), 0);
    assert!(message(&["import", &ucc, "--to", "signal", "--step", "1 s"]).contains("--step"));
}

#[test]
fn bad_requests_say_what_was_expected() {
    let dir = tempfile::tempdir().unwrap();
    let good = file(dir.path(), "s.csv", SIGNALS);
    let bad = file(dir.path(), "bad.csv", "time,cell,rsrp\n0,x,-90\n1,x,loud\n");
    for command in ["cells", "capacity", "plan"] {
        let m = message(&[command, &bad]);
        assert_eq!(
            m,
            format!("{bad}:3: \"loud\" is not a number: expected dBm (or \"-\" for none)")
        );
        assert_eq!(status(&[command, &bad]), 2);
        assert_eq!(status(&[command, "/nonexistent"]), 2);
        assert_eq!(status(&[command, "/"]), 2);
        for (args, says) in [
            (&["--load", "2"][..], "network load 2: expected 0 to 1"),
            (&["--noise-figure", "NaN"], "noise figure"),
            (&["--bandwidth", "1800=wide"], "expected MHz"),
            (&["--format", "pcap"], "expected signal, csv, mahimahi"),
            (
                &["--start", "9 s"],
                "nothing is left: the recording is 3 s long",
            ),
            (
                &["--segment", "road"],
                "no segment \"road\": the recording names none",
            ),
            (&["--format", "mahimahi"], "s.csv:1:"),
        ] {
            let all = [&[command, &good][..], args].concat();
            assert!(message(&all).contains(says), "{args:?}: {}", message(&all));
            assert_eq!(status(&all), 2);
        }
    }
    let m = message(&["plan", &good, "--hysteresis=-1"]);
    assert!(m.contains("expected 0 to 10"), "{m}");
    let m = message(&["plan", &good, "--interruption", "2 min"]);
    assert!(m.contains("at most 60 s"), "{m}");
    let m = message(&["cells", &good, "--out", "x.gif"]);
    assert!(m.contains(".png or .svg"), "{m}");
    let m = message(&["cells", &good, "--out", &good]);
    assert!(m.contains(".png or .svg"), "{m}");
    let spec = file(dir.path(), "spec.toml", "[receiver]\nheight_m = 0\n");
    assert!(message(&["drive", &spec]).starts_with(&format!("{spec}:")));
    assert_eq!(status(&["drive", &spec]), 2);
    assert_eq!(status(&["drive", "--length", "1 ms"]), 2);
    assert!(go(&["capacity", &good, "--out", "/dev/full", "--force"]).is_err());
    assert_eq!(
        status(&["capacity", &good, "--out", "/dev/full", "--force"]),
        1
    );
}

#[test]
fn values_that_would_count_for_nothing_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let source = file(dir.path(), "s.csv", SIGNALS);
    let refused = |args: &[&str], why: &str| {
        let e = message(args);
        assert!(e.contains(why), "{args:?}: {e}");
        assert_eq!(status(args), 2);
    };
    let no_such = "no carrier \"9\" (--bandwidth): there are 1800, 800";
    refused(&["cells", &source, "--bandwidth", "9=5"], no_such);
    let unnamed = "expected the name of a carrier";
    refused(&["cells", &source, "--bandwidth", "=5"], unnamed);
    assert_eq!(status(&["cells", &source, "--bandwidth", "800=5"]), 0);
    let twice = "--case: 2 is there twice";
    refused(&["plan", &source, "--case", "2,sp,2"], twice);
    let several = "standard output takes one plan";
    refused(&["plan", &source, "--out", "-"], several);
    let command = |args: &[&str]| Cli::try_parse_from([&["trace"], args].concat());
    for (args, why) in [
        (["cells", &source, "--start", "0.5 s"], "whole seconds"),
        (["plan", &source, "--length", "1500 ms"], "whole seconds"),
        (["capacity", &source, "--most", "0"], "1 to "),
    ] {
        let e = command(&args).unwrap_err().to_string();
        assert!(e.contains(why), "{args:?}: {e}");
    }
}
