//! Registration: a device names its accesses to its proxy, with the weights that its operator
//! wants for downlinks, so that the proxy needs no public addresses in its file.
//!
//! One [`Request`] and one [`Reply`], each a line of JSON. With Multipath TCP they pass over plain
//! TCP to the port of `[probe]`, once from each address of the device: the handshake proves that
//! the address answers, and the proxy learns what a NAT makes of it. With Multipath QUIC they pass
//! on a stream of the session, whose device has shown its key.

use std::collections::BTreeMap;

use braid_core::class::{ClassSteering, DEFAULT_NUMBER, MAX_CLASSES};
use braid_core::{AccessKind, Rate, weight};
use serde::{Deserialize, Serialize};

/// First byte of a request, by which whoever reads a connection or a stream tells it from others.
pub const FIRST: u8 = b'{';
/// Longest line, bytes.
pub const MAX_BYTES: usize = 64 << 10;
/// Most accesses of one device.
pub const MAX_ACCESSES: usize = 16;
/// Longest name of a device or an access, bytes.
pub const MAX_NAME: usize = 64;

/// Version of the messages.
const VERSION: u32 = 1;

/// Request of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Version of this message; a proxy refuses others.
    pub version: u32,
    /// Name of the device.
    pub device: String,
    /// Number by which the proxy knows it again, whatever its addresses are.
    pub id: u64,
    /// Access that this comes over, by TCP; absent on a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// Access of each path of the session, by the path's identifier; empty by TCP.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub paths: BTreeMap<u32, String>,
    /// Accesses of the device, by name.
    pub accesses: BTreeMap<String, Access>,
    /// Weights of downlinks that were requested, by name; absent where nobody has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<BTreeMap<String, f64>>,
    /// Steering of the classes of downlinks by their numbers, 1 to 7; on a session.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<u8, ClassSteering>,
}

/// Access as its device describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Access {
    /// Technology.
    pub kind: AccessKind,
    /// Share of the traffic as configured, above 0; absent: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// Greatest rate of the downlink, bits per second of the IP layer; absent: any. On a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_bps: Option<Rate>,
}

/// Answer of the proxy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    /// Name at the proxy of each access that it knows by now.
    #[serde(default)]
    pub accesses: BTreeMap<String, String>,
    /// Weights of downlinks in force, by the device's names.
    #[serde(default)]
    pub weights: BTreeMap<String, f64>,
    /// Reason why the access that this came over has no name, or requested weights do not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// Whether a device or an access can be called so at a proxy.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| !c.is_control() && !"/?#%@".contains(c);
    !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(plain)
}

impl Request {
    /// Begins a request without paths and requested weights.
    pub fn new(device: &str, id: u64, accesses: BTreeMap<String, Access>) -> Self {
        Self {
            version: VERSION,
            device: device.to_owned(),
            id,
            over: None,
            paths: BTreeMap::new(),
            accesses,
            weights: None,
            classes: BTreeMap::new(),
        }
    }

    /// Reads a line, and checks what it says.
    ///
    /// # Errors
    /// What is wrong with it, for the device's operator.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let read: Self =
            serde_json::from_slice(line).map_err(|e| format!("no registration: {e}"))?;
        read.check()?;
        Ok(read)
    }

    fn check(&self) -> Result<(), String> {
        if self.version != VERSION {
            return Err(format!(
                "version {} of registrations is not known here: both ends need the same version \
                 of Braid",
                self.version
            ));
        }
        if self.accesses.is_empty() || self.accesses.len() > MAX_ACCESSES {
            return Err(format!("a device has 1 to {MAX_ACCESSES} accesses"));
        }
        let names = self.accesses.keys().chain([&self.device]);
        if let Some(bad) = names.into_iter().find(|n| !is_name(n)) {
            return Err(format!(
                "\"{}\" cannot be a name here: expected 1 to {MAX_NAME} bytes without / ? # % @",
                bad.escape_debug()
            ));
        }
        let requested = self.weights.iter().flat_map(BTreeMap::keys);
        let mut all = requested.chain(self.paths.values()).chain(&self.over);
        if let Some(other) = all.find(|n| !self.accesses.contains_key(*n)) {
            return Err(format!("access \"{}\" is none of it", other.escape_debug()));
        }
        self.check_classes()?;
        let configured = self.accesses.iter();
        let configured = configured.filter_map(|(n, a)| Some((n, a.weight?)));
        if let Some((name, _)) = configured.clone().find(|(_, w)| *w <= 0.0) {
            return Err(format!(
                "access \"{}\": a configured weight is above 0",
                name.escape_debug()
            ));
        }
        let requested = self.weights.iter().flatten().map(|(n, w)| (n, *w));
        configured
            .chain(requested)
            .try_for_each(|(name, w)| weight::check(name, w))
    }

    fn check_classes(&self) -> Result<(), String> {
        for (number, class) in &self.classes {
            let at = |what: String| Err(format!("class {number}: {what}"));
            if *number == DEFAULT_NUMBER || usize::from(*number) >= MAX_CLASSES {
                return at(format!("numbers are 1 to {}", MAX_CLASSES - 1));
            }
            if let Err(fault) = class.check() {
                return at(format!("{}: {}", fault.key, fault.what));
            }
            let mut named = class.accesses().map(|(_, name)| name);
            if let Some(other) = named.find(|n| !self.accesses.contains_key(*n)) {
                return at(format!("access \"{}\" is none of it", other.escape_debug()));
            }
        }
        Ok(())
    }

    /// Returns the line, with its end.
    pub fn line(&self) -> String {
        line(self)
    }
}

