//! Runs by which weights are measured.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result};
use braid_lab::scenario::Action;
use toml::Table;

use super::steps::Step;
use crate::text;

/// The congestion control of plain TCP and of stock MPTCP beside weights.
const CC: &str = "cubic";
/// Length of a step of weights.
const STEP_S: u32 = 5;
/// The weights of the steps of one connection.
const STEPS: [[f64; 3]; 5] = [
    [1.0, 1.0, 1.0],
    [10.0, 100.0, 1.0],
    [30.0, 100.0, 1.0],
    [1.0, 1.0, 1.0],
    [30.0, 100.0, 1.0],
];
/// Rate at which the application sends where it sends less than the links carry, Mbit/s.
pub(crate) const SENT_MBPS: f64 = 300.0;

/// The name of a ratio.
pub(crate) fn ratio(weights: &[f64; 3]) -> String {
    weights.map(|w| w.to_string()).join(":")
}

/// The three accesses of `static`, in its order, with weights.
pub(crate) fn named(weights: &[f64; 3]) -> Vec<(String, f64)> {
    let names = ["nr", "wifi", "lifi"].map(str::to_owned);
    names.into_iter().zip(*weights).collect()
}

/// Name and downlink rate (Mbit/s, IP layer) of the accesses of `static`.
pub(crate) fn capacities() -> Result<Vec<(String, f64)>> {
    let mut table = text::accesses_of("static", "rates")?;
    text::set_length(&mut table, Duration::ZERO, Duration::from_secs(1));
    text::push(&mut table, "case", text::mptcp("rates", Table::new()));
    Ok(text::rates(&text::parse(&text::to_text(&table)?)?))
}

/// Bulk over `static`: by capacity in both modes, and the ratios.
pub(crate) const BY_CAPACITY: &str = "by capacity";
/// The ratios of bulk in strict mode.
pub(crate) const RATIOS: [[f64; 3]; 3] = [[1.0, 1.0, 1.0], [10.0, 100.0, 1.0], [30.0, 100.0, 1.0]];
/// Both modes.
pub(crate) const MODES: [&str; 2] = ["work-conserving", "strict"];

fn begun(name: &str, seed: u32, measured_s: u64) -> Result<Table> {
    let mut table = text::accesses_of("static", name)?;
    table.insert("seed".into(), i64::from(seed).into());
    text::set_length(
        &mut table,
        Duration::from_secs(2),
        Duration::from_secs(measured_s),
    );
    Ok(table)
}

/// Constant weights over the links of `static`.
pub(crate) fn constant(seed: u32) -> Result<String> {
    let mut table = begun("weights-static", seed, 10)?;
    for mode in MODES {
        let case = text::mptcp(
            &format!("{mode}, {BY_CAPACITY}"),
            text::wrr(mode, &capacities()?),
        );
        text::push(&mut table, "case", case);
    }
    for weights in &RATIOS {
        let name = format!("strict, {}", ratio(weights));
        let case = text::mptcp(&name, text::wrr("strict", &named(weights)));
        text::push(&mut table, "case", case);
    }
    text::to_text(&table)
}

/// An application that sends less than the links carry.
pub(crate) fn limited(seed: u32) -> Result<String> {
    let mut table = begun("weights-limited", seed, 10)?;
    for mode in MODES {
        let mut traffic = Table::new();
        traffic.insert("kind".into(), "cbr".into());
        traffic.insert("rate".into(), format!("{SENT_MBPS} Mbit/s").into());
        let mut case = text::mptcp(mode, text::wrr(mode, &named(&RATIOS[2])));
        case.insert("traffic".into(), traffic.into());
        text::push(&mut table, "case", case);
    }
    text::to_text(&table)
}

/// Weights changed within one connection.
pub(crate) fn changed(seed: u32) -> Result<String> {
    let mut table = begun("weights-changed", seed, u64::from(STEP_S) * 5 - 2)?;
    for (k, weights) in STEPS.iter().enumerate().skip(1) {
        let mut event = Table::new();
        event.insert("at".into(), format!("{} s", STEP_S * k as u32).into());
        let weights = text::weights_table(&named(weights));
        event.insert("weights".into(), weights.into());
        text::push(&mut table, "event", event);
    }
    let case = text::mptcp("strict", text::wrr("strict", &named(&STEPS[0])));
    text::push(&mut table, "case", case);
    text::to_text(&table)
}

