//! The best single path that multipath results are compared with.

use crate::scenario::Case;
use crate::summary::CaseResult;

/// Sets the best single path of every multipath result: plain TCP, or for Multipath QUIC
/// that on one access, too, in the same variant, with the same traffic and congestion
/// control, on one of its accesses, in this run. Repeats are compared with the same
/// repeat.
pub(super) fn add_best_single(results: &mut [CaseResult], cases: &[Case]) {
    let of = |name: &str| cases.iter().find(|c| c.name == name);
    let singles: Vec<(usize, f64)> = results
        .iter()
        .enumerate()
        .filter(|(_, r)| r.failed.is_none() && of(&r.name).is_some_and(|c| single(c).is_some()))
        .map(|(i, r)| (i, r.goodput_mbps))
        .collect();
    for k in 0..results.len() {
        let Some(mine) = of(&results[k].name).filter(|c| single(c).is_none()) else {
            continue;
        };
        let like_mine = |c: &&Case| {
            c.variant == mine.variant
                && c.traffic == mine.traffic
                && c.cc == mine.cc
                && c.events == mine.events
                && (c.engine == mine.engine || c.engine.get().is_reference())
        };
        let alone: Vec<(&str, f64)> = singles
            .iter()
            .filter(|(i, _)| results[*i].repeat == results[k].repeat)
            .filter_map(|(i, mbps)| {
                let access = of(&results[*i].name).filter(like_mine).and_then(single);
                Some((access?, *mbps))
            })
            .collect();
        let mut own = mine.accesses.iter().map(|a| a.name.as_str());
        let measured = |a: &&str| alone.iter().any(|(name, _)| name == a);
        let some = own.clone().filter(measured).map(str::to_owned).collect();
        let all = own.clone().all(|a| measured(&a));
        let of_mine = alone.iter().filter(|(a, _)| own.any(|m| m == *a));
        results[k].best_single_mbps = of_mine.map(|s| s.1).reduce(f64::max);
        results[k].measured_alone = if all { Vec::new() } else { some };
    }
}

/// The one access of a case that has one.
fn single(case: &Case) -> Option<&str> {
    case.engine.get().single(&case.accesses)
}

#[cfg(test)]
mod tests {
    use super::super::result::blank;
    use super::*;
    use crate::scenario::{Overrides, Scenario};
    use std::path::Path;

    const TEXT: &str = r#"
name = "t"
duration = "2 s"
[access.a]
kind = "5g"
down = { rate = "10 Mbit/s" }
[access.b]
kind = "wifi"
down = { rate = "20 Mbit/s" }
[[case]]
name = "a"
engine = "tcp"
access = "a"
cc = "reno"
traffic = "bulk"
[[case]]
name = "b"
engine = "tcp"
access = "b"
cc = "reno"
traffic = "bulk"
[[case]]
name = "other cc"
engine = "tcp"
access = "b"
cc = "cubic"
traffic = "bulk"
[[case]]
name = "m"
engine = "mptcp"
cc = "reno"
traffic = "bulk"
"#;

    #[test]
    fn best_single_is_of_the_same_kind() {
        let s = Scenario::parse(
            TEXT,
            Path::new("t.toml"),
            Path::new("."),
            &Overrides::default(),
        )
        .unwrap();
        let mut results: Vec<CaseResult> = s
            .cases
            .iter()
            .zip([9.0, 19.0, 19.9, 27.0])
            .map(|(c, g)| CaseResult {
                goodput_mbps: g,
                ..blank(c, 1)
            })
            .collect();
        add_best_single(&mut results, &s.cases);
        assert_eq!(results[3].best_single_mbps, Some(19.0));
        assert_eq!(results[0].best_single_mbps, None);
        assert_eq!(results[3].measured_alone, [""; 0], "all of them were");
        results[1].failed = Some("x".into());
        add_best_single(&mut results, &s.cases);
        assert_eq!(results[3].best_single_mbps, Some(9.0));
        // What the best access is, nobody knows then.
        assert_eq!(results[3].measured_alone, ["a"]);
        results[0].failed = Some("x".into());
        add_best_single(&mut results, &s.cases);
        let none = (results[3].best_single_mbps, results[3].measured_alone.len());
        assert_eq!(none, (None, 0));
    }
}
