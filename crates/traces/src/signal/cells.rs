//! Statistics of section 3 of the paper: how many cells are there at a time, and
//! what do they carry for one operator, for the best single path, and together.

use serde::Serialize;

use super::paths::Paths;
use braid_core::Rate;

/// "More than this many cells" is counted, as in the paper.
pub const MANY: usize = 7;

/// Statistics of a recording or of a part of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellStatistics {
    /// `all`, or the segment.
    pub part: String,
    /// Length.
    pub seconds: usize,
    /// Cells that can be used at a time: at most one per carrier.
    pub available_mean: f64,
    /// Part of the time with 0, 1, 2, ... available cells.
    pub available: Vec<f64>,
    /// Cells that are heard.
    pub visible_mean: f64,
    /// Part of the time with more than seven cells heard.
    pub visible_above_7: f64,
    /// Every operator's best path, then the best of all, then all together.
    pub levels: Vec<Level>,
}

/// Capacity at one level of aggregation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Level {
    /// The operator's name and `SP`, `best single path` or `multipath`.
    pub name: String,
    /// Mean.
    pub mean_mbps: f64,
    /// 5th percentile over time.
    pub p5_mbps: f64,
    /// 10th percentile.
    pub p10_mbps: f64,
    /// 20th percentile.
    pub p20_mbps: f64,
    /// Median.
    pub median_mbps: f64,
    /// Multipath's mean over this, less one; null where this is zero.
    pub gain: Option<f64>,
    /// Multipath's 20th percentile over this one's; null where this is zero.
    pub p20_factor: Option<f64>,
}

/// Name of the level at which all paths are used.
pub const MULTIPATH: &str = "multipath";
/// Name of the level at which the best path is used.
pub const BEST: &str = "best single path";

/// Capacity of every level in every second, Mbit/s: operators, best, all.
pub fn levels(paths: &Paths) -> Vec<(String, Vec<f64>)> {
    let series = |f: &dyn Fn(&super::Now) -> Rate| -> Vec<f64> {
        paths.seconds.iter().map(|n| f(n).as_mbps()).collect()
    };
    let mut levels: Vec<(String, Vec<f64>)> = paths
        .operators
        .iter()
        .enumerate()
        .map(|(i, o)| (format!("{o} SP"), series(&|n| paths.operator_best(i, n))))
        .collect();
    levels.push((BEST.to_owned(), series(&super::Now::best)));
    levels.push((MULTIPATH.to_owned(), series(&super::Now::multipath)));
    levels
}

/// Statistics of all of `paths`, called `part`. All numbers are zero when there
/// is not one second.
pub fn statistics(paths: &Paths, part: &str) -> CellStatistics {
    let n = paths.seconds.len().max(1) as f64;
    let mean = |f: &dyn Fn(&super::Now) -> f64| paths.seconds.iter().map(f).sum::<f64>() / n;
    let most = paths.seconds.iter().map(|s| s.paths.len()).max();
    let mut available = vec![0.0; most.unwrap_or(0) + 1];
    for s in &paths.seconds {
        available[s.paths.len()] += 1.0 / n;
    }
    let series = levels(paths);
    let mut levels: Vec<Level> = series.iter().map(|(name, v)| level(name, v)).collect();
    if let Some(all) = levels.last().cloned() {
        for l in &mut levels {
            l.gain = (l.mean_mbps > 0.0).then(|| all.mean_mbps / l.mean_mbps - 1.0);
            l.p20_factor = (l.p20_mbps > 0.0).then(|| all.p20_mbps / l.p20_mbps);
        }
    }
    CellStatistics {
        part: part.to_owned(),
        seconds: paths.seconds.len(),
        available_mean: mean(&|s| s.paths.len() as f64),
        available,
        visible_mean: mean(&|s| s.visible() as f64),
        visible_above_7: mean(&|s| f64::from(u8::from(s.visible() > MANY))),
        levels,
    }
}

