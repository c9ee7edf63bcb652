//! Scenarios made from those that come with Braid.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use braid_lab::scenario::{Overrides, Scenario, shipped};
use braid_radio::model::RateSpec;
use toml::{Table, Value};

/// Returns a shipped scenario as a table, to be changed.
pub(crate) fn shipped_table(name: &str) -> Result<Table> {
    let found = shipped().iter().find(|s| s.name == name);
    let text = found
        .with_context(|| format!("no scenario {name} comes with Braid"))?
        .text;
    text.parse()
        .with_context(|| format!("read the scenario {name}"))
}

/// A shipped scenario with this seed, of its cases those that `keep` takes.
pub(crate) fn shipped_cases(name: &str, seed: u32, keep: fn(&Table) -> bool) -> Result<Table> {
    let mut table = shipped_table(name)?;
    table.insert("seed".into(), i64::from(seed).into());
    if let Some(cases) = table.get_mut("case").and_then(Value::as_array_mut) {
        cases.retain(|c| c.as_table().is_some_and(keep));
    }
    Ok(table)
}

/// Whether a case is of this engine.
pub(crate) fn is_of(case: &Table, engine: &str) -> bool {
    case.get("engine").and_then(Value::as_str) == Some(engine)
}

/// The accesses of a shipped scenario, and nothing else of it.
pub(crate) fn accesses_of(name: &str, new_name: &str) -> Result<Table> {
    let mut table = shipped_table(name)?;
    table.retain(|key, _| key == "access");
    let mut out = Table::new();
    out.insert("name".into(), new_name.into());
    out.extend(table);
    Ok(out)
}

/// The accesses of a variant of `pairs`.
pub(crate) fn pair(variant: &str, new_name: &str) -> Result<Table> {
    let mut out = accesses_of("pairs", new_name)?;
    let pairs = shipped_table("pairs")?;
    let variants = pairs.get("variant").and_then(Value::as_array);
    let found = variants
        .into_iter()
        .flatten()
        .find(|v| v.get("name").and_then(Value::as_str) == Some(variant))
        .with_context(|| format!("the scenario pairs has no variant {variant}"))?;
    let changes = found.get("access").and_then(Value::as_table);
    for (access, links) in changes.into_iter().flatten() {
        for (link, keys) in links.as_table().into_iter().flatten() {
            let own = out
                .get_mut("access")
                .and_then(|a| a.get_mut(access)?.as_table_mut())
                .with_context(|| format!("the scenario pairs has no access {access}"))?;
            let own = own
                .entry(link)
                .or_insert_with(|| Value::Table(Table::new()));
            if let (Some(own), Some(keys)) = (own.as_table_mut(), keys.as_table()) {
                own.extend(keys.clone());
            }
        }
    }
    Ok(out)
}

/// Sets how long the cases run: `warmup` and then `measured`.
pub(crate) fn set_length(table: &mut Table, warmup: Duration, measured: Duration) {
    let text = |d: Duration| Value::from(format!("{} ms", d.as_millis()));
    table.insert("duration".into(), text(warmup + measured));
    table.insert("warmup".into(), text(warmup));
}

/// Adds a table to an array of tables (`case`, `event`).
pub(crate) fn push(table: &mut Table, array: &str, entry: Table) {
    let list = table
        .entry(array)
        .or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = list {
        list.push(Value::Table(entry));
    }
}

/// A case that sends as much as it can.
pub(crate) fn bulk(name: &str, engine: &str, keys: Table) -> Table {
    let mut case = Table::new();
    case.insert("name".into(), name.into());
    case.insert("engine".into(), engine.into());
    case.insert("traffic".into(), "bulk".into());
    case.extend(keys);
    case
}

/// Such a case of MPTCP.
pub(crate) fn mptcp(name: &str, keys: Table) -> Table {
    bulk(name, "mptcp", keys)
}

/// Weighted round robin.
pub(crate) fn wrr(mode: &str, weights: &[(String, f64)]) -> Table {
    let mut case = Table::new();
    case.insert("scheduler".into(), "wrr".into());
    case.insert("wrr_mode".into(), mode.into());
    case.insert("weights".into(), weights_table(weights).into());
    case
}

/// A table of weights.
pub(crate) fn weights_table(weights: &[(String, f64)]) -> Table {
    weights
        .iter()
        .map(|(name, w)| (name.clone(), Value::Float(*w)))
        .collect()
}

/// The text of a table, for `braid lab run`.
pub(crate) fn to_text(table: &Table) -> Result<String> {
    toml::to_string(table).context("write a scenario")
}

/// Reads a scenario without files of its own as the lab does.
pub(crate) fn parse(text: &str) -> Result<Scenario> {
    parse_in(Path::new("."), text)
}

/// Reads a scenario whose files are in `dir`.
pub(crate) fn parse_in(dir: &Path, text: &str) -> Result<Scenario> {
    Scenario::parse(text, Path::new("bench.toml"), dir, &Overrides::default())
        .map_err(|d| anyhow::anyhow!("{d}"))
}

/// Name and downlink rate (Mbit/s, IP layer) of the accesses of the first case.
pub(crate) fn rates(scenario: &Scenario) -> Vec<(String, f64)> {
    let accesses = scenario.cases.first().map(|c| c.accesses.as_slice());
    accesses
        .unwrap_or_default()
        .iter()
        .filter_map(|a| match &a.down.rate {
            RateSpec::Constant(rate) => Some((a.name.clone(), rate.as_mbps())),
            _ => None,
        })
        .collect()
}

/// A name that can be that of a folder.
pub(crate) fn slug(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c.to_ascii_lowercase());
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    out.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_of_another_ones_accesses_is_one() {
        let mut t = accesses_of("static", "test").unwrap();
        set_length(&mut t, Duration::from_secs(2), Duration::from_millis(1500));
        let weights = [("nr".to_owned(), 3.0), ("wifi".to_owned(), 1.0)];
        push(&mut t, "case", mptcp("by weight", wrr("strict", &weights)));
        let s = parse(&to_text(&t).unwrap()).unwrap();
        assert_eq!(s.cases.len(), 1);
        assert_eq!(s.cases[0].duration, Duration::from_millis(3500));
        assert_eq!(s.cases[0].weights.as_ref().unwrap()["nr"], 3.0);
        let rates = rates(&s);
        assert_eq!(rates[1], ("wifi".to_owned(), 1232.7));
        assert!(shipped_table("no such").is_err());
    }

    #[test]
    fn slugs_are_names_of_folders() {
        assert_eq!(slug("pairs 10/1 + 10/25 wrr"), "pairs-10-1-10-25-wrr");
        assert_eq!(slug("../x"), "x");
    }
}
