//! Checks of a specification for what its types do not make sure of; each kind of traffic
//! checks its own parameters.

use super::error::{Result, TrafficError};
use super::spec::{TrafficSpec, Transport};

impl TrafficSpec {
    /// Checks what types do not.
    ///
    /// # Errors
    /// [`TrafficError::Spec`] that names the field and what it may be.
    pub fn check(&self) -> Result<()> {
        let bad = |m: String| Err(TrafficError::Spec(m));
        if self.duration.is_zero() {
            return bad("duration_s is 0; expected more than 0".into());
        }
        if self.fixed_bytes().is_none() && self.warmup >= self.duration {
            return bad(format!(
                "warmup_s is {} and duration_s {}; nothing is left to measure",
                self.warmup.as_secs_f64(),
                self.duration.as_secs_f64()
            ));
        }
        if let Some(local) = self.local
            && local.is_ipv4() != self.address.is_ipv4()
        {
            return bad(format!(
                "local address {local} and address {} are not of one IP version",
                self.address
            ));
        }
        let kind = self.traffic.get();
        if self.transport == Transport::Udp && !kind.over_udp() {
            return bad(format!(
                "{} traffic needs a stream; over udp only cbr and voip are possible",
                kind.name()
            ));
        }
        kind.check(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str = r#""role":"client","address":"10.77.0.1:5001","duration_s":2.5"#;

    fn read(rest: &str) -> Result<TrafficSpec> {
        TrafficSpec::from_json(&format!("{{{BASE},{rest}}}"))
    }

    #[test]
    fn says_what_is_wrong() {
        for (rest, word) in [
            (r#""traffic":{"kind":"bulk","byte":1}"#, "byte"),
            (r#""traffic":{"kind":"bulk"},"colour":1"#, "colour"),
            (r#""traffic":{"kind":"bulk","bytes":0}"#, "bytes"),
            (r#""traffic":{"kind":"bulk"},"warmup_s":3"#, "warmup_s"),
            (r#""traffic":{"kind":"bulk"},"warmup_s":-1"#, "seconds"),
            (r#""traffic":{"kind":"bulk"},"transport":"udp"}"#, ""),
            (r#""traffic":{"kind":"bulk"},"transport":"udp""#, "udp"),
            (r#""traffic":{"kind":"bulk"},"local":"::1""#, "IP version"),
            (
                r#""traffic":{"kind":"cbr","rate":1,"message_bytes":31}"#,
                "message_bytes",
            ),
            (
                r#""traffic":{"kind":"cbr","rate":0,"message_bytes":99}"#,
                "rate",
            ),
            (
                r#""traffic":{"kind":"request-response","request_bytes":0}"#,
                "request_bytes",
            ),
            (
                r#""traffic":{"kind":"video","bitrates":[2,1],"segment_s":2,"buffer_s":9,"startup_s":4}"#,
                "ascending",
            ),
            (
                r#""traffic":{"kind":"video","bitrates":[1],"segment_s":2,"buffer_s":1,"startup_s":1}"#,
                "segment_s",
            ),
            (
                r#""traffic":{"kind":"web","document_bytes":0,"objects":1,"object_bytes":1,"pause_s":0}"#,
                "document_bytes",
            ),
            (
                r#""direction":"up","traffic":{"kind":"web","document_bytes":1,"objects":1,"object_bytes":1,"pause_s":0}"#,
                "down",
            ),
        ] {
            let e = read(rest).unwrap_err();
            assert!(e.to_string().contains(word), "{rest}: {e}");
            assert_eq!(e.exit_status(), 2);
        }
    }
}
