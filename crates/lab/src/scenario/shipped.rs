//! The scenarios and traces that come with Braid, built into the binary.

use super::diagnostic::nearest;

/// A shipped scenario.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Its name.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
}

impl Shipped {
    /// The first paragraph of its head comment, on one line.
    pub fn summary(&self) -> String {
        let comment = self.text.lines().take_while(|l| l.starts_with('#'));
        let words = comment.map(|l| l.trim_start_matches('#').trim());
        words
            .take_while(|l| !l.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

macro_rules! embed {
    ($($name:literal),* $(,)?) => {
        &[$(Shipped {
            name: $name,
            text: include_str!(concat!("../../../../scenarios/", $name, ".toml")),
        }),*]
    };
}

macro_rules! embed_traces {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_bytes!(concat!("../../../../scenarios/", $name)).as_slice())),*]
    };
}

const SHIPPED: &[Shipped] = embed![
    "static",
    "static-low-latency",
    "latency",
    "interruption",
    "recovery",
    "walk",
    "pairs",
    "contention",
    "drive",
    "fairness",
    "fairness-stock",
    "fairness-stock-vegas",
    "fairness-stock-load",
    "fairness-vegas",
    "fairness-load",
    "fairness-swing",
    "schedulers",
    "schedulers-v096",
    "schedulers-mpquic",
    "weights",
    "latency-schedulers",
    "walk-weights",
    "walk-auto",
    "congestion-controls",
    "receivers",
    "overrun",
    "appearing",
    "lan",
    "one-udp-flow",
    "four-lte",
    "bufferbloat",
    "energy",
    "resting",
];

const TRACES: &[(&str, &[u8])] = embed_traces!["traces/walk.csv", "traces/drive-5g4g.csv"];

/// Every shipped scenario.
pub fn shipped() -> &'static [Shipped] {
    SHIPPED
}

pub(super) fn find(name: &str) -> Option<&'static Shipped> {
    SHIPPED.iter().find(|s| s.name == name)
}

/// The trace that a shipped scenario names so.
pub fn find_trace(path: &str) -> Option<&'static [u8]> {
    TRACES.iter().find(|t| t.0 == path).map(|t| t.1)
}

/// Text of the shipped scenario or trace `name`, and the traces that it names, which ship too.
///
/// # Errors
/// Nothing of that name ships: what does, and which is most like it.
pub fn print(name: &str) -> Result<(&'static [u8], Vec<&'static str>), String> {
    if let Some(s) = find(name) {
        let named = TRACES.iter().map(|t| t.0);
        return Ok((
            s.text.as_bytes(),
            named.filter(|t| s.text.contains(t)).collect(),
        ));
    }
    match find_trace(name) {
        Some(bytes) => Ok((bytes, Vec::new())),
        None => Err(format!("{name}: {}", no_such(name))),
    }
}

pub(super) fn no_such(name: &str) -> String {
    let names: Vec<&str> = SHIPPED.iter().map(|s| s.name).collect();
    let mut m = format!(
        "no shipped scenario and no file of that name; shipped are {}",
        names.join(", ")
    );
    if let Some(n) = nearest(name, names) {
        m.push_str(&format!("; did you mean {n}?"));
    }
    m
}
