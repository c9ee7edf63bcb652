//! Domain names and the addresses that answers of DNS give them, for rules by domain
//! (`docs/rules.md`).

mod answer;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

pub use answer::{Answer, DnsError, read};

/// Characters of a name at most, without the dot at its end (RFC 1035 2.3.4).
const MAX_NAME: usize = 253;
/// Characters of a label at most.
const MAX_LABEL: usize = 63;

/// Pattern of domain names: a name, or with `*.` in front all names below one.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Domain {
    /// Name in small letters.
    name: String,
    is_below: bool,
}

impl Domain {
    /// Whether a name is of the pattern. Letters count alike, small or not (RFC 4343).
    pub fn includes(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name);
        match self.is_below {
            false => name.eq_ignore_ascii_case(&self.name),
            true => {
                let Some(more) = name.len().checked_sub(self.name.len() + 1) else {
                    return false;
                };
                let (front, end) = name.as_bytes().split_at(more);
                let is_end = end[1..].eq_ignore_ascii_case(self.name.as_bytes());
                !front.is_empty() && end[0] == b'.' && is_end
            }
        }
    }
}

impl FromStr for Domain {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let (name, is_below) = match s.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (s, false),
        };
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_label = |l: &str| !l.is_empty() && l.len() <= MAX_LABEL && l.chars().all(letter);
        match name.len() <= MAX_NAME && name.split('.').all(is_label) {
            true => Ok(Self { name, is_below }),
            false => Err(format!(
                "\"{s}\" is no domain: expected a name such as example.org, or *.example.org for all \
                 below it; other letters than ASCII in their form of DNS (xn--...)"
            )),
        }
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let below = if self.is_below { "*." } else { "" };
        write!(f, "{below}{}", self.name)
    }
}
