//! Interface names made from the names of devices and accesses.

use std::collections::HashSet;

/// Longest interface name (`IFNAMSIZ` less the final zero), bytes.
const LONGEST: usize = 15;

/// The names given out in one namespace.
#[derive(Debug)]
pub(super) struct Names(HashSet<String>);

impl Names {
    pub(super) fn new() -> Self {
        // `all` and `default` are directories beside the interfaces' own in
        // /proc/sys/net.
        Self(["lo", "all", "default"].map(String::from).into())
    }

    /// A new interface name as near to `wanted` as the kernel allows.
    pub(super) fn give(&mut self, wanted: &str) -> String {
        let base = clean(wanted);
        let mut name = cut(&base, LONGEST).to_string();
        let mut n = 2;
        while !self.0.insert(name.clone()) {
            let suffix = n.to_string();
            name = format!("{}{suffix}", cut(&base, LONGEST - suffix.len()));
            n += 1;
        }
        name
    }

    /// Returns a new name for an interface named after a device and one of its
    /// accesses: what is too long is cut off both, the access keeping more.
    pub(super) fn give_pair(&mut self, device: &str, access: &str) -> String {
        let (device, access) = (clean(device), clean(access));
        let access = cut(&access, 9.max(LONGEST.saturating_sub(device.len() + 1)));
        let device = cut(&device, LONGEST - 1 - access.len());
        self.give(&format!("{device}-{access}"))
    }
}

/// Keeps letters, digits, `_`, `-` and `.`, and has at least one of them that
/// is not a dot.
fn clean(name: &str) -> String {
    let ok = |c: char| {
        if c.is_ascii_alphanumeric() || "_-.".contains(c) {
            c
        } else {
            '-'
        }
    };
    let name: String = name.chars().map(ok).collect();
    if name.chars().all(|c| c == '.') {
        format!("if{name}")
    } else {
        name
    }
}

/// The first `len` bytes; what is cut is ASCII.
fn cut(name: &str, len: usize) -> &str {
    &name[..name.len().min(len)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_stay_what_they_are_where_they_can() {
        let mut names = Names::new();
        assert_eq!(names.give("nr"), "nr");
        assert_eq!(names.give("nr"), "nr2");
        assert_eq!(names.give("lo"), "lo2");
        assert_eq!(names.give("5g at home"), "5g-at-home");
        assert_eq!(names.give("a-very-long-access-name"), "a-very-long-acc");
        assert_eq!(names.give("a-very-long-access-name"), "a-very-long-ac2");
        assert_eq!(names.give(".."), "if..");
        assert_eq!(names.give_pair("cpe", "wifi"), "cpe-wifi");
        assert_eq!(
            names.give_pair("station-number-7", "wifi"),
            "station-nu-wifi"
        );
        assert_eq!(
            names.give_pair("station-number-8", "millimetre-wave"),
            "stati-millimetr"
        );
        assert_eq!(names.give_pair("c", "millimetre-wave"), "c-millimetre-wa");
    }

    proptest! {
        #[test]
        fn every_name_is_one_the_kernel_takes(wanted in proptest::collection::vec((".{0,30}", ".{0,30}"), 1..20)) {
            let mut names = Names::new();
            let mut seen = HashSet::new();
            for (a, b) in &wanted {
                for name in [names.give(a), names.give_pair(a, b)] {
                    prop_assert!(!name.is_empty() && name.len() <= LONGEST);
                    prop_assert!(name != "." && name != "..");
                    prop_assert!(!name.contains(['/', ':', '%']) && !name.contains(char::is_whitespace));
                    prop_assert!(seen.insert(name));
                }
            }
        }
    }
}
