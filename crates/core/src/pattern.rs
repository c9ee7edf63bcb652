//! Names of interfaces, with `*` for any characters and `?` for any one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest name that the kernel allows (`IFNAMSIZ` less the final zero).
const NAME_MAX: usize = 15;

/// A name or a pattern of names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern(String);

impl FromStr for Pattern {
    type Err = String;

    /// Checks that an interface could be called so.
    fn from_str(s: &str) -> Result<Self, String> {
        let fixed = s.chars().filter(|c| *c != '*').count();
        if s.is_empty() || fixed > NAME_MAX {
            return Err(format!(
                "\"{s}\" is no name of an interface: it has 1 to {NAME_MAX} characters, \
                 or * for any and ? for any one"
            ));
        }
        if s.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control()) {
            return Err(format!(
                "\"{s}\" is no name of an interface: no slash, no blank"
            ));
        }
        Ok(Self(s.to_owned()))
    }
}

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(s: String) -> Result<Self, String> {
        s.parse()
    }
}

impl From<Pattern> for String {
    fn from(p: Pattern) -> Self {
        p.0
    }
}

impl Pattern {
    /// Whether it stands for one name only.
    pub fn is_name(&self) -> bool {
        !self.0.contains(['*', '?'])
    }

    /// Whether it stands for `name`.
    pub fn matches(&self, name: &str) -> bool {
        glob(self.0.as_bytes(), name.as_bytes())
    }

    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Matches `name` against `pattern` with one step back, to the last `*`: time is at most the
/// product of the lengths.
pub fn glob(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(&c) if c == b'?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    p = at + 1;
                    n = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, slow.
    fn by_definition(p: &[u8], n: &[u8]) -> bool {
        match (p.first(), n.first()) {
            (None, None) => true,
            (Some(b'*'), _) => {
                by_definition(&p[1..], n) || (!n.is_empty() && by_definition(p, &n[1..]))
            }
            (Some(b'?'), Some(_)) => by_definition(&p[1..], &n[1..]),
            (Some(a), Some(b)) => a == b && by_definition(&p[1..], &n[1..]),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn matches_by_definition(p in "[ab*?]{1,8}", n in "[ab]{0,8}") {
            prop_assert_eq!(glob(p.as_bytes(), n.as_bytes()), by_definition(p.as_bytes(), n.as_bytes()));
        }

        #[test]
        fn any_text_is_read_or_refused(s in "\\PC*") {
            if let Ok(p) = s.parse::<Pattern>() {
                prop_assert_eq!(p.as_str(), s.as_str());
            }
        }
    }

    #[test]
    fn only_possible_names_are_taken() {
        for good in ["eth0", "wwan*", "wl?p3s0", "*"] {
            assert!(good.parse::<Pattern>().is_ok(), "{good}");
        }
        for bad in ["", "a/b", "a b", "abcdefghijklmnop"] {
            assert!(bad.parse::<Pattern>().is_err(), "{bad}");
        }
    }
}
