//! Changes that an axis makes to a scenario.

use toml::{Table, Value};

use crate::scenario::nearest;

/// Axes by a short name.
const SHORT: [&str; 13] = [
    "cc",
    "scheduler",
    "wrr_mode",
    "weights",
    "policy",
    "estimator",
    "size",
    "traffic",
    "loss",
    "rate",
    "delay",
    "jitter",
    "queue",
];

/// Gives `scenario` one value of the axis `key`; says why not where it cannot.
pub(super) fn apply(scenario: &mut Table, key: &str, value: &Value) -> Result<(), String> {
    match key {
        "cc" | "traffic" => cases(scenario, key, |_| true, |c| set(c, key, value)),
        "scheduler" | "wrr_mode" | "weights" | "policy" | "estimator" => cases(
            scenario,
            key,
            |c| c.get("engine").and_then(Value::as_str) != Some("tcp"),
            |c| set(c, key, value),
        ),
        "size" => cases(scenario, key, is_bulk, |c| {
            let traffic = c.entry("traffic").or_insert(Value::Table(Table::new()));
            if !traffic.is_table() {
                *traffic = Value::Table(Table::from_iter([("kind".into(), "bulk".into())]));
            }
            if let Value::Table(t) = traffic {
                set(t, "bytes", value);
            }
        }),
        "loss" | "rate" | "delay" | "jitter" | "queue" => {
            let accesses = scenario.get_mut("access").and_then(Value::as_table_mut);
            for (_, access) in accesses.into_iter().flatten() {
                if let Some(down) = access.as_table_mut().and_then(|a| table(a, "down")) {
                    set_link(down, key, value);
                }
            }
            Ok(())
        }
        _ => match key.split('.').collect::<Vec<_>>()[..] {
            ["access", name, direction @ ("down" | "up"), property] => {
                let known = scenario.get_mut("access").and_then(Value::as_table_mut);
                let link = known
                    .and_then(|k| k.get_mut(name)?.as_table_mut())
                    .and_then(|a| table(a, direction))
                    .ok_or_else(|| format!("the scenario has no access \"{name}\""))?;
                set_link(link, property, value);
                Ok(())
            }
            ["plan", property] => {
                let plan = scenario.get_mut("plan").and_then(Value::as_table_mut);
                let plan = plan.ok_or("the scenario has no [plan]")?;
                set(plan, property, value);
                Ok(())
            }
            _ => Err(unknown(key)),
        },
    }
}

fn unknown(key: &str) -> String {
    let mut text = format!(
        "unknown axis \"{key}\": expected one of {}, plan.KEY, or access.NAME.down.KEY and access.NAME.up.KEY with a key of a link",
        SHORT.join(", ")
    );
    if let Some(n) = nearest(key, SHORT) {
        text.push_str(&format!("; did you mean \"{n}\"?"));
    }
    text
}

/// Changes every case that is `meant`; there must be one.
fn cases(
    scenario: &mut Table,
    key: &str,
    meant: impl Fn(&Table) -> bool,
    mut change: impl FnMut(&mut Table),
) -> Result<(), String> {
    let all = scenario.get_mut("case").and_then(Value::as_array_mut);
    let mut any = false;
    for case in all.into_iter().flatten().filter_map(Value::as_table_mut) {
        if meant(case) {
            change(case);
            any = true;
        }
    }
    if any {
        Ok(())
    } else {
        Err(format!("no case of the scenario has a `{key}` to vary"))
    }
}

fn is_bulk(case: &Table) -> bool {
    match case.get("traffic") {
        Some(Value::String(s)) => s == "bulk",
        Some(Value::Table(t)) => t.get("kind").and_then(Value::as_str) == Some("bulk"),
        _ => false,
    }
}

/// A value and a trace are two ways to say one thing: the axis wins.
fn set_link(link: &mut Table, key: &str, value: &Value) {
    const WAYS: [(&str, &str); 3] = [
        ("rate", "trace"),
        ("delay", "delay_trace"),
        ("loss", "loss_trace"),
    ];
    for (value, trace) in WAYS {
        if key == value {
            link.remove(trace);
        } else if key == trace {
            link.remove(value);
        }
    }
    set(link, key, value);
}

fn set(table: &mut Table, key: &str, value: &Value) {
    table.insert(key.to_owned(), value.clone());
}

fn table<'a>(parent: &'a mut Table, key: &str) -> Option<&'a mut Table> {
    parent
        .entry(key)
        .or_insert(Value::Table(Table::new()))
        .as_table_mut()
}

/// A value as it stands in the name of a job.
pub(super) fn label(value: &Value) -> String {
    match value {
        Value::String(s) => s.clone(),
        Value::Table(t) => {
            let parts: Vec<String> = t.values().map(label).collect();
            parts.join(":")
        }
        other => other.to_string(),
    }
}
