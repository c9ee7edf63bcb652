//! `[[rule]]`: which traffic of hosts and programs goes over the bond, directly, or nowhere.

use std::collections::BTreeSet;

use braid_core::rules::{DEFAULT_CLASS, MAX_RULES, Outcome, Rule, Written};

use super::class::{hint, unknown};
use super::{DefaultWay, Lan, Manager};
use crate::diagnostic::Problem;
use crate::{Engine, Role};

/// Different lists of accesses at most that rules send flows to directly.
pub const MAX_DIRECT: usize = 16;

/// Setting of the rules.
pub(super) struct Setting<'a> {
    pub(super) role: Role,
    pub(super) engines: &'a [Engine],
    pub(super) lan: Option<&'a Lan>,
    pub(super) default: DefaultWay,
    pub(super) manager: &'a Manager,
    /// Names of the accesses.
    pub(super) accesses: Vec<&'a str>,
    /// Names of the classes beside the default.
    pub(super) classes: Vec<&'a str>,
}

/// Reads rules as they are written.
pub(super) fn read(all: &[Written]) -> Result<Vec<Rule>, Problem> {
    let placed = all.iter().enumerate();
    let read = placed.map(|(i, written)| {
        let rule = Rule::try_from(written.clone());
        rule.map_err(|e| Problem::at_key(&["rule", &i.to_string()], e))
    });
    read.collect()
}

/// Checks what the rules alone do not tell.
pub(super) fn check(rules: &[Rule], setting: &Setting<'_>) -> Result<(), Problem> {
    if rules.is_empty() {
        return Ok(());
    }
    let whole = |what: &str| Err(Problem::at_key(&["rule", "0"], what));
    if setting.role == Role::Proxy {
        return whole("rules are about traffic of the device: set them there");
    }
    let programs = setting.default == DefaultWay::Bond;
    if setting.lan.is_none() && !programs {
        return whole(
            "rules are about what goes over the bond: they need [lan] with `interfaces`, for hosts, \
             or default = \"bond\", for programs of the device",
        );
    }
    if rules.len() > MAX_RULES {
        return whole(&format!(
            "{} rules are too many: at most {MAX_RULES}",
            rules.len()
        ));
    }
    let mut titles = BTreeSet::new();
    let mut ways = BTreeSet::new();
    for (i, rule) in rules.iter().enumerate() {
        let place = i.to_string();
        let at = |key: &str, what: String| Err(Problem::at_key(&["rule", &place, key], what));
        if rule.name.as_deref() == Some(DEFAULT_CLASS) {
            let what = format!("\"{DEFAULT_CLASS}\" is what meets no rule: expected another name");
            return at("name", what);
        }
        if !titles.insert(rule.title(i + 1)) {
            return at(
                "name",
                format!("two rules are called \"{}\"", rule.title(i + 1)),
            );
        }
        if !rule.descriptor.client.is_empty() && setting.lan.is_none() {
            let what = "it is for hosts behind the device: expected [lan] with `interfaces`";
            return at("client", what.to_owned());
        }
        let of_programs = [
            ("user", rule.descriptor.user.is_empty()),
            ("unit", rule.descriptor.unit.is_empty()),
        ];
        let named = of_programs.iter().find(|(_, is_empty)| !is_empty);
        if let (Some((key, _)), false) = (named, programs) {
            let what = "it is for programs of the device: expected default = \"bond\"";
            return at(key, what.to_owned());
        }
        match &rule.outcome {
            Outcome::Block => {}
            Outcome::Class(class) => {
                let own = setting.classes.iter().copied();
                let known: Vec<_> = own.chain([DEFAULT_CLASS]).collect();
                if !known.contains(&class.as_str()) {
                    let hint = hint(class, &known);
                    return at("class", format!("there is no class \"{class}\": {hint}"));
                }
            }
            Outcome::Direct(accesses) => {
                if let Err(what) = check_direct(accesses, setting) {
                    return at("direct", what);
                }
                ways.insert(accesses);
                if ways.len() > MAX_DIRECT {
                    return at(
                        "direct",
                        format!("rules name more than {MAX_DIRECT} different lists of accesses"),
                    );
                }
            }
        }
    }
    Ok(())
}

