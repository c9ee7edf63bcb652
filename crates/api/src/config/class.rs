//! `[class.NAME]`: how the traffic that rules put into a class is steered.

use std::collections::BTreeMap;

use braid_core::class::{ClassSteering, Fault, MAX_CLASSES, MODES};
use braid_core::control::{Direction, PerDirection};
use braid_core::rules::DEFAULT_CLASS;
use braid_core::sched::WrrMode;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::diagnostic::{Problem, nearest};
use crate::{Engine, Lane, Role};

/// Longest name of a class, bytes.
const MAX_NAME: usize = 32;

/// `[class.NAME]`: a steering of both directions, or one of each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Class {
    /// Steering mode of the directions that have no table of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// See [`ClassSteering::wrr_mode`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wrr_mode: Option<WrrMode>,
    /// See [`ClassSteering::weights`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<String, f64>,
    /// See [`ClassSteering::order`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub order: Vec<String>,
    /// See [`ClassSteering::standby`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standby: Option<bool>,
    /// See [`ClassSteering::primary`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary: Option<String>,
    /// See [`ClassSteering::max_rtt_ms`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rtt_ms: Option<u32>,
    /// See [`ClassSteering::max_loss_percent`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_loss_percent: Option<f64>,
    /// See [`ClassSteering::reinject`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub reinject: bool,
    /// Steering from the device to the proxy, in place of what stands above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub up: Option<ClassSteering>,
    /// Steering from the proxy to the device, in place of what stands above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub down: Option<ClassSteering>,
}

impl Class {
    /// Returns the table of its own that a direction has.
    fn own(&self, direction: Direction) -> Option<&ClassSteering> {
        match direction {
            Direction::Up => self.up.as_ref(),
            Direction::Down => self.down.as_ref(),
        }
    }

    /// Returns the steering of each direction.
    pub fn steering(&self) -> PerDirection<ClassSteering> {
        let common = || ClassSteering {
            mode: self.mode.clone().unwrap_or_default(),
            wrr_mode: self.wrr_mode,
            weights: self.weights.clone(),
            order: self.order.clone(),
            standby: self.standby,
            primary: self.primary.clone(),
            max_rtt_ms: self.max_rtt_ms,
            max_loss_percent: self.max_loss_percent,
            reinject: self.reinject,
        };
        PerDirection::from_fn(|direction| self.own(direction).cloned().unwrap_or_else(common))
    }

    fn check(&self, name: &str, accesses: &[&str]) -> Result<(), Problem> {
        let both = self.up.is_some() && self.down.is_some();
        let common = Self {
            up: None,
            down: None,
            ..self.clone()
        };
        if both && common != Self::default() {
            let what = format!(
                "[class.{name}.up] and [class.{name}.down] say it all: what stands above them has no \
                 direction left"
            );
            return Err(Problem::at_key(&["class", name], what));
        }
        if self.mode.is_none() && !both {
            let what = format!("expected a `mode`: one of {}", MODES.join(", "));
            return Err(Problem::at_key(&["class", name], what));
        }
        let steering = self.steering();
        for direction in Direction::ALL {
            let word = direction.to_string();
            let own = self.own(direction).is_some();
            let at = |key: &str, what: String| {
                let path: &[&str] = match own {
                    true => &["class", name, &word, key],
                    false => &["class", name, key],
                };
                Problem::at_key(path, what)
            };
            let steering = steering.get(direction);
            steering.check().map_err(|Fault { key, mut what }| {
                let near = nearest(&steering.mode, MODES).filter(|_| key == "mode");
                what += &near.map_or_else(String::new, |n| format!("; did you mean \"{n}\"?"));
                at(key, what)
            })?;
            for (key, access) in steering.accesses() {
                if !accesses.contains(&access) {
                    return Err(at(key, unknown(access, accesses)));
                }
            }
        }
        Ok(())
    }
}

