//! The best single path that multipath results are compared with.

use crate::scenario::Case;
use crate::summary::CaseResult;

/// Sets the best single path of every multipath result: plain TCP, or for Multipath QUIC
/// that on one access, too, in the same variant, with the same traffic and congestion
/// control, on one of its accesses, in this run. Where a case leaves the congestion control to its
/// engine and no single path does, that of the single path is any. Repeats are compared with the
/// same repeat.
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
        let like_mine = |c: &Case| {
            c.variant == mine.variant
                && (c.traffic == mine.traffic && c.from == mine.from && c.beside == mine.beside)
                && c.events == mine.events
                && (c.engine == mine.engine || c.engine.get().is_reference())
        };
        let of_same_repeat = singles
            .iter()
            .filter(|(i, _)| results[*i].repeat == results[k].repeat);
        let mut alike: Vec<(&Case, f64)> = of_same_repeat
            .filter_map(|(i, mbps)| Some((of(&results[*i].name)?, *mbps)))
            .filter(|(c, _)| like_mine(c))
            .collect();
        if mine.cc.is_some() || alike.iter().any(|(c, _)| c.cc.is_none()) {
            alike.retain(|(c, _)| c.cc == mine.cc);
        }
        let alone: Vec<(&str, f64)> = alike
            .into_iter()
            .filter_map(|(c, mbps)| Some((single(c)?, mbps)))
            .collect();
        let own = mine.accesses.iter().map(|a| a.name.as_str());
        let measured = |a: &&str| alone.iter().any(|(name, _)| name == a);
        let some = own.clone().filter(measured).map(str::to_owned).collect();
        let all = own.clone().all(|a| measured(&a));
        let of_mine = alone.iter().filter(|(a, _)| own.clone().any(|m| m == *a));
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
[[case]]
name = "by default"
engine = "mpquic"
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
            .zip([9.0, 19.0, 19.9, 27.0, 28.0])
            .map(|(c, g)| CaseResult {
                goodput_mbps: g,
                ..blank(c, 1)
            })
            .collect();
        add_best_single(&mut results, &s.cases);
        assert_eq!(results[3].best_single_mbps, Some(19.0));
        assert_eq!(results[4].best_single_mbps, Some(19.9), "of any");
        // In whatever order they were measured.
        results.swap(0, 1);
        results[1].goodput_mbps = 21.0;
        add_best_single(&mut results, &s.cases);
        assert_eq!(results[3].best_single_mbps, Some(21.0));
        results[1].goodput_mbps = 9.0;
        results.swap(0, 1);
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
