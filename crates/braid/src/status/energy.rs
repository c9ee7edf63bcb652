//! Lines about energy: of radios by their models, and of counters of power.

use braid_api::{AccessEnergy, PowerCounter};

use super::show::number;

/// Returns a line for the radios that have models, and one for each counter.
pub(super) fn lines<'a>(
    radios: impl Iterator<Item = (&'a str, &'a AccessEnergy)>,
    counters: &[PowerCounter],
) -> String {
    let radio = |(name, e): (&str, &AccessEnergy)| {
        format!(
            "{name} {} mW, {} J so far by {}",
            number(e.power_mw),
            number(e.joules),
            e.set
        )
    };
    let all: Vec<String> = radios.map(radio).collect();
    let mut text = String::new();
    if !all.is_empty() {
        text += &format!("radios: {}\n", all.join("; "));
    }
    for c in counters {
        text += &format!("{}\n", counter(c));
    }
    text
}

fn counter(c: &PowerCounter) -> String {
    let of = match &c.rail {
        Some(rail) => format!("power of {rail}"),
        None => "power of the device".to_owned(),
    };
    let now = c.power_mw.map(|mw| format!("{} mW", number(mw)));
    let now = now.unwrap_or_else(|| "not known now".to_owned());
    let mut text = format!("{of} ({}): {now}", c.source);
    if let Some(a) = &c.attribution {
        let shares = a.accesses.iter().map(|(name, s)| {
            format!(
                "{name} {} mW in use, {} per Mbit/s down, {} up",
                number(s.in_use_mw),
                number(s.down_mw_per_mbps),
                number(s.up_mw_per_mbps)
            )
        });
        let shares: Vec<String> = shares.collect();
        text += &format!(
            "; without accesses {} mW; {} (",
            number(a.rest_mw),
            shares.join("; ")
        );
        if let Some(r2) = a.r2 {
            text += &format!("R2 {r2:.2}, ");
        }
        text += &format!("{} readings)", a.readings);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use braid_api::{PowerAttribution, PowerShare};

    use super::*;

    #[test]
    fn radios_and_counters_have_a_line_each() {
        let lte = AccessEnergy {
            set: "sigcomm21-lte".into(),
            joules: 12.34,
            power_mw: 812.3,
            ..AccessEnergy::default()
        };
        let share = PowerShare {
            in_use_mw: 400.0,
            down_mw_per_mbps: 13.5,
            up_mw_per_mbps: 70.0,
        };
        let counters = [
            PowerCounter {
                source: "power_supply/BAT0".into(),
                rail: None,
                power_mw: Some(2450.0),
                attribution: Some(PowerAttribution {
                    readings: 120,
                    rest_mw: 1900.0,
                    r2: Some(0.93),
                    accesses: BTreeMap::from([("lte".to_owned(), share)]),
                }),
            },
            PowerCounter {
                source: "hwmon/hwmon1/power1".into(),
                rail: Some("modem".into()),
                ..PowerCounter::default()
            },
        ];
        let text = lines([("lte", &lte)].into_iter(), &counters);
        assert_eq!(
            text,
            "radios: lte 812 mW, 12.3 J so far by sigcomm21-lte\n\
             power of the device (power_supply/BAT0): 2450 mW; without accesses 1900 mW; \
             lte 400 mW in use, 13.5 per Mbit/s down, 70.0 up (R2 0.93, 120 readings)\n\
             power of modem (hwmon/hwmon1/power1): not known now\n"
        );
        assert_eq!(lines([].into_iter(), &[]), "");
    }
}