impl Reply {
    /// Returns a reply that refuses.
    pub fn refusal(why: impl Into<String>) -> Self {
        Self {
            refused: Some(why.into()),
            ..Self::default()
        }
    }

    /// Reads a line.
    ///
    /// # Errors
    /// It is no reply.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(line).map_err(|e| e.to_string())
    }

    /// Returns the line, with its end.
    pub fn line(&self) -> String {
        line(self)
    }
}

fn line(value: &impl Serialize) -> String {
    // Maps have names or numbers as keys, and numbers are finite: it cannot fail.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request() -> Request {
        let access = |weight| Access {
            kind: AccessKind::Wifi,
            weight,
            limit_bps: None,
        };
        let accesses = [
            ("nr".to_owned(), access(None)),
            ("wifi".to_owned(), access(Some(2.5))),
        ];
        Request {
            over: Some("nr".to_owned()),
            weights: Some([("wifi".to_owned(), 0.0)].into()),
            paths: [(7, "wifi".to_owned())].into(),
            ..Request::new("cpe-1", 9, accesses.into())
        }
    }

    #[test]
    fn requests_are_one_line_and_read_back() {
        let line = request().line();
        assert!(line.ends_with('\n') && line.lines().count() == 1);
        assert_eq!(line.as_bytes()[0], FIRST);
        assert_eq!(Request::parse(line.as_bytes()), Ok(request()));
        let reply = Reply {
            accesses: [("nr".to_owned(), "nr@cpe-1".to_owned())].into(),
            weights: [("nr".to_owned(), 3.0)].into(),
            refused: None,
        };
        assert_eq!(Reply::parse(reply.line().as_bytes()), Ok(reply));
    }

    #[test]
    fn a_longest_request_fits() {
        let name = |n: usize| format!("{n:a>64}");
        let access = Access {
            kind: AccessKind::Other,
            weight: Some(0.123_456_789_012_345_6),
            limit_bps: Some(Rate::from_bps(u64::MAX)),
        };
        let accesses = (0..MAX_ACCESSES).map(|n| (name(n), access.clone()));
        let weights = (0..MAX_ACCESSES).map(|n| (name(n), 0.123_456_789_012_345_6));
        let class = ClassSteering {
            mode: "load-balancing".into(),
            weights: (0..MAX_ACCESSES)
                .map(|n| (name(n), 0.123_456_789_012_345_6))
                .collect(),
            max_rtt_ms: Some(65_535),
            max_loss_percent: Some(0.123_456_789_012_345_6),
            reinject: true,
            ..ClassSteering::default()
        };
        let request = Request {
            classes: (1..MAX_CLASSES as u8).map(|n| (n, class.clone())).collect(),
            over: Some(name(0)),
            paths: (0..64).map(|n| (u32::MAX - n, name(1))).collect(),
            weights: Some(weights.collect()),
            ..Request::new(&name(3), u64::MAX, accesses.collect())
        };
        let line = request.line();
        assert!(line.len() <= MAX_BYTES, "{}", line.len());
        assert_eq!(Request::parse(line.as_bytes()), Ok(request));
    }

    #[test]
    fn wrong_requests_are_refused_with_a_reason() {
        let refused = |change: fn(&mut Request), part: &str| {
            let mut wrong = request();
            change(&mut wrong);
            let why = Request::parse(wrong.line().as_bytes()).unwrap_err();
            assert!(why.contains(part), "{why}");
        };
        refused(|r| r.version = 2, "version 2");
        refused(|r| r.accesses.clear(), "1 to 16");
        refused(|r| r.device = "a/b".to_owned(), "\"a/b\" cannot be a name");
        refused(|r| r.device = "x".repeat(65), "1 to 64 bytes");
        refused(
            |r| r.accesses.get_mut("nr").unwrap().weight = Some(0.0),
            "above 0",
        );
        refused(|r| r.over = Some("lte".to_owned()), "\"lte\" is none");
        refused(
            |r| r.weights = Some([("nr".to_owned(), -1.0)].into()),
            "weight",
        );
        refused(
            |r| r.paths = [(1, "lifi".to_owned())].into(),
            "\"lifi\" is none",
        );
        assert!(Request::parse(b"{}\n").unwrap_err().contains("missing"));
    }

    proptest! {
        #[test]
        fn garbage_is_read_or_refused(b in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Request::parse(&b);
            let _ = Reply::parse(&b);
        }

        #[test]
        fn a_changed_byte_is_read_or_refused(at in any::<prop::sample::Index>(), to: u8) {
            let mut line = request().line().into_bytes();
            let at = at.index(line.len());
            line[at] = to;
            if let Ok(read) = Request::parse(&line) {
                prop_assert_eq!(Request::parse(read.line().as_bytes()), Ok(read));
            }
        }
    }
}
