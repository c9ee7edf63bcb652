//! The tables of `net.mptcp.weights`, by which Braid's kernel schedulers know
//! what share each path is to have (`kernel/README.md`).

use std::net::IpAddr;

use ipnet::IpNet;

use crate::{offer, support};

/// The sysctl.
pub const SYSCTL: &str = "net.mptcp.weights";
/// The largest weight that the kernel takes.
pub const MOST: u32 = 65_535;
/// The largest number of an access.
pub const ACCESSES: u8 = 15;
/// Weights that are not whole numbers are multiplied by at most this.
const FINEST: f64 = 1000.0;

/// One rule: paths to or from these addresses have this weight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The address of the access, which the device has, or the network that it is in. Of
    /// networks in each other the smallest counts.
    pub net: IpNet,
    /// Whether it is the far end's: at the proxy.
    pub remote: bool,
    /// Share, 0 or more.
    pub weight: f64,
    /// A number for the access, 1 to [`ACCESSES`]: a connection's subflows by the same one
    /// divide its weight equally. 0: each counts alone. Braid's own kernel, which has
    /// [`table`], does not know of it.
    pub access: u8,
}

/// Whether pacing rates stand in for this scheduler where the kernel lacks it
/// (`bpf::Wrr`).
pub fn are_pacing(scheduler: &str) -> bool {
    offer::SCHEDULERS.contains(&scheduler)
}

/// Whether the kernel of the calling thread's namespace is Braid's own, which has
/// weights, of single addresses.
pub fn known_to_kernel() -> bool {
    support::sysctl(SYSCTL).is_some()
}

/// The text of the sysctl for `rules`. It knows single addresses only, and a rule for a
/// network counts for its first.
pub fn table(rules: &[Rule]) -> String {
    let weights: Vec<f64> = rules.iter().map(|r| r.weight).collect();
    let lines: Vec<String> = rules
        .iter()
        .zip(whole(&weights))
        .map(|(r, w)| {
            let at = match r.net.addr() {
                IpAddr::V4(a) => a.to_string(),
                IpAddr::V6(a) => format!("[{a}]"),
            };
            if r.remote {
                format!("* {at} {w}")
            } else {
                format!("{at} {w}")
            }
        })
        .collect();
    lines.join("; ")
}

/// The smallest whole numbers in the ratio of `weights`, to a thousandth of
/// the unit: a scheduler's turns are as long as its numbers are large. No
/// weight above 0 becomes 0.
pub fn whole(weights: &[f64]) -> Vec<u32> {
    let most = weights.iter().copied().fold(0.0, f64::max);
    let fits = |f: f64| {
        weights
            .iter()
            .all(|w| ((w * f).round() - w * f).abs() < 1e-9)
    };
    let factor = (1..=FINEST as u32).map(f64::from).find(|&f| fits(f));
    let factor = factor
        .unwrap_or(FINEST)
        .min(f64::from(MOST) / most.max(1.0));
    weights
        .iter()
        .map(|w| match (w * factor).round() {
            n if n < 1.0 && *w > 0.0 => 1,
            n => n.clamp(0.0, f64::from(MOST)) as u32,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whole_numbers_stay_and_fractions_grow_no_more_than_needed() {
        for (given, want) in [
            (&[30.0, 100.0, 1.0][..], &[30, 100, 1][..]),
            (&[2.5, 1.0], &[5, 2]),
            (&[0.1, 0.2, 0.7], &[1, 2, 7]),
            (&[1.0, 0.0], &[1, 0]),
            (&[1e6, 1.0], &[65_535, 1]),
            (&[1e-5, 1.0], &[1, 1000]),
            (&[], &[]),
        ] {
            assert_eq!(whole(given), want, "{given:?}");
        }
    }

    #[test]
    fn a_table_names_the_end_that_has_the_address() {
        let rule = |address: &str, remote, weight| Rule {
            net: address.parse::<IpAddr>().unwrap().into(),
            remote,
            weight,
            access: 0,
        };
        let rules = [rule("10.77.1.2", true, 30.0), rule("fd77::2", true, 1.0)];
        assert_eq!(table(&rules), "* 10.77.1.2 30; * [fd77::2] 1");
        assert_eq!(table(&[rule("10.77.1.2", false, 2.0)]), "10.77.1.2 2");
        assert_eq!(table(&[]), "");
    }

    proptest! {
        #[test]
        fn ratios_hold(w in prop::collection::vec(1u32..1000, 1..8), by in 1u32..100) {
            let given: Vec<f64> = w.iter().map(|&w| f64::from(w) / f64::from(by)).collect();
            let got = whole(&given);
            for (a, b) in w.iter().zip(&got) {
                // a : w[0] as b : got[0]
                let (x, y) = (u64::from(*a) * u64::from(got[0]), u64::from(*b) * u64::from(w[0]));
                prop_assert_eq!(x, y);
            }
        }
    }
}
