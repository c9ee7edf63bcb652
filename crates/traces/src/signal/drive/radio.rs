//! Reception of the device at one place: powers of every sector in reach, and which of
//! them stand out.

use braid_core::seed::{self, Rng};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use super::super::measurement::Heard;
use super::super::sinr::{SinrModel, milliwatts};
use super::MAX_SECTORS;
use super::layout::{Layout, Site};
use super::path_loss::Link;
use super::spec::DriveSpec;

/// Sites farther than this are not heard, m: TR 38.901's longest model ends there.
const REACH: f64 = 10_000.0;
/// Weaker sectors are left out, dBm: 37 dB below the noise, and not heard.
const NEGLIGIBLE: f64 = -160.0;
/// Range of RSRP that devices report of LTE, dBm (TS 36.133 9.1.4).
const REPORTED: (f64, f64) = (-140.0, -44.0);
/// Subcarriers per MHz: 90 % of the bandwidth, 15 kHz each.
const SUBCARRIERS_PER_MHZ: f64 = 60.0;

/// The device, and the state of every link in reach.
pub(super) struct Device<'a> {
    spec: &'a DriveSpec,
    sites: &'a [Site],
    seed: u64,
    noise_mw: f64,
    /// Index of the first site in reach.
    first: usize,
    links: std::collections::VecDeque<State>,
    /// Power of a subcarrier and frequency in GHz, by operator and carrier, with
    /// the carrier's index.
    carriers: Vec<Vec<(f64, f64, usize)>>,
}

/// Large-scale state of the links to one site: all its sectors and carriers
/// share it (TR 38.901 7.5 step 4: one site, one set of parameters).
struct State {
    rng: Rng,
    x: f64,
    /// Uniform; line of sight while below its probability.
    sight: f64,
    /// Standard normal.
    shadow: f64,
}

impl<'a> Device<'a> {
    pub(super) fn new(spec: &'a DriveSpec, layout: &'a Layout, seed: u64) -> Self {
        let model = SinrModel {
            noise_figure_db: spec.receiver.noise_figure_db,
            ..SinrModel::default()
        };
        let mut index = 0;
        let carriers = spec.operator.iter().map(|o| {
            let carriers = o.carrier.iter().map(|c| {
                let per_subcarrier = 10.0 * (c.bandwidth_mhz * SUBCARRIERS_PER_MHZ).log10();
                index += 1;
                let power = c.power_dbm - per_subcarrier + c.antenna_dbi;
                (power, c.frequency_mhz / 1e3, index - 1)
            });
            carriers.collect()
        });
        Self {
            spec,
            sites: &layout.sites,
            seed,
            noise_mw: model.noise_mw(),
            first: 0,
            carriers: carriers.collect(),
            links: std::collections::VecDeque::new(),
        }
    }

    /// Returns the sectors heard at `x`: each with the index of its carrier, and as its cell
    /// the number of its sector.
    pub(super) fn hear(&mut self, x: f64) -> Vec<(Heard, usize)> {
        self.move_to(x);
        let count = self.carriers.iter().map(Vec::len).sum();
        let mut received: Vec<Vec<(usize, f64)>> = vec![Vec::new(); count];
        let r = &self.spec.receiver;
        for (i, state) in self.links.iter_mut().enumerate() {
            let number = self.first + i;
            let site = &self.sites[number];
            let (dx, dy) = (x - site.x, -site.y);
            let distance = dx.hypot(dy);
            let model = site.propagation;
            if distance > model.reach() {
                continue;
            }
            let sight = state.sight < model.line_of_sight(distance);
            for (carrier, (power, ghz, index)) in self.carriers[site.operator].iter().enumerate() {
                if !site.carriers[carrier] {
                    continue;
                }
                let link = Link {
                    distance,
                    site_height: site.height,
                    device_height: r.height_m,
                    frequency_ghz: *ghz,
                };
                let median =
                    power + site.power_offset_db - model.loss(&link, sight) - r.vehicle_loss_db
                        + state.shadow * model.shadow_db(&link, sight);
                if median < NEGLIGIBLE {
                    continue;
                }
                let bearing = dy.atan2(dx).to_degrees();
                for sector in 0..site.sectors {
                    let axis = site.azimuth + 360.0 * sector as f64 / site.sectors as f64;
                    let all_around = site.sectors == 1;
                    let gain = if all_around {
                        0.0
                    } else {
                        pattern_db(bearing - axis)
                    };
                    let dbm = median + gain;
                    if dbm > NEGLIGIBLE {
                        received[*index].push((number * MAX_SECTORS + sector, dbm));
                    }
                }
            }
        }
        let heard = received.iter().enumerate();
        heard.flat_map(|(c, r)| self.stand_out(c, r)).collect()
    }

