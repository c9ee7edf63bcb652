//! Forms of recordings: our log, and the two published ones (transfers at target rates, walks).

use std::time::Duration;

use braid_api::diagnostic::{Problem, nearest};
use braid_core::energy::{Airtime, Interval, Signal};

use super::super::{MAX_SAMPLES, MAX_SPAN};
use super::table::{Field, Table};
use super::{Links, Recording, Sample, Scope, Transfer, choose};

const SECOND: Duration = Duration::from_secs(1);
const RATE: &str = "Mbit/s, 0 to 1000000";
const POWER: &str = "mW, 0 to 1000000";

fn rate(f: &Field<'_>) -> Result<f64, Problem> {
    f.number(0.0, 1e6, RATE)
}

fn power(f: &Field<'_>) -> Result<f64, Problem> {
    f.number(0.0, 1e6, POWER)
}

fn decibels(f: &Field<'_>) -> Result<f64, Problem> {
    f.number(-200.0, 100.0, "dB or dBm, -200 to 100")
}

/// Whether nothing was measured: an empty field or a dash.
fn absent(f: &Field<'_>) -> bool {
    matches!(f.text, "" | "-" | "nan" | "NaN")
}

fn optional(
    f: Option<&Field<'_>>,
    read: impl Fn(&Field<'_>) -> Result<f64, Problem>,
) -> Result<Option<f64>, Problem> {
    f.filter(|f| !absent(f)).map(read).transpose()
}

fn refuse_empty(transfers: Vec<Transfer>) -> Result<Vec<Transfer>, Problem> {
    match transfers.iter().any(|t| !t.samples.is_empty()) {
        true => Ok(transfers),
        false => Err(Problem::whole(
            "there are no samples: expected one in a line after the names",
        )),
    }
}

/// Transfers at target rates: seconds with throughput, power of the device and the transfer that
/// they belong to.
pub(super) fn transfers(table: &Table<'_>) -> Result<Recording, Problem> {
    let [throughput, mw, target, direction, access] = [
        "throughput",
        "avg_power",
        "target bandwidth",
        "direction",
        "network type",
    ]
    .map(|name| table.column(name));
    let (throughput, mw, target, direction, access) =
        (throughput?, mw?, target?, direction?, access?);
    let mut transfers: Vec<Transfer> = Vec::new();
    for row in table.rows() {
        let row = row?;
        let mbps = rate(&row[throughput])?;
        let (down, up) = match row[direction].text {
            "downlink" => (mbps, 0.0),
            "uplink" => (0.0, mbps),
            _ => return Err(row[direction].problem("expected downlink or uplink")),
        };
        let target = row[target].number(0.0, 1e6, RATE)?;
        let name = format!("{} {} {target}", row[access].text, row[direction].text);
        let sample = Sample {
            interval: Interval::at_rates(SECOND, down, up),
            power_mw: Some(power(&row[mw])?),
        };
        match transfers.iter_mut().rfind(|t| t.name == name) {
            Some(t) => t.samples.push(sample),
            None => transfers.push(Transfer {
                name,
                samples: vec![sample],
            }),
        }
    }
    Ok(Recording {
        transfers: refuse_empty(transfers)?,
        scope: Some(Scope::Device),
        connected: true,
        notes: Vec::new(),
    })
}

/// Seconds of walks, in no order of time: throughputs, signal and power of the radio.
pub(super) fn walk(table: &Table<'_>) -> Result<Recording, Problem> {
    let [down, up, rsrp, sinr, mw, status] = [
        "downlink_Mbps",
        "uplink_Mbps",
        "nr_ssRsrp",
        "nr_ssSinr",
        "hardware_power",
        "nrStatus",
    ]
    .map(|name| table.column(name));
    let (down, up, rsrp, sinr, mw, status) = (down?, up?, rsrp?, sinr?, mw?, status?);
    let (mut samples, mut left_out) = (Vec::new(), 0);
    for row in table.rows() {
        let row = row?;
        if row[status].text != "CONNECTED" {
            left_out += 1;
            continue;
        }
        samples.push(Sample {
            interval: Interval {
                signal: Signal {
                    rsrp_dbm: optional(Some(&row[rsrp]), decibels)?,
                    sinr_db: optional(Some(&row[sinr]), decibels)?,
                },
                ..Interval::at_rates(SECOND, rate(&row[down])?, rate(&row[up])?)
            },
            power_mw: Some(power(&row[mw])?),
        });
    }
    let notes = match left_out {
        0 => Vec::new(),
        n => vec![format!(
            "{n} seconds in which NR was not connected are left out"
        )],
    };
    Ok(Recording {
        transfers: refuse_empty(vec![Transfer {
            name: "walks".to_owned(),
            samples,
        }])?,
        scope: Some(Scope::Radio),
        connected: true,
        notes,
    })
}

/// Columns of our log beside the rates.
const COLUMNS: [&str; 8] = [
    "power_mw",
    "rsrp_dbm",
    "sinr_db",
    "sending_ms",
    "collided_ms",
    "receiving_ms",
    "frames_sent",
    "frames_received",
];

/// Our log: `t_s`, rates `NAME_mbps` as in a trace, and any of [`COLUMNS`].
pub(super) fn log(table: &Table<'_>, links: &Links) -> Result<Recording, Problem> {
    let names = table.names();
    if names[0].text != "t_s" {
        return Err(names[0].problem("expected t_s, seconds, in the first column"));
    }
    let mut rates: Vec<(&str, usize)> = Vec::new();
    for (i, n) in names.iter().enumerate().skip(1) {
        if names[..i].iter().any(|other| other.text == n.text) {
            return Err(n.problem(&format!("a second column \"{}\"", n.text)));
        }
        match n.text.strip_suffix("_mbps") {
            Some(link) => rates.push((link, i)),
            // Delays and losses of a trace.
            None if n.text.ends_with("_loss") || n.text.ends_with("_ms") => {}
            None if COLUMNS.contains(&n.text) => {}
            None => {
                let near = nearest(n.text, COLUMNS);
                let near = near.map_or(String::new(), |w| format!("; did you mean \"{w}\"?"));
                let all = COLUMNS.join(", ");
                let message = format!("unknown column: expected NAME_mbps, {all}{near}");
                return Err(n.problem(&message));
            }
        }
    }
    let known: Vec<&str> = rates.iter().map(|(link, _)| *link).collect();
    if known.is_empty() {
        return Err(names[0].problem("no rates: expected a column down_mbps or up_mbps"));
    }
    let (down, up) = choose(&known, links).map_err(|m| names[0].problem(&m))?;
    let (down, up) = (down.map(|i| rates[i].1), up.map(|i| rates[i].1));
    let column = |name: &str| names.iter().position(|n| n.text == name);
    let [mw, rsrp, sinr, sending, collided, receiving, sent, received] = COLUMNS.map(column);
    let mut times: Vec<f64> = Vec::new();
    let mut samples = Vec::new();
    for row in table.rows() {
        let row = row?;
        let t = row[0].number(0.0, 1e11, "seconds, 0 or more")?;
        if times.last().is_some_and(|last| *last >= t) {
            return Err(row[0].problem("this time does not come after the one before"));
        }
        if times
            .first()
            .is_some_and(|first| t - first > MAX_SPAN.as_secs_f64())
            || times.len() >= MAX_SAMPLES
        {
            return Err(row[0].problem("too long: expected at most 30 days and 10000000 samples"));
        }
        times.push(t);
        let field = |i: Option<usize>| i.map(|i| &row[i]);
        let of = |i| optional(field(i), rate).map(|r| r.unwrap_or(0.0));
        let count = |i| {
            let read = |f: &Field<'_>| f.number(0.0, 1e12, "a number, 0 or more");
            optional(field(i), read).map(|n| n.unwrap_or(0.0))
        };
        let time = |i| count(i).map(|ms| Duration::from_secs_f64(ms / 1e3));
        let counted = [sending, collided, receiving].iter().any(Option::is_some);
        let airtime = Airtime {
            sending: time(sending)?,
            collided: time(collided)?,
            receiving: time(receiving)?,
            frames_sent: count(sent)? as u64,
            frames_received: count(received)? as u64,
        };
        let sample = Sample {
            // Its length is known with the next.
            interval: Interval {
                signal: Signal {
                    rsrp_dbm: optional(field(rsrp), decibels)?,
                    sinr_db: optional(field(sinr), decibels)?,
                },
                airtime: counted.then_some(airtime),
                ..Interval::at_rates(SECOND, of(down)?, of(up)?)
            },
            power_mw: optional(field(mw), power)?,
        };
        samples.push(sample);
    }
    lengthen(&mut samples, &times);
    let scope = samples.iter().any(|s| s.power_mw.is_some());
    Ok(Recording {
        transfers: refuse_empty(vec![Transfer {
            name: "log".to_owned(),
            samples,
        }])?,
        scope: scope.then_some(Scope::Device),
        connected: false,
        notes: Vec::new(),
    })
}

/// Gives each sample the time until the next one; the last has the median, and a single one 1 s.
fn lengthen(samples: &mut [Sample], times: &[f64]) {
    let mut steps: Vec<f64> = times.windows(2).map(|w| w[1] - w[0]).collect();
    let last = match steps.is_empty() {
        true => 1.0,
        false => braid_core::stats::median(&steps),
    };
    steps.push(last);
    for (sample, s) in samples.iter_mut().zip(steps) {
        let i = &mut sample.interval;
        i.length = Duration::from_secs_f64(s);
        i.down_bytes *= s;
        i.up_bytes *= s;
    }
}
