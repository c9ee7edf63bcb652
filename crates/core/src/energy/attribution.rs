//! Attribution of measured power to accesses: which share of the power of a whole device goes with
//! the traffic of which access.
//!
//! A counter of the device (battery, rail, smart plug) does not tell radios apart. Regression does,
//! where accesses were not always used alike: power = rest + sum over accesses of (connected power
//! while it carries data + mW per Mbit/s in each direction), with nothing negative. Ridge by a small
//! share of the columns' size, so that accesses that always go together share evenly.

use std::collections::BTreeMap;

use crate::control::PerDirection;

/// Rates of one access in the time of a sample, Mbit/s.
pub type Rates = PerDirection<f64>;

/// Power of the device, and what its accesses carried meanwhile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PowerSample {
    /// Mean power, mW.
    pub power_mw: f64,
    /// Rates by access; one that is not named carried nothing.
    pub rates: BTreeMap<String, Rates>,
}

/// Power that goes with an access.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// While it carries anything, mW.
    pub in_use_mw: f64,
    /// For each Mbit/s, mW.
    pub mw_per_mbps: Rates,
}

impl Share {
    /// Returns the power at these rates, mW.
    pub fn mw(&self, rates: &Rates) -> f64 {
        let used = rates.down > 0.0 || rates.up > 0.0;
        let in_use = if used { self.in_use_mw } else { 0.0 };
        in_use + self.mw_per_mbps.down * rates.down + self.mw_per_mbps.up * rates.up
    }
}

/// Result of an attribution.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribution {
    /// Power that goes with no access, mW.
    pub rest_mw: f64,
    /// Shares by access.
    pub shares: BTreeMap<String, Share>,
    /// Share of the variance of power that is explained; `None` where power does not vary.
    pub r2: Option<f64>,
}

impl Attribution {
    /// Returns the power of `access` at `rates`, mW; 0 for one that is not known.
    pub fn mw(&self, access: &str, rates: &Rates) -> f64 {
        self.shares.get(access).map_or(0.0, |s| s.mw(rates))
    }
}

/// Samples for each unknown, at least.
const SAMPLES_PER_UNKNOWN: usize = 3;
/// Weight of the ridge, as a share of the mean square of a column.
const RIDGE: f64 = 1e-6;
/// Passes over all unknowns, at most.
const MAX_PASSES: usize = 20_000;

/// Attributes the power of `samples` to accesses; `None` with less than three samples for each
/// unknown, or where a number is not finite.
pub fn attribute(samples: &[PowerSample]) -> Option<Attribution> {
    let mut accesses: Vec<&str> = Vec::new();
    for s in samples {
        accesses.extend(s.rates.keys().map(String::as_str));
    }
    accesses.sort_unstable();
    accesses.dedup();
    let rows: Vec<Vec<f64>> = samples.iter().map(|s| row(s, &accesses)).collect();
    let powers: Vec<f64> = samples.iter().map(|s| s.power_mw).collect();
    let finite = rows.iter().flatten().chain(&powers).all(|v| v.is_finite());
    let unknowns = 1 + 3 * accesses.len();
    if !finite || samples.len() < SAMPLES_PER_UNKNOWN * unknowns {
        return None;
    }
    let x = non_negative(&rows, &powers, unknowns);
    let shares = accesses.iter().enumerate().map(|(i, name)| {
        let at = |k: usize| x[1 + 3 * i + k];
        let share = Share {
            in_use_mw: at(0),
            mw_per_mbps: PerDirection {
                down: at(1),
                up: at(2),
            },
        };
        ((*name).to_owned(), share)
    });
    let mean = powers.iter().sum::<f64>() / powers.len() as f64;
    let square = |v: f64| v * v;
    let total: f64 = powers.iter().map(|p| square(p - mean)).sum();
    let predicted = rows.iter().map(|row| dot(row, &x));
    let left: f64 = powers
        .iter()
        .zip(predicted)
        .map(|(p, q)| square(p - q))
        .sum();
    Some(Attribution {
        rest_mw: x[0],
        shares: shares.collect(),
        r2: (total > 0.0).then(|| 1.0 - left / total),
    })
}