    /// The sectors of carrier `c` that the device can tell from the rest, with
    /// the whole decibels that devices report.
    fn stand_out(&self, c: usize, received: &[(usize, f64)]) -> Vec<(Heard, usize)> {
        let r = &self.spec.receiver;
        let all: f64 = received.iter().map(|s| milliwatts(s.1)).sum::<f64>() + self.noise_mw;
        let least = milliwatts(r.detection_db);
        let heard = received.iter().filter(|(_, dbm)| {
            let mw = milliwatts(*dbm);
            *dbm >= r.sensitivity_dbm && mw >= least * (all - mw)
        });
        let heard = heard.map(|&(sector, dbm)| {
            let heard = Heard {
                cell: sector,
                rsrp_dbm: dbm.round().clamp(REPORTED.0, REPORTED.1),
                rsrq_db: None,
                sinr_db: None,
            };
            (heard, c)
        });
        heard.collect()
    }

    /// Lets shadowing and sight of every link follow the way to `x`.
    fn move_to(&mut self, x: f64) {
        while self.links.front().is_some() && self.sites[self.first].x < x - REACH {
            self.links.pop_front();
            self.first += 1;
        }
        for (state, site) in self.links.iter_mut().zip(&self.sites[self.first..]) {
            state.advance(site, x);
        }
        // A jittered site may stand before one already passed: it has no state
        // and is skipped by starting at the first in reach.
        if self.links.is_empty() {
            self.first = self.sites.partition_point(|s| s.x < x - REACH);
        }
        while let Some(site) = self.sites.get(self.first + self.links.len()) {
            if site.x > x + REACH {
                break;
            }
            let number = self.first + self.links.len();
            let mut rng = seed::stream(self.seed, &format!("drive site {number}"));
            let (sight, shadow) = (rng.random(), StandardNormal.sample(&mut rng));
            self.links.push_back(State {
                rng,
                x,
                sight,
                shadow,
            });
        }
    }
}

impl State {
    /// Correlation falls exponentially with the way, TR 38.901 7.4.4 and
    /// 7.6.3.3: shadowing as an autoregression, sight by drawing anew.
    fn advance(&mut self, site: &Site, x: f64) {
        let way = (x - self.x).abs();
        self.x = x;
        let distance = (x - site.x).hypot(site.y);
        let model = site.propagation;
        if self.rng.random::<f64>() > (-way / model.sight_distance()).exp() {
            self.sight = self.rng.random();
        }
        let sight = self.sight < model.line_of_sight(distance);
        let keep = (-way / model.shadow_distance(sight)).exp();
        let fresh: f64 = StandardNormal.sample(&mut self.rng);
        self.shadow = keep * self.shadow + (1.0 - keep * keep).sqrt() * fresh;
    }
}

/// Gain of a sector `degrees` off its axis, less its maximum, dB (TR 38.901
/// table 7.3-1, horizontally).
fn pattern_db(degrees: f64) -> f64 {
    let off = (degrees + 180.0).rem_euclid(360.0) - 180.0;
    -(12.0 * (off / 65.0).powi(2)).min(30.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_is_3_db_down_at_half_its_beam() {
        assert_eq!(pattern_db(0.0), 0.0);
        assert!((pattern_db(32.5) + 3.0).abs() < 1e-9);
        assert!((pattern_db(-392.5) + 3.0).abs() < 1e-9);
        assert_eq!(pattern_db(180.0), -30.0);
    }
}
