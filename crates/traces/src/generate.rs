//! Traces of our own, drawn from stated models: the shipped ones are made here,
//! because the recordings they resemble may not be redistributed.
//!
//! Every function gives the same trace for the same seed.

use std::time::Duration;

use braid_core::Rate;
use braid_core::seed::{self, Rng};
use rand::RngExt;
use rand_distr::{Distribution, Exp, Poisson, StandardNormal};

use super::{Capacity, Column, Format, OPPORTUNITY_BYTES, Trace};

/// Wi-Fi falling and recovering beside steady 5G, a sample a second for 250 s:
/// the dynamic experiment of "Combining 5G New Radio, Wi-Fi, and LiFi for
/// Industry 4.0" (section 6.5, Figures 10 to 12), in which the access point is
/// carried away and back over 50 m in 4 min 10 s. Columns `nr` and `wifi`.
///
/// Wi-Fi: the distance grows evenly from 2 m to 27 m and shrinks again. The SNR
/// is 44 dB at 2 m, falls by 30 dB per decade of distance and by another 10 dB
/// behind a wall at 12 m, with shadowing (log-normal, 2 dB, correlated over
/// 6 s). The rate is Shannon's, scaled so that the 33 dB at which the highest
/// modulation works give 900 Mbit/s and more SNR gives no more, less up to a
/// twentieth for contention.
///
/// 5G: 300 Mbit/s with log-normal fading of 6 % correlated over 4 s, within
/// 250 to 342 Mbit/s.
pub fn walk(seed: u64) -> Trace {
    const SECONDS: usize = 250;
    let mut rng = seed::stream(seed, "walk");
    let mut shadow = Ar1::new(2.0, 6.0, &mut rng);
    let mut fading = Ar1::new(0.06, 4.0, &mut rng);
    let (mut nr, mut wifi) = (Vec::new(), Vec::new());
    for t in 0..SECONDS {
        let away = 1.0 - (2.0 * (t as f64 + 0.5) / SECONDS as f64 - 1.0).abs();
        let distance = 2.0 + 25.0 * away;
        let wall = 10.0 / (1.0 + (12.0 - distance).exp());
        let snr_db = 44.0 - 30.0 * (distance / 2.0).log10() - wall + shadow.next(&mut rng);
        let shannon = |db: f64| (1.0 + 10f64.powf(db / 10.0)).log2();
        let share = (shannon(snr_db) / shannon(33.0)).min(1.0);
        wifi.push(mbps(900.0 * share * (1.0 - 0.05 * rng.random::<f64>())));
        nr.push(mbps(
            (300.0 * fading.next(&mut rng).exp()).clamp(250.0, 342.0),
        ));
    }
    sampled(vec![("nr", nr), ("wifi", wifi)])
}

/// 5G and LTE seen by a moving vehicle, a sample a second for 180 s. Columns
/// `nr` and `lte`.
///
/// Each access is a semi-Markov chain over kinds of coverage, with exponential
/// stays, times log-normal fading with an exponential correlation. 5G: 450
/// Mbit/s (stays of 12 s on average), 180 (14 s), 40 (8 s) and none (4 s),
/// fading 0.4 over 3 s. LTE: 110 Mbit/s (25 s), 40 (20 s) and none (2.5 s),
/// fading 0.35 over 5 s. The next kind is drawn with the given weights.
pub fn drive(seed: u64) -> Trace {
    const SECONDS: usize = 180;
    const NR: [Coverage; 4] = [
        Coverage {
            mbps: 450.0,
            stay_s: 12.0,
            weight: 3.0,
        },
        Coverage {
            mbps: 180.0,
            stay_s: 14.0,
            weight: 4.0,
        },
        Coverage {
            mbps: 40.0,
            stay_s: 8.0,
            weight: 2.0,
        },
        Coverage {
            mbps: 0.0,
            stay_s: 4.0,
            weight: 2.0,
        },
    ];
    const LTE: [Coverage; 3] = [
        Coverage {
            mbps: 110.0,
            stay_s: 25.0,
            weight: 3.0,
        },
        Coverage {
            mbps: 40.0,
            stay_s: 20.0,
            weight: 3.0,
        },
        Coverage {
            mbps: 0.0,
            stay_s: 2.5,
            weight: 1.0,
        },
    ];
    let series = |label: &str, kinds: &[Coverage], sigma: f64, tau: f64| -> Vec<Rate> {
        let mut rng = seed::stream(seed, label);
        let mut fading = Ar1::new(sigma, tau, &mut rng);
        let mut chain = Chain::new(&mut rng, kinds);
        let next = |_| mbps(chain.next(1.0, kinds, &mut rng) * fading.next(&mut rng).exp());
        (0..SECONDS).map(next).collect()
    };
    sampled(vec![
        ("nr", series("drive nr", &NR, 0.4, 3.0)),
        ("lte", series("drive lte", &LTE, 0.35, 5.0)),
    ])
}

