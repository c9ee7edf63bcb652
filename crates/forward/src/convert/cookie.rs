//! Cookie of the Convert Protocol (RFC 8803 4.2.7): a secret that devices and their proxy know.

use std::fmt;

use subtle::ConstantTimeEq;

/// Secret text. It is not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Cookie(Box<str>);

impl Cookie {
    /// Least length, bytes: what is shorter is guessed.
    pub const MIN: usize = 16;
    /// Greatest length, bytes.
    pub const MAX: usize = 256;

    /// Returns the cookie of a text, without white space around it.
    ///
    /// # Errors
    /// The text is too short, too long or no text of printable letters: what was expected.
    pub fn new(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let printable = text.bytes().all(|b| b.is_ascii_graphic());
        match printable && (Self::MIN..=Self::MAX).contains(&text.len()) {
            true => Ok(Self(text.into())),
            false => Err(format!(
                "expected a secret of {} to {} letters and digits in one line, the same at both ends \
                 (one is made by: head -c 24 /dev/urandom | base64)",
                Self::MIN,
                Self::MAX
            )),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Whether bytes of a message are this cookie, behind which zeros fill up. How much of a wrong one
    /// is right shows in no time.
    pub(super) fn is(&self, given: &[u8]) -> bool {
        let end = given.iter().rposition(|b| *b != 0).map_or(0, |i| i + 1);
        self.bytes().ct_eq(&given[..end]).into()
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookie(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_known_with_what_fills_it_up() {
        let cookie = Cookie::new("0123456789abcdefg\n").unwrap();
        assert!(cookie.is(b"0123456789abcdefg") && cookie.is(b"0123456789abcdefg\0\0\0"));
        for other in [
            &b"0123456789abcdef"[..],
            b"0123456789abcdefG",
            b"",
            b"\0\0\0\0",
        ] {
            assert!(!cookie.is(other));
        }
    }

    #[test]
    fn what_is_no_secret_is_refused_and_none_is_printed() {
        for wrong in [
            "",
            "short",
            "sixteen letters ",
            &"x".repeat(257),
            "ÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄÄ",
        ] {
            assert!(Cookie::new(wrong).unwrap_err().contains("16 to 256"));
        }
        let cookie = Cookie::new("0123456789abcdef").unwrap();
        assert_eq!(format!("{cookie:?}"), "Cookie(..)");
    }
}
