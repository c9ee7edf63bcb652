//! Counters of the kernel at the two ends of a case.

use braid_api::Counters;

use crate::summary::CaseResult;

/// For the run log: what the kernel counted of TCP, Multipath TCP and UDP.
pub(super) fn counters_line(end: &str, counters: &Counters) -> String {
    let mut line = format!("counters of {end}:");
    for (name, value) in &counters.counters {
        let told = ["MPTcpExt.", "TcpExt.", "Udp.", "Udp6."];
        if told.iter().any(|group| name.starts_with(group)) {
            line += &format!(" {name}={value}");
        }
    }
    line
}

/// Sets what was counted of Multipath TCP. The receiver counts overruns, the
/// sender what it sent again, and either end can be either.
pub(super) fn add(r: &mut CaseResult, ends: &[(&'static str, Counters)]) {
    if ends.is_empty() {
        return;
    }
    // Those that are zero are not named.
    let of = |name: &str| Some(ends.iter().filter_map(|(_, c)| c.counters.get(name)).sum());
    r.window_overruns = of("MPTcpExt.NoDSSInWindow");
    r.reinjections = of("MPTcpExt.MPTCPRetrans");
    if let Some(n) = r.window_overruns.filter(|n| *n > 0) {
        r.notes
            .push(format!("receive window overrun {n} times (NoDSSInWindow)"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(pairs: &[(&str, u64)]) -> Counters {
        Counters {
            t_ns: 0,
            counters: pairs.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect(),
        }
    }

    #[test]
    fn both_ends_count() {
        let ends = [
            ("proxy", counters(&[("MPTcpExt.MPTCPRetrans", 7)])),
            (
                "cpe",
                counters(&[("MPTcpExt.NoDSSInWindow", 3), ("MPTcpExt.MPTCPRetrans", 1)]),
            ),
        ];
        let mut r = CaseResult::default();
        add(&mut r, &ends);
        assert_eq!((r.window_overruns, r.reinjections), (Some(3), Some(8)));
        assert!(r.notes[0].contains("overrun 3 times"), "{:?}", r.notes);
        let mut r = CaseResult::default();
        add(&mut r, &[("proxy", counters(&[]))]);
        assert_eq!((r.window_overruns, r.notes.len()), (Some(0), 0));
        let mut r = CaseResult::default();
        add(&mut r, &[]);
        assert_eq!(r.window_overruns, None);
    }
}
