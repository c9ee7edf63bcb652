//! The traces of a scenario, gathered so that it can be run anywhere.

use std::collections::BTreeMap;
use std::path::Path;

use sha2::{Digest, Sha256};
use toml::{Table, Value};

use crate::scenario::Source;

/// Keys whose values are names of files: of traces and of path plans.
const NAMES: [&str; 6] = [
    "trace",
    "delay_trace",
    "loss_trace",
    "plan",
    "file",
    "ideal",
];

/// Gives every trace that `scenario` names a name of its own below `traces/`,
/// and returns those names with the bytes. A trace that cannot be read keeps
/// its name.
pub(super) fn gather(source: &Source, scenario: &mut Table) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for (_, value) in scenario.iter_mut() {
        visit(source, value, &mut found);
    }
    found
}

fn visit(source: &Source, value: &mut Value, found: &mut BTreeMap<String, Vec<u8>>) {
    match value {
        Value::Table(t) => {
            for (key, v) in t.iter_mut() {
                match v {
                    Value::String(name) if NAMES.contains(&key.as_str()) => {
                        if let Some(bytes) = source.trace(name) {
                            *name = portable(name, &bytes);
                            found.insert(name.clone(), bytes);
                        }
                    }
                    _ => visit(source, v, found),
                }
            }
        }
        Value::Array(a) => a.iter_mut().for_each(|v| visit(source, v, found)),
        _ => {}
    }
}

/// A name by which a trace can be told from others of the same name; it keeps
/// its ending, which tells its format.
fn portable(name: &str, bytes: &[u8]) -> String {
    let file = Path::new(name).file_name().unwrap_or_default();
    let hash: String = Sha256::digest(bytes)[..4]
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    format!("traces/{hash}-{}", file.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shipped_trace_comes_along_under_a_name_of_its_own() {
        let source = Source::open("walk").unwrap();
        let mut scenario: Table = toml::from_str(&source.text).unwrap();
        let traces = gather(&source, &mut scenario);
        let name = scenario["access"]["wifi"]["down"]["trace"]
            .as_str()
            .unwrap();
        assert!(
            name.starts_with("traces/") && name.ends_with("-walk.csv"),
            "{name}"
        );
        assert_eq!(traces[name], source.trace("traces/walk.csv").unwrap());
    }
}