/// Delivery opportunities of a cellular downlink of about `mean_mbps` for
/// `seconds`.
///
/// As in the model behind Sprout (Winstein et al., NSDI 2013) deliveries are a
/// Poisson process whose rate wanders and sometimes stops: the rate is
/// log-normal (0.6, correlated over 1 s) and redrawn every 20 ms; coverage is
/// lost every 12 s on average, for 0.7 s on average. As in LTE the cell serves
/// the device in some of its 1 ms subframes only (one in four), several packets
/// at a time.
pub fn cell(seed: u64, seconds: u64, mean_mbps: f64) -> Trace {
    const SIGMA: f64 = 0.6;
    const SERVED: f64 = 0.25;
    const KINDS: [Coverage; 2] = [
        Coverage {
            mbps: 1.0,
            stay_s: 12.0,
            weight: 1.0,
        },
        Coverage {
            mbps: 0.0,
            stay_s: 0.7,
            weight: 1.0,
        },
    ];
    let mut rng = seed::stream(seed, "cell");
    let mut fading = Ar1::new(SIGMA, 1.0 / 0.02, &mut rng);
    let mut chain = Chain::new(&mut rng, &KINDS);
    // What coverage and fading take or give on average is given back.
    let up = KINDS[0].stay_s / (KINDS[0].stay_s + KINDS[1].stay_s);
    let mbit_per_packet = f64::from(OPPORTUNITY_BYTES) * 8e-6;
    let per_ms = mean_mbps / up / (SIGMA * SIGMA / 2.0).exp() / mbit_per_packet / 1e3;
    let end = seconds.max(1) * 1000;
    let mut ms = Vec::new();
    let mut rate = 0.0;
    for t in 1..=end {
        if t % 20 == 1 {
            rate = per_ms * chain.next(0.02, &KINDS, &mut rng) * fading.next(&mut rng).exp();
        }
        if rate > 0.0
            && rng.random::<f64>() < SERVED
            && let Ok(packets) = Poisson::new(rate / SERVED)
        {
            let n: f64 = packets.sample(&mut rng);
            ms.extend(std::iter::repeat_n(t, n as usize));
        }
    }
    if ms.last() != Some(&end) {
        ms.push(end); // sets the length of a repetition
    }
    Trace {
        format: Format::Mahimahi,
        capacity: Capacity::Opportunities {
            ms,
            packet_bytes: OPPORTUNITY_BYTES,
        },
        problems: Vec::new(),
        notes: Vec::new(),
    }
}

/// A normal process with an exponential autocorrelation.
struct Ar1 {
    value: f64,
    keep: f64,
    fresh: f64,
}

impl Ar1 {
    /// Standard deviation `sigma`, correlated over `tau` steps.
    fn new(sigma: f64, tau: f64, rng: &mut Rng) -> Self {
        let keep = (-1.0 / tau).exp();
        let first: f64 = StandardNormal.sample(rng);
        Self {
            value: sigma * first,
            keep,
            fresh: sigma * (1.0 - keep * keep).sqrt(),
        }
    }

    fn next(&mut self, rng: &mut Rng) -> f64 {
        let draw: f64 = StandardNormal.sample(rng);
        self.value = self.keep * self.value + self.fresh * draw;
        self.value
    }
}

/// A kind of coverage: its median rate, how long it lasts on average, and how
/// often it comes next.
struct Coverage {
    mbps: f64,
    stay_s: f64,
    weight: f64,
}

/// Current coverage, and how much longer it lasts.
struct Chain {
    at: usize,
    left_s: f64,
}

impl Chain {
    /// Begins with the first kind.
    fn new(rng: &mut Rng, kinds: &[Coverage]) -> Self {
        Self {
            at: 0,
            left_s: stay(&kinds[0], rng),
        }
    }

    /// The rate now; then lets `step_s` pass.
    fn next(&mut self, step_s: f64, kinds: &[Coverage], rng: &mut Rng) -> f64 {
        let now = kinds[self.at].mbps;
        self.left_s -= step_s;
        if self.left_s <= 0.0 {
            let others = || kinds.iter().enumerate().filter(|(i, _)| *i != self.at);
            let total: f64 = others().map(|(_, k)| k.weight).sum();
            let mut draw = rng.random::<f64>() * total;
            let chosen = others().find(|(_, k)| {
                draw -= k.weight;
                draw <= 0.0
            });
            self.at = chosen.map_or(0, |(i, _)| i);
            self.left_s = stay(&kinds[self.at], rng).max(step_s);
        }
        now
    }
}

fn stay(kind: &Coverage, rng: &mut Rng) -> f64 {
    Exp::new(1.0 / kind.stay_s).map_or(kind.stay_s, |d| d.sample(rng))
}

/// Rounded to a tenth of a Mbit/s, so that files stay small and are the same
/// whatever the last bits of `exp` and `ln` on a machine.
fn mbps(v: f64) -> Rate {
    Rate::from_mbps((v * 10.0).round() / 10.0)
}

