//! The timeline: columns of `timeline.csv`, how each is read from what was sampled, and how the
//! report draws it. A new column is one entry of the table below, and a line of
//! `docs/report.md`.

pub(crate) mod measure;

use braid_api::Subflow;
use serde::{Deserialize, Serialize};

use measure::{Measure, Shape};

/// Link counters of one access in the measured direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) bytes: u64,
    pub(crate) packets: u64,
    pub(crate) lost: u64,
    pub(crate) queue_bytes: u64,
    pub(crate) up: bool,
}

/// Facts of one access from which a row is read.
pub(crate) struct Sample<'a> {
    /// At the end of the interval and at its start.
    pub(crate) now: Count,
    pub(crate) before: Count,
    /// Established subflows of the sender on this access.
    pub(crate) flows: &'a [&'a Subflow],
    /// Weight in the interval; under a policy the one that it has decided at the end.
    pub(crate) weight: Option<f64>,
    /// Mean rate that the link could carry, IP layer, Mbit/s.
    pub(crate) capacity_mbps: Option<f64>,
    /// Estimate by which the sender's policy goes at the end, payload, Mbit/s.
    pub(crate) estimate_mbps: Option<f64>,
    /// Energy of the radio in the interval, joules.
    pub(crate) energy_joules: Option<f64>,
    /// Fraction of the interval in which the shared medium was busy.
    pub(crate) busy: Option<f64>,
}

/// Name and unit of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineColumn {
    /// Name in the head of `timeline.csv`.
    pub name: &'static str,
    /// Unit of the numbers; empty where they have none.
    pub unit: &'static str,
}