/// Names the one that is nearest to a name that is not known, or all that there are.
pub(super) fn hint(name: &str, known: &[&str]) -> String {
    let near = nearest(name, known.iter().copied());
    near.map_or_else(
        || format!("there are {}", known.join(", ")),
        |near| format!("did you mean \"{near}\"?"),
    )
}

/// Says that no access is called so.
pub(super) fn unknown(name: &str, accesses: &[&str]) -> String {
    let hint = hint(name, accesses);
    format!("no access is called \"{name}\": {hint}")
}

/// Checks classes at an end with these engines and accesses.
pub(super) fn check(
    classes: &IndexMap<String, Class>,
    role: Role,
    (engines, lane): (&[Engine], Lane),
    registers: bool,
    accesses: &[&str],
) -> Result<(), Problem> {
    for (i, (name, class)) in classes.iter().enumerate() {
        let at = |what: String| Err(Problem::at_key(&["class", name], what));
        if role == Role::Proxy {
            return at("the device has classes, and tells the proxy: set them there".into());
        }
        if !engines.contains(&Engine::Mpquic) || lane == Lane::Stream {
            return at(
                "classes share a session of Multipath QUIC on the datagram lane: expected \"mpquic\" \
                 among `engines`, and no lane = \"stream\" in [mpquic]"
                    .into(),
            );
        }
        if !registers {
            return at(
                "the proxy learns with the registration how to steer what it sends: it needs \
                 enabled = true in [registration]"
                    .into(),
            );
        }
        if i + 1 >= MAX_CLASSES {
            let most = MAX_CLASSES - 1;
            return at(format!(
                "there are more than {most} classes beside the default"
            ));
        }
        if name == DEFAULT_CLASS {
            return at(format!(
                "\"{DEFAULT_CLASS}\" is steered by [scheduler] and the accesses' own keys: expected \
                 another name"
            ));
        }
        let plain = |c: char| c.is_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
            return at(format!(
                "\"{}\" cannot be the name of a class: expected 1 to {MAX_NAME} bytes, letters, \
                 digits, - _ and .",
                name.escape_debug()
            ));
        }
        class.check(name, accesses)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use braid_core::control::Direction;

    use super::super::{Config, DeviceAccess, Format, ProxyAccess};

    const DEVICE: &str = "engine = \"mpquic\"
proxy = \"10.77.0.1\"
[mpquic]
pins = [\"sha256/x\"]
[lan]
interfaces = [\"lan0\"]
[access.nr]
interface = \"wwan0\"
[access.wifi]
interface = \"wlan0\"
";

    fn device(more: &str) -> Result<Config<DeviceAccess>, String> {
        let text = format!("{DEVICE}{more}");
        let read = Config::parse(&text, Format::Toml);
        read.map_err(|p| p.in_file("f".into(), &text).to_string())
    }

    #[test]
    fn a_class_has_a_steering_for_each_direction() {
        let text = "[class.voice]
mode = \"smallest-delay\"
max_rtt_ms = 80
[class.voice.down]
mode = \"redundant\"
primary = \"nr\"
max_rtt_ms = 50
[class.console]
mode = \"active-standby\"
order = [\"wifi\"]
standby = false
[class.bulk]
mode = \"load-balancing\"
weights = { nr = 20, wifi = 80 }
[[rule]]
dscp = \"ef\"
class = \"voice\"
";
        let config = device(text).unwrap();
        let voice = config.class["voice"].steering();
        assert_eq!(voice.get(Direction::Up).mode, "smallest-delay");
        assert_eq!(voice.get(Direction::Up).max_rtt_ms, Some(80));
        assert_eq!(voice.get(Direction::Down).mode, "redundant");
        assert_eq!(voice.get(Direction::Down).primary.as_deref(), Some("nr"));
        assert_eq!(voice.get(Direction::Down).max_rtt_ms, Some(50));
        let console = config.class["console"].steering();
        assert!(Direction::ALL.iter().all(|d| console.get(*d).is_confined()));
        let bulk = config.class["bulk"].steering();
        assert_eq!(bulk.get(Direction::Down), bulk.get(Direction::Up));
        for (text, format) in [
            (toml::to_string(&config).unwrap(), Format::Toml),
            (serde_json::to_string(&config).unwrap(), Format::Json),
        ] {
            let again = Config::<DeviceAccess>::parse(&text, format).unwrap();
            assert_eq!(again, config);
        }
    }

    #[test]
    fn what_is_wrong_with_a_class_is_said_where_it_stands() {
        for (text, place, words) in [
            (
                "[class.a]\nmode = \"redundantt\"",
                "12:1",
                "did you mean \"redundant\"?",
            ),
            ("[class.a]\nmode = \"fifo\"", "12:1", "load-balancing"),
            ("[class.a]\nreinject = true", "11:8", "expected a `mode`"),
            (
                "[class.a]\nmode = \"wrr\"\nweights = { wify = 1 }",
                "13:1",
                "no access is called \"wify\": did you mean \"wifi\"?",
            ),
            (
                "[class.a]\nmode = \"ecf\"\n[class.a.down]\nmode = \"ecf\"\norder = [\"nr\"]",
                "15:1",
                "ecf has no order",
            ),
            (
                "[class.a]\nmode = \"ecf\"\n[class.a.down]\nmode = \"ecf\"\n[class.a.up]\nmode = \"rr\"",
                "11:8",
                "no direction left",
            ),
            (
                "[class.a]\nmode = \"active-standby\"\nstandby = false",
                "13:1",
                "its name alone in `order`",
            ),
            (
                "[class.a]\nmode = \"redundant\"\nprimary = \"wify\"",
                "13:1",
                "did you mean \"wifi\"?",
            ),
            (
                "[class.a]\nmode = \"ecf\"\n[class.a.up]\nmode = \"rr\"\nprimary = \"nr\"",
                "15:1",
                "rr has no primary access",
            ),
            ("[class.default]\nmode = \"rr\"", "11:8", "[scheduler]"),
            (
                "[class.\"a b\"]\nmode = \"rr\"",
                "11:8",
                "cannot be the name",
            ),
            (
                "[class.a]\nmode = \"rr\"\nmax_rtt = 4",
                "13:1",
                "max_rtt_ms",
            ),
            (
                "[class.voice]\nmode = \"rr\"\n[[rule]]\nclass = \"voise\"",
                "14:1",
                "there is no class \"voise\": did you mean \"voice\"?",
            ),
        ] {
            let e = device(text).unwrap_err();
            assert!(
                e.starts_with(&format!("f:{place}: ")) && e.contains(words),
                "{text}: {e}"
            );
        }
        let many: String = (0..8)
            .map(|i| format!("[class.c{i}]\nmode = \"rr\"\n"))
            .collect();
        assert!(device(&many).unwrap_err().contains("more than 7 classes"));
        let e = device("[registration]\nenabled = false\n[class.a]\nmode = \"rr\"").unwrap_err();
        assert!(e.contains("enabled = true in [registration]"), "{e}");
        let stream = DEVICE.replace("[mpquic]", "[mpquic]\nlane = \"stream\"");
        let text = format!("{stream}[class.a]\nmode = \"rr\"\n");
        let e = Config::<DeviceAccess>::parse(&text, Format::Toml).unwrap_err();
        assert!(
            e.in_file("f".into(), &text)
                .to_string()
                .contains("datagram lane")
        );
        let text = "engine = \"mpquic\"\nproxy = \"10.77.0.1\"\n[mpquic]\npins = [\"sha256/x\"]\n[class.a]\nmode = \"rr\"\n";
        let e = Config::<ProxyAccess>::parse(text, Format::Toml).unwrap_err();
        assert!(
            e.in_file("f".into(), text)
                .to_string()
                .contains("set them there")
        );
    }
}
