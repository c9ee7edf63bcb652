//! Interfaces that two accesses ask for: the first in the file has them, and the second nothing.

use braid_core::Pattern;

/// Whether every interface that `second` stands for is one that `first` stands for. A `?` of
/// `first` counts only against whole names: in a pattern it could stand for less than a `*`.
fn covers(first: &Pattern, second: &Pattern) -> bool {
    let plain = second.is_name() || !first.as_str().contains('?');
    first == second || plain && first.matches(second.as_str())
}

/// Returns the first access of which another one before it has every interface: the other's
/// name, and its own.
pub(super) fn covered<'a>(
    accesses: impl Iterator<Item = (&'a str, &'a Pattern)>,
) -> Option<(&'a str, &'a str)> {
    let all: Vec<_> = accesses.collect();
    all.iter().enumerate().find_map(|(i, (name, pattern))| {
        let (other, _) = all[..i].iter().find(|(_, p)| covers(p, pattern))?;
        Some((*other, *name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn only_a_pattern_that_leaves_nothing_covers() {
        for (first, second, yes) in [
            ("wlan0", "wlan0", true),
            ("*", "wlan0", true),
            ("wlan*", "wlan1*", true),
            ("wl?n*", "wl?n*", true),
            ("wlan?", "wlan0", true),
            ("wlan0", "wlan*", false),
            ("wlan1*", "wlan*", false),
            ("a?b", "a*b", false),
            ("wlan0", "wlan1", false),
        ] {
            let covers = covers(&pattern(first), &pattern(second));
            assert_eq!(covers, yes, "{first} {second}");
        }
        let (nr, wifi, rest) = (pattern("wwan0"), pattern("wlan*"), pattern("*"));
        let of = |all: [(&'static str, &Pattern); 3]| {
            let owned = all.map(|(n, p)| (n, p.clone()));
            covered(owned.iter().map(|(n, p)| (*n, p))).map(|(a, b)| (a.to_owned(), b.to_owned()))
        };
        assert_eq!(of([("nr", &nr), ("wifi", &wifi), ("rest", &rest)]), None);
        let found = of([("rest", &rest), ("wifi", &wifi), ("nr", &nr)]);
        assert_eq!(found, Some(("rest".into(), "wifi".into())));
    }

    proptest! {
        #[test]
        fn what_is_covered_is_matched(a in "[ab*?]{1,6}", b in "[ab*?]{1,6}", n in "[ab]{1,6}") {
            let (a, b) = (pattern(&a), pattern(&b));
            if covers(&a, &b) && b.matches(&n) {
                prop_assert!(a.matches(&n), "{a} covers {b} but not {n}");
            }
        }
    }
}
