//! The state of an access that cannot be used, and why.

use braid_api::AccessState;

use super::{Plan, Use};
use crate::rules::Verdict;
use crate::settings::Settings;
use crate::view::{Interface, View};

/// Returns state and reason of access number `i`, whose uses are planned, if none of them leads
/// out.
pub(super) fn out(
    i: usize,
    settings: &Settings,
    view: &View,
    verdicts: &[Verdict],
    plan: &Plan,
) -> Option<(AccessState, String)> {
    let access = &settings.accesses[i];
    let named = || view.interfaces.iter().zip(verdicts);
    if !access.enabled {
        let why = "switched off by a request: enable it to use it";
        return Some((AccessState::Ignored, why.into()));
    }
    let mine: Vec<&Interface> = named()
        .filter(|(_, v)| **v == Verdict::Serves(i))
        .map(|(n, _)| n)
        .collect();
    if mine.is_empty() {
        let out = named().find_map(|(n, v)| match v {
            Verdict::Out { why, access } if *access == Some(i) => Some(format!("{} {why}", n.name)),
            _ => None,
        });
        return Some(match out.or_else(|| served_instead(i, settings, view)) {
            Some(why) => (AccessState::Ignored, why),
            None if access.interface.is_name() => (
                AccessState::Down,
                format!("there is no interface {}", access.interface),
            ),
            None => (
                AccessState::Down,
                format!("no interface is called like {}", access.interface),
            ),
        });
    }
    let Some(up) = mine.iter().find(|n| n.up && n.carrier) else {
        let n = mine[0];
        let what = if n.up { "has no carrier" } else { "is down" };
        return Some((AccessState::Down, format!("{} {what}", n.name)));
    };
    let uses: Vec<&Use> = plan.uses.iter().filter(|u| u.access == i).collect();
    let double = plan.doubles.iter().find(|(access, _)| *access == i);
    if let (true, Some((_, why))) = (uses.is_empty(), double) {
        return Some((AccessState::Ignored, why.clone()));
    }
    if uses.is_empty() {
        let what = match access.address {
            Some(a) => format!("{} does not have the address {a}, or not yet", up.name),
            None => format!("{} has no address of global scope yet", up.name),
        };
        return Some((AccessState::NoAddress, what));
    }
    let routed = uses.iter().any(|u| u.routed);
    (!routed).then(|| (AccessState::NoAddress, uses[0].lacks.clone()))
}

/// Says which access before number `i` has the interface that this one asks for, if one has.
fn served_instead(i: usize, settings: &Settings, view: &View) -> Option<String> {
    let wanted = &settings.accesses[i].interface;
    let there = view.interfaces.iter().find(|n| wanted.matches(&n.name))?;
    let mut before = settings.accesses[..i].iter();
    let other = before.find(|a| a.interface.matches(&there.name))?;
    Some(format!(
        "{} serves access {}, which stands before it: give each an interface of its own",
        there.name, other.name
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::choose;
    use crate::settings::testing::{access, settings};

    fn told(wanted: [&str; 2]) -> Vec<Option<(AccessState, String)>> {
        let s = settings(vec![access("nr", wanted[0]), access("wifi", wanted[1])]);
        let view = View {
            interfaces: vec![Interface {
                index: 1,
                name: "wwan0".into(),
                up: true,
                carrier: true,
                ..Interface::default()
            }],
            ..View::default()
        };
        let (verdicts, plan) = (choose(&s, &view), Plan::default());
        (0..2)
            .map(|i| out(i, &s, &view, &verdicts, &plan))
            .collect()
    }

    #[test]
    fn an_interface_that_serves_another_access_is_not_said_to_be_missing() {
        let wifi = |interface| told(["wwan0", interface]).remove(1).expect("it is out");
        for interface in ["wwan0", "*"] {
            let (state, why) = wifi(interface);
            assert_eq!(state, AccessState::Ignored, "{interface}");
            assert!(
                why.starts_with("wwan0 serves access nr"),
                "{interface}: {why}"
            );
        }
        let (state, why) = wifi("wlan0");
        let missing = (AccessState::Down, "there is no interface wlan0");
        assert_eq!((state, &*why), missing);
        assert_eq!(wifi("wlan*").1, "no interface is called like wlan*");
    }
}