/// Figure 6 of paper 000, as it comes with Braid; of its cases that of the kernel alone.
pub(crate) fn sweep(seed: u32) -> Result<String> {
    let kernel = |c: &Table| text::is_of(c, "mptcp");
    text::to_text(&text::shipped_cases("weights", seed, kernel)?)
}

/// The times of constant weights of a scenario's first case.
pub(crate) fn steps(scenario: &str) -> Result<Vec<Step>> {
    let scenario = text::parse(scenario)?;
    let case = scenario.cases.first().context("a scenario has no case")?;
    let mut weights = case.weights.clone().unwrap_or_default();
    let mut out: Vec<Step> = Vec::new();
    let mut from_s = 0.0;
    let mut add = |from_s: f64, to_s: f64, weights: &BTreeMap<String, f64>| {
        let weights = weights.clone();
        out.push(Step {
            from_s,
            to_s,
            weights,
        });
    };
    for event in &case.events {
        if let Action::Weights(new) = &event.action {
            add(from_s, event.at.as_secs_f64(), &weights);
            weights.extend(new.clone());
            from_s = event.at.as_secs_f64();
        }
    }
    add(from_s, case.duration.as_secs_f64(), &weights);
    Ok(out)
}

/// A pair: plain TCP on either access, stock MPTCP, and weights. The
/// congestion control of the last says only which TCP it is compared with.
pub(crate) fn pair(variant: &str, seed: u32) -> Result<String> {
    let mut table = text::pair(variant, "weights-pair")?;
    table.insert("seed".into(), i64::from(seed).into());
    // A burst of 64 kB takes half a second on a link of 1 Mbit/s.
    let (warmup, measured) = if variant.contains("1/300") {
        (10, 30)
    } else {
        (3, 7)
    };
    text::set_length(
        &mut table,
        Duration::from_secs(warmup),
        Duration::from_secs(measured),
    );
    let mut rates = table.clone();
    text::push(&mut rates, "case", text::mptcp("rates", Table::new()));
    let rates = text::rates(&text::parse(&text::to_text(&rates)?)?);
    for (access, _) in &rates {
        let mut case = text::mptcp(&format!("TCP on {access}"), Table::new());
        case.insert("engine".into(), "tcp".into());
        case.insert("access".into(), access.as_str().into());
        text::push(&mut table, "case", case);
    }
    text::push(&mut table, "case", text::mptcp("stock", Table::new()));
    let weighted = text::mptcp("wrr", text::wrr("work-conserving", &rates));
    text::push(&mut table, "case", weighted);
    for case in table["case"].as_array_mut().into_iter().flatten() {
        if let Some(case) = case.as_table_mut() {
            case.insert("cc".into(), CC.into());
        }
    }
    text::to_text(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_is_a_scenario() {
        let read = |text: Result<String>| text::parse(&text.unwrap()).unwrap();
        assert_eq!(read(constant(1)).cases.len(), 5);
        assert_eq!(read(limited(1)).cases.len(), 2);
        let s = read(changed(7));
        assert_eq!((s.seed, s.cases[0].events.len()), (7, 4));
        assert_eq!(read(sweep(1)).cases.len(), 1);
        for variant in super::super::soak_plan::pairs().unwrap() {
            let s = read(pair(&variant, 1));
            let names: Vec<&str> = s.cases.iter().map(|c| c.name.as_str()).collect();
            assert_eq!(names, ["TCP on a", "TCP on b", "stock", "wrr"]);
            assert!(s.cases.iter().all(|c| c.cc.as_deref() == Some(CC)));
        }
    }

    #[test]
    fn steps_are_those_of_the_events() {
        for (text, second) in [
            (changed(1), [10.0, 100.0, 1.0]),
            (sweep(1), [5.0, 25.0, 1.0]),
        ] {
            let steps = steps(&text.unwrap()).unwrap();
            assert_eq!(steps.len(), 5);
            assert!(steps.windows(2).all(|w| w[0].to_s == w[1].from_s));
            assert_eq!((steps[0].from_s, steps[4].to_s), (0.0, 25.0));
            assert_eq!(steps[0].weights, named(&[1.0; 3]).into_iter().collect());
            assert_eq!(steps[1].weights, named(&second).into_iter().collect());
            assert_eq!(steps[4].weights["wifi"], 100.0);
        }
    }

    #[test]
    fn ratios_are_written_as_users_write_them() {
        assert_eq!(ratio(&[30.0, 100.0, 1.0]), "30:100:1");
        assert_eq!(capacities().unwrap()[2], ("lifi".to_owned(), 12.535));
    }
}
