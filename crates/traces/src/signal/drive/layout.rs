//! The road and the sites along it, drawn from a seed.

use braid_core::seed;
use rand::RngExt;

use super::path_loss::Propagation;
use super::spec::{DriveSpec, Grid};

/// A site of one operator.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) operator: usize,
    /// Along the road and across it, m.
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) height: f64,
    pub(super) propagation: Propagation,
    pub(super) sectors: usize,
    /// Where its first sector points, degrees.
    pub(super) azimuth: f64,
    pub(super) power_offset_db: f64,
    /// Whether it has each carrier of its operator.
    pub(super) carriers: Vec<bool>,
}

/// The drive: stretches over time and distance, and every site.
pub(super) struct Layout {
    /// Start in seconds, in metres, speed in m/s, index of the area.
    stretches: Vec<(f64, f64, f64, usize)>,
    /// Ascending along the road.
    pub(super) sites: Vec<Site>,
}

impl Layout {
    pub(super) fn draw(spec: &DriveSpec, seed: u64, seconds: u32) -> Self {
        let (mut at_s, mut at_m) = (0.0, 0.0);
        let mut layout = Self {
            stretches: Vec::new(),
            sites: Vec::new(),
        };
        let mut rng = seed::stream(seed, "drive layout");
        for s in spec.stretch.iter().cycle() {
            if at_s >= f64::from(seconds) {
                break;
            }
            // `check` has found the area.
            let Some((index, _, area)) = spec.area.get_full(&s.area) else {
                continue;
            };
            let (length_s, speed) = (s.minutes * 60.0, area.speed_kmh / 3.6);
            layout.stretches.push((at_s, at_m, speed, index));
            let length = length_s * speed;
            for (o, operator) in spec.operator.iter().enumerate() {
                let Some(grid) = area.sites.get(&operator.name) else {
                    continue;
                };
                let shares: Vec<f64> = operator
                    .carrier
                    .iter()
                    .map(|c| grid.carriers.get(&c.name).copied().unwrap_or(0.0))
                    .collect();
                let site = |x, y, rng: &mut seed::Rng| Site {
                    operator: o,
                    x,
                    y,
                    height: grid.height_m,
                    propagation: area.propagation,
                    sectors: grid.sectors,
                    azimuth: rng.random::<f64>() * 120.0,
                    power_offset_db: grid.power_offset_db,
                    carriers: shares.iter().map(|p| rng.random::<f64>() < *p).collect(),
                };
                let places = places(grid, at_m, length, &mut rng);
                let sites = places.into_iter().map(|(x, y)| site(x, y, &mut rng));
                layout.sites.extend(sites);
            }
            at_s += length_s;
            at_m += length;
        }
        layout.sites.sort_by(|a, b| a.x.total_cmp(&b.x));
        layout
    }

    /// Place along the road, m, and index of the area at `second`.
    pub(super) fn position(&self, second: u32) -> (f64, usize) {
        let t = f64::from(second);
        let next = self.stretches.partition_point(|s| s.0 <= t);
        let (at_s, at_m, speed, area) = self.stretches[next.saturating_sub(1)];
        (at_m + (t - at_s) * speed, area)
    }
}

/// Where the sites of one stretch stand: as many columns as fit, at least one
/// with the probability that the stretch is long enough for it.
fn places(grid: &Grid, from: f64, length: f64, rng: &mut seed::Rng) -> Vec<(f64, f64)> {
    let spacing = grid.spacing_m;
    let phase = rng.random::<f64>() * spacing;
    let columns = ((length - phase) / spacing).ceil().max(0.0) as u32;
    let mut places = Vec::new();
    for column in 0..columns {
        for row in 0..grid.rows {
            let mut off = || (rng.random::<f64>() * 2.0 - 1.0) * grid.jitter * spacing;
            let x = from + phase + f64::from(column) * spacing + off();
            let y = (f64::from(row) - f64::from(grid.rows - 1) / 2.0) * spacing + off();
            places.push((x, y));
        }
    }
    places
}