/// Statistics of all, then of every segment that occurs.
pub fn by_segment(paths: &Paths) -> Vec<CellStatistics> {
    let mut all = vec![statistics(paths, "all")];
    for name in &paths.segments {
        if let Ok(part) = paths.segment(name) {
            all.push(statistics(&part, name));
        }
    }
    all
}

fn level(name: &str, mbps: &[f64]) -> Level {
    let mut sorted = mbps.to_vec();
    sorted.sort_by(f64::total_cmp);
    let q = |q: f64| quantile(&sorted, q);
    Level {
        name: name.to_owned(),
        mean_mbps: mbps.iter().sum::<f64>() / mbps.len().max(1) as f64,
        p5_mbps: q(0.05),
        p10_mbps: q(0.10),
        p20_mbps: q(0.20),
        median_mbps: q(0.5),
        gain: None,
        p20_factor: None,
    }
}

/// The smallest value that at least the part `q` of `sorted` does not exceed;
/// zero of none.
pub fn quantile(sorted: &[f64], q: f64) -> f64 {
    let rank = (q * sorted.len() as f64).ceil() as usize;
    let index = rank.clamp(1, sorted.len().max(1)) - 1;
    sorted.get(index).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::paths::{Now, Path, PathCell};
    use super::*;

    fn cell(operator_index: usize, channel: usize) -> PathCell {
        PathCell {
            operator: ["a", "b"][operator_index].into(),
            carrier: channel.to_string(),
            cell: "1".into(),
            channel,
            operator_index,
        }
    }

    fn now(rates: &[(usize, f64)], visible: usize, segment: usize) -> Now {
        let path = |&(cell, mbps): &(usize, f64)| Path {
            cell,
            rate: Rate::from_mbps(mbps),
        };
        let paths: Vec<Path> = rates.iter().map(path).collect();
        let mut heard = paths.clone();
        heard.resize(visible, path(&(0, 0.0)));
        Now {
            paths,
            heard,
            segment: Some(segment),
        }
    }

    #[test]
    fn by_hand() {
        let paths = Paths {
            operators: vec!["a".into(), "b".into()],
            cells: vec![cell(0, 0), cell(0, 1), cell(1, 2)],
            segments: vec!["town".into(), "road".into(), "never".into()],
            seconds: vec![
                now(&[(2, 50.0), (0, 30.0), (1, 10.0)], 9, 0),
                now(&[(0, 20.0)], 1, 1),
                now(&[], 0, 1),
                now(&[(0, 40.0), (2, 10.0)], 7, 1),
            ],
        };
        let s = statistics(&paths, "all");
        assert_eq!((s.available_mean, s.visible_mean), (1.5, 4.25));
        assert_eq!(s.visible_above_7, 0.25);
        assert_eq!(s.available, [0.25, 0.25, 0.25, 0.25]);
        let means: Vec<_> = s.levels.iter().map(|l| (&*l.name, l.mean_mbps)).collect();
        let expected = [
            ("a SP", 22.5),
            ("b SP", 15.0),
            (BEST, 27.5),
            (MULTIPATH, 40.0),
        ];
        assert_eq!(means, expected);
        assert!((s.levels[1].gain.unwrap() - 25.0 / 15.0).abs() < 1e-12);
        assert_eq!((s.levels[0].p5_mbps, s.levels[0].median_mbps), (0.0, 20.0));
        assert_eq!(s.levels[1].p20_factor, None);
        let parts: Vec<_> = by_segment(&paths)
            .into_iter()
            .map(|p| (p.part, p.seconds))
            .collect();
        let expected = [("all", 4), ("town", 1), ("road", 3)].map(|(p, n)| (p.to_owned(), n));
        assert_eq!(parts, expected);
        assert_eq!(
            statistics(&Paths::default(), "none").levels[0].mean_mbps,
            0.0
        );
    }
}