/// Makes a row of the columns, the list of them, and the measures that are drawn.
macro_rules! columns {
    ($(
        $(#[$doc:meta])*
        $name:ident: $type:ty {
            unit: $unit:literal,
            read: $read:expr,
            $(drawn: $drawn:expr,)?
        }
    )*) => {
        /// One row of `timeline.csv`: an access during 100 ms of a case.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct TimelineRow {
            /// Name of the case.
            pub case: String,
            /// Number of the repetition, from 1.
            pub repeat: u32,
            /// End of the interval, s since the start of the case.
            pub t_s: f64,
            /// The access.
            pub access: String,
            $($(#[$doc])* pub $name: $type,)*
        }

        impl TimelineRow {
            /// The row of a sample; whose it is, and when, is left open.
            pub(crate) fn read(sample: &Sample<'_>) -> Self {
                $(let $name: fn(&Sample<'_>) -> $type = $read;)*
                Self {
                    $($name: $name(sample),)*
                    ..Self::default()
                }
            }
        }

        /// Columns of `timeline.csv` after `case`, `repeat`, `t_s` and `access`, in order.
        pub const TIMELINE_COLUMNS: &[TimelineColumn] = &[
            $(TimelineColumn { name: stringify!($name), unit: $unit },)*
        ];

        /// Measures that the report draws over time.
        pub(crate) const MEASURES: &[Measure] = &[$($($drawn,)?)*];
    };
}

columns! {
    /// IP bytes that left the link in the data direction during the interval.
    bytes: u64 {
        unit: "bytes",
        read: |s| s.now.bytes.saturating_sub(s.before.bytes),
        drawn: Measure {
            place: 1,
            key: "mbps",
            title: "Throughput",
            unit: "Mbit/s",
            explanation: "IP bytes that left each link, stacked.",
            shape: Shape::Stacked,
            value: |i| {
                let bytes: u64 = i.rows.iter().map(|r| r.bytes).sum();
                Some(bytes as f64 * 8.0 / 1e3 / i.ms as f64)
            },
        },
    }
    /// Bytes in the link's queue at the end of the interval.
    queue_bytes: u64 {
        unit: "bytes",
        read: |s| s.now.queue_bytes,
        drawn: Measure {
            place: 5,
            key: "queue",
            title: "Queue",
            unit: "kB",
            explanation: "Bytes waiting at each link.",
            shape: Shape::Lines,
            value: |i| i.mean(|r| Some(r.queue_bytes as f64 / 1e3)),
        },
    }
    /// Packets lost or dropped on the link during the interval.
    lost_packets: u64 {
        unit: "packets",
        read: |s| s.now.lost.saturating_sub(s.before.lost),
        drawn: Measure {
            place: 6,
            key: "lost",
            title: "Loss",
            unit: "packets",
            explanation: "Packets lost or dropped on each link in each interval.",
            shape: Shape::Lines,
            value: |i| Some(i.rows.iter().map(|r| r.lost_packets).sum::<u64>() as f64),
        },
    }
    /// Smoothed RTT of the subflow on this access (the mean over several), ms.
    rtt_ms: Option<f64> {
        unit: "ms",
        read: |s| mean(s.flows.iter().map(|f| f.srtt_ms).filter(|v| *v > 0.0)),
        drawn: Measure {
            place: 2,
            key: "rtt",
            title: "RTT",
            unit: "ms",
            explanation: "Smoothed round-trip time that the sender sees on each access.",
            shape: Shape::Lines,
            value: |i| i.mean(|r| r.rtt_ms),
        },
    }
    /// Congestion window (summed over the access's subflows), segments.
    cwnd: Option<u32> {
        unit: "segments",
        read: |s| s.flows.iter().map(|f| f.cwnd_segments).reduce(|a, b| a + b),
        drawn: Measure {
            place: 3,
            key: "cwnd",
            title: "Window",
            unit: "segments",
            explanation: "Congestion window, summed over the subflows of each access.",
            shape: Shape::Lines,
            value: |i| i.mean(|r| r.cwnd.map(f64::from)),
        },
    }
    /// Pacing rate (summed), Mbit/s.
    pacing_mbps: Option<f64> {
        unit: "Mbit/s",
        read: |s| s.flows.iter().filter_map(|f| f.pacing_mbps).reduce(|a, b| a + b),
        drawn: Measure {
            place: 4,
            key: "pacing",
            title: "Pacing",
            unit: "Mbit/s",
            explanation: "Rate at which the sender paces each access.",
            shape: Shape::Lines,
            value: |i| i.mean(|r| r.pacing_mbps),
        },
    }
    /// TCP retransmissions of the subflow(s) so far, segments.
    retransmits: Option<u32> {
        unit: "segments",
        read: |s| s.flows.iter().map(|f| f.retransmits).reduce(|a, b| a + b),
    }
    /// Weight of the access, where the engine has weights.
    weight: Option<f64> {
        unit: "",
        read: |s| s.weight,
        drawn: Measure {
            place: 7,
            key: "weight",
            title: "Weights",
            unit: "",
            explanation: "Weight of each access.",
            shape: Shape::Steps,
            value: |i| i.rows.last().and_then(|r| r.weight),
        },
    }
    /// Mean rate that the link could carry in the interval, IP layer, Mbit/s.
    capacity_mbps: Option<f64> {
        unit: "Mbit/s",
        read: |s| s.capacity_mbps,
        drawn: Measure {
            place: 8,
            key: "capacity",
            title: "Capacity",
            unit: "Mbit/s",
            explanation: "Rate that each link could carry, whole IP packets.",
            shape: Shape::Lines,
            value: |i| i.mean(|r| r.capacity_mbps),
        },
    }
    /// Estimated capacity by which the sender's policy goes, payload, Mbit/s.
    estimate_mbps: Option<f64> {
        unit: "Mbit/s",
        read: |s| s.estimate_mbps,
        drawn: Measure {
            place: 9,
            key: "estimate",
            title: "Estimates",
            unit: "Mbit/s",
            explanation: "Capacity of each access as the sender's policy estimates it, payload.",
            shape: Shape::Lines,
            value: |i| i.mean(|r| r.estimate_mbps),
        },
    }
    /// `up`, `down`, `blackhole`, and, from the engine, `backup`, `stale`.
    state: String {
        unit: "",
        read: |s| state(s.now.up, s.flows).to_owned(),
    }
    /// Fraction of the interval in which the access's shared medium was busy.
    busy: Option<f64> {
        unit: "fraction",
        read: |s| s.busy,
        drawn: Measure {
            place: 10,
            key: "busy",
            title: "Channel busy",
            unit: "%",
            explanation: "Time in which the shared channel of each access was busy.",
            shape: Shape::Lines,
            value: |i| i.mean(|r| r.busy.map(|b| b * 100.0)),
        },
    }
    /// Energy of the radio in the interval, where it has a power model, joules.
    energy_joules: Option<f64> {
        unit: "J",
        read: |s| s.energy_joules,
        drawn: Measure {
            place: 11,
            key: "power",
            title: "Power",
            unit: "mW",
            explanation: "Mean power of each radio, by its model.",
            shape: Shape::Stacked,
            value: |i| {
                let joules = i.rows.iter().filter_map(|r| r.energy_joules);
                let sum = joules.reduce(|a, b| a + b)?;
                Some(sum * 1e6 / i.ms as f64)
            },
        },
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (n, sum) = values.fold((0u32, 0.0), |(n, s), v| (n + 1, s + v));
    (n > 0).then(|| sum / f64::from(n))
}

fn state(up: bool, flows: &[&Subflow]) -> &'static str {
    if !up {
        "down"
    } else if !flows.is_empty() && flows.iter().all(|s| s.stale) {
        "stale"
    } else if !flows.is_empty() && flows.iter().all(|s| s.backup_local || s.backup_remote) {
        "backup"
    } else {
        "up"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_has_its_line_in_the_docs() {
        let page = include_str!("../../../../docs/report.md");
        let part = page
            .split("\n## ")
            .find(|p| p.starts_with("`timeline.csv`"));
        let lines: Vec<&str> = part.unwrap().lines().collect();
        for TimelineColumn { name, unit } in TIMELINE_COLUMNS {
            let unit = if unit.is_empty() {
                String::new()
            } else {
                format!(" {unit}")
            };
            let start = format!("| `{name}` |{unit} | ");
            assert!(lines.iter().any(|l| l.starts_with(&start)), "{start}");
        }
    }

    #[test]
    fn every_measure_has_a_key_and_a_place_of_its_own() {
        for (i, m) in MEASURES.iter().enumerate() {
            let others = MEASURES.iter().enumerate().filter(|(j, _)| *j != i);
            for (_, o) in others {
                assert!(m.key != o.key && m.place != o.place, "{m:?} {o:?}");
            }
        }
    }
}
