//! What an engine end is told: a strict TOML or JSON file.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::Path;

use braid_core::AccessKind;
use braid_core::api::{Engine, Role};
use serde::Deserialize;

use super::EndError;

/// An engine end. An unknown key is an error.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The engine.
    pub engine: Engine,
    /// Which end this is.
    pub role: Role,
    /// The proxy's service address; told in the status, nothing depends on it.
    #[serde(default)]
    pub proxy: Option<IpAddr>,
    /// Open a subflow from every access to every address of the proxy, not only
    /// to the one connected to. A kernel (6.18) does not let a connection return
    /// to the access that it began on, once that was disabled, if this is set.
    #[serde(default = "yes")]
    pub full_mesh: bool,
    /// At the device its accesses, at the proxy those of its peer.
    #[serde(default)]
    pub accesses: Vec<Access>,
}

/// One access.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// Its name, unique.
    pub name: String,
    /// The device's address on it, unique.
    pub address: IpAddr,
    /// The device's interface; required there, not allowed at the proxy.
    #[serde(default)]
    pub interface: Option<String>,
    /// Its technology.
    #[serde(default = "other")]
    pub kind: AccessKind,
    /// Use it only when no other access is active. Set at the device.
    #[serde(default)]
    pub backup: bool,
    /// Its share of the traffic, above 0; the stock kernel knows no weights, so
    /// this is only told in the status.
    #[serde(default)]
    pub weight: Option<f64>,
}

fn yes() -> bool {
    true
}

fn other() -> AccessKind {
    AccessKind::Other
}

impl Config {
    /// Reads a file: JSON if its name ends in `.json`, else TOML.
    ///
    /// # Errors
    /// The file cannot be read; or it is wrong, with file, line and column.
    pub fn load(path: &Path) -> Result<Self, EndError> {
        let text = std::fs::read_to_string(path)
            .map_err(|e| EndError::Config(format!("{}: cannot be read: {e}", path.display())))?;
        let json = path.extension().is_some_and(|e| e == "json");
        Self::parse(&text, json).map_err(|e| EndError::Config(format!("{}:{e}", path.display())))
    }

    /// Reads text. The error begins with `line:column:`.
    fn parse(text: &str, json: bool) -> Result<Self, String> {
        let config: Config = if json {
            serde_json::from_str(text).map_err(|e| {
                let all = e.to_string();
                let what = all.rsplit_once(" at line ").map_or(&*all, |(w, _)| w);
                format!("{}:{}: {what}", e.line(), e.column())
            })?
        } else {
            toml::from_str(text).map_err(|e| {
                let (line, column) = place(text, e.span().map_or(0, |s| s.start));
                format!("{line}:{column}: {}", e.message())
            })?
        };
        config.check().map_err(|e| format!("1:1: {e}"))?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        let mut wrong = String::new();
        if self.role == Role::Device && self.accesses.is_empty() {
            wrong.push_str("a device needs at least one access; ");
        }
        for (i, a) in self.accesses.iter().enumerate() {
            let name = &a.name;
            if name.is_empty() || name.contains(['/', '?', '#', '%']) {
                let _ = write!(
                    wrong,
                    "access name \"{name}\" is empty or has one of / ? # %; "
                );
            }
            let before = &self.accesses[..i];
            if before.iter().any(|b| b.name == *name) {
                let _ = write!(wrong, "two accesses are called \"{name}\"; ");
            }
            if let Some(b) = before.iter().find(|b| b.address == a.address) {
                let _ = write!(
                    wrong,
                    "accesses \"{}\" and \"{name}\" have the same address {}; ",
                    b.name, a.address
                );
            }
            match (self.role, &a.interface) {
                (Role::Device, None) => {
                    let _ = write!(wrong, "access \"{name}\" of a device needs an interface; ");
                }
                (Role::Proxy, Some(_)) => {
                    let _ = write!(
                        wrong,
                        "access \"{name}\": a proxy knows its peer's accesses by address, \
                         without interface; "
                    );
                }
                _ => {}
            }
            if self.role == Role::Proxy && a.backup {
                let _ = write!(wrong, "access \"{name}\": backup is set at the device; ");
            }
            if a.weight.is_some_and(|w| !(w.is_finite() && w > 0.0)) {
                let _ = write!(wrong, "access \"{name}\": a weight is a number above 0; ");
            }
        }
        match wrong.strip_suffix("; ") {
            Some(wrong) => Err(wrong.to_owned()),
            None => Ok(()),
        }
    }
}

/// Line and column (from 1, in characters) of a byte offset.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DEVICE: &str = r#"
engine = "mptcp"
role = "device"
proxy = "10.77.0.1"

[[accesses]]
name = "nr"
interface = "d1"
address = "10.77.1.2"
kind = "5g"

[[accesses]]
name = "wifi"
interface = "d2"
address = "fd77::2"
backup = true
weight = 2.5
"#;

    #[test]
    fn reads_both_forms() {
        let c = Config::parse(DEVICE, false).unwrap();
        assert_eq!(
            (c.engine, c.role, c.accesses.len()),
            (Engine::Mptcp, Role::Device, 2)
        );
        assert_eq!(c.accesses[0].kind, AccessKind::Nr);
        assert!(c.full_mesh);
        assert!(c.accesses[1].backup);
        let json = r#"{"engine": "tcp", "role": "proxy",
            "accesses": [{"name": "nr", "address": "10.77.1.2"}]}"#;
        let c = Config::parse(json, true).unwrap();
        assert_eq!(
            (c.engine, c.accesses[0].kind),
            (Engine::Tcp, AccessKind::Other)
        );
    }

    #[test]
    fn errors_name_the_place() {
        let e = Config::parse(&DEVICE.replace("backup", "bakup"), false).unwrap_err();
        assert!(e.starts_with("16:1:") && e.contains("bakup"), "{e}");
        let e = Config::parse("{\"engine\": \"tpc\"}", true).unwrap_err();
        assert!(e.starts_with("1:") && e.contains("tpc"), "{e}");
    }

    #[test]
    fn contradictions_are_refused() {
        for (from, to, expect) in [
            ("\"wifi\"", "\"nr\"", "two accesses"),
            ("fd77::2", "10.77.1.2", "same address"),
            ("interface = \"d2\"", "", "needs an interface"),
            ("\"device\"", "\"proxy\"", "without interface"),
            ("2.5", "-1", "above 0"),
            ("2.5", "nan", "above 0"),
            ("\"nr\"", "\"a/b\"", "has one of"),
        ] {
            let e = Config::parse(&DEVICE.replace(from, to), false).unwrap_err();
            assert!(e.contains(expect), "{from} -> {to}: {e}");
        }
    }

    proptest! {
        #[test]
        fn garbage_does_not_panic(s in "\\PC*") {
            let _ = Config::parse(&s, false);
            let _ = Config::parse(&s, true);
        }
    }
}