fn check_direct(accesses: &[String], setting: &Setting<'_>) -> Result<(), String> {
    if setting.engines.contains(&Engine::Mptcp) && !setting.manager.recover {
        return Err(
            "which accesses work is followed with `recover = true` in [manager] alone".into(),
        );
    }
    for (i, name) in accesses.iter().enumerate() {
        if accesses[..i].contains(name) {
            return Err(format!("\"{name}\" is there twice"));
        }
        if setting.accesses.contains(&name.as_str()) {
            continue;
        }
        return Err(unknown(name, &setting.accesses));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
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
    fn rules_are_read_in_their_order_and_written_back() {
        let text = "[[rule]]
name = \"modem\"
to = \"192.168.8.1\"
direct = [\"nr\", \"wifi\"]
[[rule]]
port = [443, \"5000-5999\"]
protocol = \"udp\"
block = true
[[rule]]
class = \"default\"
";
        let config = device(text).unwrap();
        let rules = config.rules().unwrap();
        let titles = rules.iter().zip(1..).map(|(r, n)| r.title(n));
        assert_eq!(titles.collect::<Vec<_>>(), ["modem", "rule 2", "rule 3"]);
        let json = serde_json::to_string(&config).unwrap();
        let again = Config::<DeviceAccess>::parse(&json, Format::Json).unwrap();
        assert_eq!(again, config);
        let toml = toml::to_string(&config).unwrap();
        assert_eq!(
            Config::<DeviceAccess>::parse(&toml, Format::Toml).unwrap(),
            config
        );
    }

    #[test]
    fn what_is_wrong_with_a_rule_is_said_where_it_stands() {
        let rule = |text: &str| format!("[[rule]]\nblock = true\n[[rule]]\n{text}\n");
        for (text, place, words) in [
            (
                "direct = \"wify\"",
                "14:1",
                "no access is called \"wify\": did you mean \"wifi\"?",
            ),
            ("direct = \"cable\"", "14:1", "there are nr, wifi"),
            ("direct = [\"nr\", \"nr\"]", "14:1", "\"nr\" is there twice"),
            (
                "class = \"bulk\"",
                "14:1",
                "there is no class \"bulk\": there are default",
            ),
            (
                "name = \"rule 1\"\nblock = true",
                "14:1",
                "two rules are called \"rule 1\"",
            ),
            (
                "name = \"default\"\nblock = true",
                "14:1",
                "what meets no rule",
            ),
            ("port = 80", "13:1", "one outcome"),
            (
                "block = true\nprotocl = \"udp\"",
                "15:1",
                "did you mean `protocol`?",
            ),
            ("block = true\nport = 70000", "15:8", "no port"),
        ] {
            let e = device(&rule(text)).unwrap_err();
            assert!(
                e.starts_with(&format!("f:{place}: ")) && e.contains(words),
                "{text}: {e}"
            );
        }
        let many: String = (0..17)
            .map(|i| {
                let to = format!("to = \"10.0.{i}.0/24\"");
                format!("[[rule]]\n{to}\ndirect = \"nr\"\n")
            })
            .collect();
        assert_eq!(
            device(&many).unwrap().rule.len(),
            17,
            "one list of accesses"
        );
        let e = device(&"[[rule]]\nblock = true\n".repeat(255)).unwrap_err();
        assert!(e.contains("255 rules are too many: at most 254"), "{e}");
        let e = device("[manager]\nrecover = false\n[[rule]]\ndirect = \"nr\"\n");
        assert!(e.is_ok(), "without Multipath TCP nobody needs it");
    }

    #[test]
    fn users_are_of_programs_and_clients_of_hosts() {
        let bare = "engine = \"mpquic\"\nproxy = \"10.77.0.1\"\ndefault = \"bond\"\n[mpquic]\npins = [\"sha256/x\"]\n[access.nr]\ninterface = \"wwan0\"\n";
        let read = |text: &str, more: &str| {
            let text = format!("{text}[[rule]]\n{more}\nblock = true\n");
            let read = Config::<DeviceAccess>::parse(&text, Format::Toml);
            read.map_err(|p| p.in_file("f".into(), &text).to_string())
        };
        for user in [
            "user = \"backup\"",
            "user = [34, \"root\"]",
            "unit = \"a.service\"",
            "port = 80",
        ] {
            let config = read(bare, user).unwrap();
            let toml = toml::to_string(&config).unwrap();
            let again = Config::<DeviceAccess>::parse(&toml, Format::Toml).unwrap();
            assert_eq!(again, config);
        }
        let e = read(bare, "client = \"10.0.0.1\"").unwrap_err();
        assert!(e.contains("f:9:1: ") && e.contains("expected [lan]"), "{e}");
        let e = read(DEVICE, "user = 34").unwrap_err();
        assert!(e.contains("expected default = \"bond\""), "{e}");
        let usual = bare.replace("\"bond\"", "\"routes\"");
        let e = read(&usual, "port = 80").unwrap_err();
        assert!(e.contains("they need [lan]"), "{e}");
    }

    #[test]
    fn rules_need_hosts_and_stand_at_the_device() {
        let text = "engine = \"mpquic\"\nproxy = \"10.77.0.1\"\n[mpquic]\npins = [\"sha256/x\"]\n[access.nr]\ninterface = \"wwan0\"\n";
        let text = format!("{text}[[rule]]\nblock = true\n");
        let e = Config::<DeviceAccess>::parse(&text, Format::Toml).unwrap_err();
        assert!(
            e.in_file("f".into(), &text)
                .to_string()
                .contains("they need [lan]")
        );
        let text = "engine = \"mpquic\"\nproxy = \"10.77.0.1\"\n[mpquic]\npins = [\"sha256/x\"]\n[[rule]]\nblock = true\n";
        let e = Config::<ProxyAccess>::parse(text, Format::Toml).unwrap_err();
        assert!(
            e.in_file("f".into(), text)
                .to_string()
                .contains("set them there")
        );
    }
}