/// Columns of one sample: the rest, then use, down and up of each access.
fn row(sample: &PowerSample, accesses: &[&str]) -> Vec<f64> {
    let mut row = vec![1.0];
    for access in accesses {
        let rates = sample.rates.get(*access).copied().unwrap_or_default();
        let used = rates.down > 0.0 || rates.up > 0.0;
        row.extend([f64::from(u8::from(used)), rates.down, rates.up]);
    }
    row
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Non-negative least squares by cyclic coordinate descent on the normal equations.
fn non_negative(rows: &[Vec<f64>], powers: &[f64], unknowns: usize) -> Vec<f64> {
    let column = |k: usize| rows.iter().map(move |r| r[k]);
    let size: Vec<f64> = (0..unknowns)
        .map(|k| column(k).map(|v| v * v).sum::<f64>().sqrt())
        .map(|s| if s > 0.0 { s } else { 1.0 })
        .collect();
    let product = |a: usize, b: usize| {
        let sum: f64 = column(a).zip(column(b)).map(|(a, b)| a * b).sum();
        sum / (size[a] * size[b])
    };
    let gram: Vec<Vec<f64>> = (0..unknowns)
        .map(|a| (0..unknowns).map(|b| product(a, b)).collect())
        .collect();
    let target: Vec<f64> = (0..unknowns)
        .map(|k| column(k).zip(powers).map(|(v, p)| v * p).sum::<f64>() / size[k])
        .collect();
    let mut x = vec![0.0; unknowns];
    let slack = 1e-12 * target.iter().fold(1.0, |m: f64, t| m.max(t.abs()));
    for _ in 0..MAX_PASSES {
        let mut moved: f64 = 0.0;
        for k in 0..unknowns {
            let others = dot(&gram[k], &x) - gram[k][k] * x[k];
            let diagonal = gram[k][k] + RIDGE;
            let next = ((target[k] - others) / diagonal).max(0.0);
            moved = moved.max((next - x[k]).abs());
            x[k] = next;
        }
        if moved <= slack {
            break;
        }
    }
    x.iter().zip(&size).map(|(x, s)| x / s).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rates(down: f64, up: f64) -> Rates {
        PerDirection { down, up }
    }

    /// Samples of two accesses with these shares, used alone and together.
    fn made(rest: f64, shares: [Share; 2], draws: &[(u8, f64, f64)]) -> Vec<PowerSample> {
        let names = ["nr", "wifi"];
        let sample = |(used, down, up): &(u8, f64, f64)| {
            let mut s = PowerSample {
                power_mw: rest,
                ..PowerSample::default()
            };
            for (i, name) in names.into_iter().enumerate() {
                if used >> i & 1 == 1 {
                    let own = rates(down * (1.0 + i as f64), up / (1.0 + i as f64));
                    s.power_mw += shares[i].mw(&own);
                    s.rates.insert(name.to_owned(), own);
                }
            }
            s
        };
        draws.iter().map(sample).collect()
    }

    proptest! {
        /// Power that shares made is given back to them.
        #[test]
        fn shares_come_back(
            rest in 0.0..3000.0f64,
            nr in (0.0..3000.0f64, 0.0..20.0f64, 0.0..80.0f64),
            wifi in (0.0..900.0f64, 0.0..20.0f64, 0.0..20.0f64),
            draws in prop::collection::vec((0u8..4, 1.0..200.0f64, 0.1..40.0f64), 60..100),
        ) {
            let share = |(in_use_mw, down, up)| Share { in_use_mw, mw_per_mbps: rates(down, up) };
            let shares = [share(nr), share(wifi)];
            let samples = made(rest, shares, &draws);
            let found = attribute(&samples).unwrap();
            for s in &samples {
                let sum: f64 = s.rates.iter().map(|(name, r)| found.mw(name, r)).sum();
                let error = (found.rest_mw + sum) / s.power_mw.max(1.0) - 1.0;
                prop_assert!(s.power_mw < 1.0 || error.abs() < 0.01, "{error}: {found:?}");
                for (name, r) in &s.rates {
                    let own = shares[usize::from(name == "wifi")].mw(r);
                    let off = (found.mw(name, r) - own).abs();
                    prop_assert!(off < 0.02 * s.power_mw + 1.0, "{name}: {off} of {}", s.power_mw);
                }
            }
        }

        #[test]
        fn nothing_is_negative(
            draws in prop::collection::vec((0u8..4, 0.0..200.0f64, 0.0..40.0f64, 0.0..9000.0f64), 21..60),
        ) {
            let samples: Vec<PowerSample> = draws
                .iter()
                .map(|(used, down, up, power_mw)| {
                    let none = [Share::default(); 2];
                    let mut s = made(0.0, none, &[(*used, *down, *up)]).remove(0);
                    s.power_mw = *power_mw;
                    s
                })
                .collect();
            if let Some(a) = attribute(&samples) {
                let all = a.shares.values();
                let all = all.flat_map(|s| [s.in_use_mw, s.mw_per_mbps.down, s.mw_per_mbps.up]);
                prop_assert!(all.chain([a.rest_mw]).all(|v| v >= 0.0 && v.is_finite()), "{a:?}");
            }
        }
    }

    #[test]
    fn too_little_is_not_attributed() {
        assert_eq!(attribute(&[]), None);
        let one = made(1000.0, [Share::default(); 2], &[(1, 5.0, 1.0); 11]);
        assert_eq!(attribute(&one), None);
        let twelve = made(1000.0, [Share::default(); 2], &[(1, 5.0, 1.0); 12]);
        let found = attribute(&twelve).unwrap();
        assert!(found.r2.is_none() && found.shares.contains_key("nr"));
        let mut broken = twelve;
        broken[3].power_mw = f64::NAN;
        assert_eq!(attribute(&broken), None);
    }
}
