//! Arguments of `braid set`: names of accesses with what each is given.

use braid_api::Expected;
use braid_core::{Rate, weight};
use braid_netns::error::LabError;

use crate::twice::twice;

/// A name, which may have a = in it, and what stands behind the last.
fn named(text: &str) -> Option<(&str, &str)> {
    text.rsplit_once('=').filter(|(name, _)| !name.is_empty())
}

/// `NAME=W`.
pub(super) fn share(text: &str) -> Result<(String, f64), String> {
    let wrong = || {
        format!(
            "expected NAME=W with a number W, 0 to {}, not \"{text}\"",
            weight::MAX
        )
    };
    let (name, weight) = named(text).ok_or_else(wrong)?;
    let weight: f64 = weight.parse().map_err(|_| wrong())?;
    weight::check(name, weight).map_err(|_| wrong())?;
    Ok((name.to_owned(), weight))
}

/// `NAME=N` or `NAME=none`.
pub(super) fn priority(text: &str) -> Result<(String, Option<u16>), String> {
    let wrong = || format!("expected NAME=N with a number N, 0 to 65535, or none, not \"{text}\"");
    let (name, number) = named(text).ok_or_else(wrong)?;
    let number = match number {
        "none" => None,
        n => Some(n.parse().map_err(|_| wrong())?),
    };
    Ok((name.to_owned(), number))
}

/// `NAME=DOWN`, `NAME=/UP`, `NAME=DOWN/UP` or `NAME=none`.
pub(super) fn expected(text: &str) -> Result<(String, Expected), String> {
    let wrong = || {
        format!(
            "expected NAME=DOWN, NAME=DOWN/UP or NAME=/UP, each Mbit/s above 0, or NAME=none, \
             not \"{text}\""
        )
    };
    let rate = |s: &str| {
        let mbps: f64 = s.parse().map_err(|_| wrong())?;
        let sound = mbps.is_finite() && mbps > 0.0;
        sound.then(|| Rate::from_mbps(mbps)).ok_or_else(wrong)
    };
    let (name, rates) = named(text).ok_or_else(wrong)?;
    let rates = match rates.split_once('/') {
        None if rates == "none" => Expected::default(),
        None => Expected {
            down: Some(rate(rates)?),
            up: None,
        },
        Some((down, up)) => Expected {
            down: (!down.is_empty()).then(|| rate(down)).transpose()?,
            up: Some(rate(up)?),
        },
    };
    rates.check()?;
    Ok((name.to_owned(), rates))
}

/// How `braid set expect` takes it.
pub(super) fn shown(expected: Expected) -> String {
    let mbps = |r: Option<Rate>| r.map_or(String::new(), |r| r.as_mbps().to_string());
    match (expected.down, expected.up) {
        (None, None) => "none".to_owned(),
        (down, None) => mbps(down),
        (down, up) => format!("{}/{}", mbps(down), mbps(up)),
    }
}

/// Refuses a name that is given two values.
pub(super) fn once<T>(given: Vec<(String, T)>) -> Result<Vec<(String, T)>, LabError> {
    let names: Vec<&str> = given.iter().map(|(name, _)| name.as_str()).collect();
    match twice(&names) {
        Some(name) => Err(LabError::BadInput(format!(
            "{name} is named twice: give it one value"
        ))),
        None => Ok(given),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn weights_are_names_and_numbers() {
        assert_eq!(share("nr=30"), Ok(("nr".into(), 30.0)));
        assert_eq!(share("a=b=0.5"), Ok(("a=b".into(), 0.5)));
        for bad in [
            "nr",
            "nr=",
            "=3",
            "nr=-1",
            "nr=nan",
            "nr=inf",
            "nr=3x",
            "",
            "nr=1000001",
        ] {
            let e = share(bad).unwrap_err();
            assert!(
                e.contains("NAME=W") && e.contains("0 to 1000000"),
                "{bad}: {e}"
            );
        }
    }

    #[test]
    fn priorities_are_names_and_numbers_or_none() {
        assert_eq!(priority("nr=1"), Ok(("nr".into(), Some(1))));
        assert_eq!(priority("a=b=none"), Ok(("a=b".into(), None)));
        for bad in ["nr", "nr=", "=3", "nr=-1", "nr=1.5", "nr=65536", "nr=x", ""] {
            let e = priority(bad).unwrap_err();
            assert!(e.contains("NAME=N"), "{bad}: {e}");
        }
    }

    #[test]
    fn expectations_are_names_and_rates_or_none() {
        let read = |t: &str| expected(t).map(|(name, e)| (name, shown(e)));
        for (text, name, rates) in [
            ("nr=300", "nr", "300"),
            ("a=b=0.5/20", "a=b", "0.5/20"),
            ("nr=/20", "nr", "/20"),
            ("nr=none", "nr", "none"),
        ] {
            assert_eq!(read(text), Ok((name.into(), rates.into())));
        }
        for bad in [
            "nr", "nr=", "=3", "nr=0", "nr=-1", "nr=nan", "nr=1/", "nr=/",
        ] {
            let e = expected(bad).unwrap_err();
            assert!(e.contains("NAME=DOWN/UP"), "{bad}: {e}");
        }
        for bad in ["nr=2e6", "nr=1/0.0001"] {
            let e = expected(bad).unwrap_err();
            assert!(e.contains("not from 1 kbit/s"), "{bad}: {e}");
        }
    }

    #[test]
    fn a_name_has_one_value() {
        let named = |names: &[&str]| names.iter().map(|n| (n.to_string(), 1)).collect::<Vec<_>>();
        assert_eq!(
            once(named(&["nr", "wifi"])).unwrap(),
            named(&["nr", "wifi"])
        );
        let e = once(named(&["nr", "wifi", "nr"])).unwrap_err();
        assert!(e.to_string().contains("nr is named twice"), "{e}");
    }

    proptest! {
        #[test]
        fn any_weight_is_read_back(name in "[a-z=]{1,9}", w in 0.0f64..=1e6) {
            prop_assert_eq!(share(&format!("{name}={w}")), Ok((name, w)));
        }
    }
}