fn sampled(columns: Vec<(&str, Vec<Rate>)>) -> Trace {
    let n = columns.first().map_or(0, |(_, r)| r.len()) as u64;
    let column = |(name, rates): (&str, Vec<Rate>)| Column {
        name: name.to_owned(),
        rates,
    };
    Trace {
        format: Format::Csv,
        capacity: Capacity::Steps {
            starts: (0..n).map(Duration::from_secs).collect(),
            end: Duration::from_secs(n),
            columns: columns.into_iter().map(column).collect(),
        },
        problems: Vec::new(),
        notes: Vec::new(),
    }
}

/// A shipped trace: its file, what it is, and how it is made.
pub struct Shipped {
    /// File below `scenarios/traces/`.
    pub file: &'static str,
    /// A sentence on it.
    pub about: &'static str,
    /// Makes it.
    pub make: fn() -> Trace,
}

/// The traces in `scenarios/traces/`, which `cargo run -p braid-radio --example
/// make-traces` writes.
pub const SHIPPED: [Shipped; 4] = [
    Shipped {
        file: "walk.csv",
        about: "Wi-Fi falling and recovering over 250 s beside steady 5G (model: braid_traces::generate::walk, seed 3)",
        make: || walk(3),
    },
    Shipped {
        file: "drive-5g4g.csv",
        about: "5G and LTE of one drive, with outages (model: braid_traces::generate::drive, seed 4)",
        make: || drive(4),
    },
    Shipped {
        file: "cell-a.mahimahi",
        about: "a cellular downlink of about 5 Mbit/s",
        make: || cell(1, 30, 6.0),
    },
    Shipped {
        file: "cell-b.mahimahi",
        about: "a cellular downlink of about 2.5 Mbit/s",
        make: || cell(2, 30, 3.0),
    },
];

#[cfg(test)]
mod tests {
    use super::super::stats::Options;
    use super::*;

    #[test]
    fn walk_has_the_magnitudes_of_the_experiment() {
        for s in 0..20 {
            let t = walk(s);
            let sum = t.summary(&Options::default()).unwrap();
            assert_eq!((sum.span_s, sum.step_s), (250.0, 1.0));
            let (nr, wifi) = (&sum.columns[0], &sum.columns[1]);
            assert!(nr.min_mbps >= 250.0 && nr.max_mbps <= 342.0);
            assert!(wifi.max_mbps > 850.0 && wifi.p5_mbps < 120.0, "{wifi:?}");
            let near = |from: u64| {
                let part = t.part(Duration::from_secs(from), Some(Duration::from_secs(20)));
                part.unwrap().summary(&Options::default()).unwrap().columns[1].mean_mbps
            };
            assert!(near(0) > 780.0 && near(230) > 780.0 && near(115) < 160.0);
        }
    }

    #[test]
    fn drives_have_outages_and_both_accesses_differ() {
        let outages: Vec<(usize, usize)> = (0..30)
            .map(|s| {
                let sum = drive(s).summary(&Options::default()).unwrap();
                assert!(sum.columns[0].mean_mbps > 1.5 * sum.columns[1].mean_mbps);
                (sum.columns[0].outages.count, sum.columns[1].outages.count)
            })
            .collect();
        let with = |f: fn(&(usize, usize)) -> bool| outages.iter().filter(|o| f(o)).count();
        assert!(
            with(|o| o.0 > 0) >= 25 && with(|o| o.1 > 0) >= 12,
            "{outages:?}"
        );
    }

    #[test]
    fn cells_have_the_mean_asked_for() {
        let rates: Vec<f64> = (0..20)
            .map(|s| {
                let t = cell(s, 30, 6.0);
                assert_eq!(t.span().as_secs(), 30);
                t.summary(&Options::default()).unwrap().columns[0].mean_mbps
            })
            .collect();
        let mean = rates.iter().sum::<f64>() / 20.0;
        assert!((5.0..7.0).contains(&mean), "{mean}: {rates:?}");
    }

    /// The files are what the models give, up to the last bits of a machine's
    /// mathematics.
    #[test]
    fn shipped_files_are_what_the_models_give() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/traces/");
        for s in &SHIPPED {
            let path = std::path::PathBuf::from(folder.to_owned() + s.file);
            let file = Trace::read(&path, None).unwrap_or_else(|e| panic!("{e}"));
            let made = (s.make)();
            assert_eq!((file.format, file.columns()), (made.format, made.columns()));
            let segments = |t: &Trace, c| t.segments(c, Duration::from_secs(1)).unwrap();
            for c in 0..file.columns().len() {
                let (a, b) = (segments(&file, c), segments(&made, c));
                assert_eq!(a.len(), b.len());
                let close = a
                    .iter()
                    .zip(&b)
                    .all(|(a, b)| (a.mbps - b.mbps).abs() < 0.11);
                assert!(close, "{} has changed: run the example make-traces", s.file);
            }
        }
    }
}
