//! Delay of a path from its capacity: measurements of signals have none, so it
//! is assumed. The paper draws a curve through two points, d(50) = 20 and
//! d(200) = 100 (figure 3); ours is the exponential through them.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use braid_core::Rate;

/// Longest delay that a model gives.
pub const MAX_DELAY: Duration = Duration::from_secs(10);

/// One-way delay as a function of capacity.
#[derive(Clone, Debug, PartialEq)]
pub enum DelayModel {
    /// d(C) = a (b / a)^((C - A) / (B - A)) through (A Mbit/s, a ms) and
    /// (B Mbit/s, b ms).
    Exponential([(f64, f64); 2]),
    /// Straight lines between points of (Mbit/s, ms), ascending in rate; flat
    /// before the first and after the last.
    Points(Vec<(f64, f64)>),
}

impl Default for DelayModel {
    /// d = 20 * 5^((C - 50) / 150) ms: the exponential through the paper's
    /// points. **That delay grows with capacity is the paper's**, whose points
    /// are "typical 5G values"; which curve joins them is our assumption.
    fn default() -> Self {
        Self::Exponential([(50.0, 20.0), (200.0, 100.0)])
    }
}

impl DelayModel {
    /// One-way delay of a path of `capacity`, at most [`MAX_DELAY`], rounded to
    /// microseconds.
    pub fn one_way(&self, capacity: Rate) -> Duration {
        let c = capacity.as_mbps();
        let ms = match self {
            Self::Exponential([(c0, d0), (c1, d1)]) => d0 * (d1 / d0).powf((c - c0) / (c1 - c0)),
            Self::Points(points) => between(points, c),
        };
        let us = (ms * 1e3).round().clamp(0.0, MAX_DELAY.as_micros() as f64);
        Duration::from_micros(us as u64)
    }
}

fn between(points: &[(f64, f64)], c: f64) -> f64 {
    let after = points.partition_point(|(rate, _)| *rate <= c);
    match (after.checked_sub(1).map(|i| points[i]), points.get(after)) {
        (Some((c0, d0)), Some(&(c1, d1))) => d0 + (d1 - d0) * (c - c0) / (c1 - c0),
        (Some((_, d)), None) => d,
        (None, Some(&(_, d))) => d,
        (None, None) => 0.0,
    }
}

impl fmt::Display for DelayModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, points) = match self {
            Self::Exponential(p) => ("exp", &p[..]),
            Self::Points(p) => ("points", &p[..]),
        };
        let points: Vec<String> = points.iter().map(|(c, d)| format!("{c}={d}")).collect();
        write!(f, "{kind}:{}", points.join(","))
    }
}

impl FromStr for DelayModel {
    type Err = String;

    /// Reads `exp:MBPS=MS,MBPS=MS`, `points:MBPS=MS,...` or a constant such as
    /// `20 ms`.
    fn from_str(s: &str) -> Result<Self, String> {
        let expected = || {
            format!(
                "\"{s}\" is no delay: expected a time such as \"20 ms\", \
                 exp:MBPS=MS,MBPS=MS or points:MBPS=MS,... with rates ascending and \
                 delays of 0.001 to 10000 ms"
            )
        };
        let Some((kind, rest)) = s.split_once(':') else {
            let d = braid_core::units::parse_duration(s).map_err(|_| expected())?;
            let ms = d.as_secs_f64() * 1e3;
            return if d <= MAX_DELAY {
                Ok(Self::Points(vec![(0.0, ms)]))
            } else {
                Err(expected())
            };
        };
        let number = |v: &str| v.trim().parse::<f64>().ok().filter(|v| v.is_finite());
        let point = |p: &str| {
            let (c, d) = p.split_once('=')?;
            let (c, d) = (number(c)?, number(d)?);
            ((0.0..=1e6).contains(&c) && (0.001..=1e4).contains(&d)).then_some((c, d))
        };
        let points: Option<Vec<(f64, f64)>> = rest.split(',').map(point).collect();
        let points = points.ok_or_else(expected)?;
        if points.windows(2).any(|w| w[0].0 >= w[1].0) {
            return Err(expected());
        }
        match (kind, &points[..]) {
            ("exp", &[a, b]) => Ok(Self::Exponential([a, b])),
            ("points", _) => Ok(Self::Points(points)),
            _ => Err(expected()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(m: &DelayModel, mbps: f64) -> f64 {
        m.one_way(Rate::from_mbps(mbps)).as_secs_f64() * 1e3
    }

    #[test]
    fn passes_through_the_papers_points() {
        let m = DelayModel::default();
        assert_eq!((ms(&m, 50.0), ms(&m, 200.0)), (20.0, 100.0));
        // By hand: 20 * 5^(-1/3) and 20 * 5^(1/2).
        assert!((ms(&m, 0.0) - 11.696).abs() < 1e-3);
        assert!((ms(&m, 125.0) - 44.721).abs() < 1e-3);
        assert_eq!(m.one_way(Rate::from_mbps(1e6)), MAX_DELAY);
    }

    #[test]
    fn reads_and_prints() {
        for text in ["exp:50=20,200=100", "points:0=10,100=30", "points:0=20"] {
            assert_eq!(text.parse::<DelayModel>().unwrap().to_string(), text);
        }
        let constant: DelayModel = "20 ms".parse().unwrap();
        assert_eq!((ms(&constant, 0.0), ms(&constant, 900.0)), (20.0, 20.0));
        let lines: DelayModel = "points:10=10,110=30".parse().unwrap();
        assert_eq!(
            [0.0, 60.0, 500.0].map(|c| ms(&lines, c)),
            [10.0, 20.0, 30.0]
        );
        for bad in [
            "",
            "fast",
            "20",
            "11 s",
            "exp:1=1",
            "exp:2=1,1=2",
            "points:",
            "points:1=-1",
            "points:1=NaN",
            "exp:1=0,2=1",
            "exp:1=1,2=2,3=3",
            "cubic:1=1",
        ] {
            assert!(
                bad.parse::<DelayModel>().unwrap_err().contains("expected"),
                "{bad}"
            );
        }
    }

    proptest! {
        #[test]
        fn stays_in_range(c in 0.0f64..2e6) {
            for m in [DelayModel::default(), "exp:10=100,20=1".parse().unwrap(), "points:5=1,9=8".parse().unwrap()] {
                prop_assert!(m.one_way(Rate::from_mbps(c)) <= MAX_DELAY);
            }
        }
    }
}
