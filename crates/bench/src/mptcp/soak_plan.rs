//! Runs that the soak consists of.

use std::time::Duration;

use anyhow::{Context, Result};
use toml::{Table, Value};

use crate::text;

/// Runs of each class.
pub(crate) const PER_CLASS: u32 = 5;
/// Classes: a scenario or pair with a congestion control.
pub(crate) const CLASSES: usize = 20;
/// Time that is measured of each run.
const MEASURED: Duration = Duration::from_secs(20);

/// Runs that should come to the same goodput.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    /// The variant of `pairs`; `None`: `static`.
    pub(crate) pair: Option<String>,
    /// A congestion control, or `wrr`.
    pub(crate) cc: String,
}

impl Class {
    pub(crate) fn name(&self) -> String {
        match &self.pair {
            None => format!("static, {}", self.cc),
            Some(pair) => format!("pairs {pair}, {}", self.cc),
        }
    }

    /// Its scenario; the seed makes repeats differ.
    pub(crate) fn scenario(&self, seed: u32) -> Result<String> {
        let (mut table, warmup) = match &self.pair {
            None => (text::accesses_of("static", "soak")?, 2),
            Some(pair) => (text::pair(pair, "soak")?, 3),
        };
        table.insert("seed".into(), i64::from(seed).into());
        text::set_length(&mut table, Duration::from_secs(warmup), MEASURED);
        let keys = if self.cc == "wrr" {
            let mut probe = table.clone();
            text::push(&mut probe, "case", text::mptcp("probe", Table::new()));
            let rates = text::rates(&text::parse(&text::to_text(&probe)?)?);
            text::wrr("work-conserving", &rates)
        } else {
            Table::from_iter([("cc".to_owned(), Value::from(self.cc.as_str()))])
        };
        text::push(&mut table, "case", text::mptcp(&self.name(), keys));
        text::to_text(&table)
    }
}

/// The classes: `static` with every congestion control, then `pairs` so that
/// each pair and each congestion control occurs, no two alike.
pub(crate) fn classes(ccs: &[&str], pairs: &[String]) -> Vec<Class> {
    let of = |pair: Option<&String>, cc: &str| Class {
        pair: pair.cloned(),
        cc: cc.to_owned(),
    };
    let mut out: Vec<Class> = ccs.iter().map(|cc| of(None, cc)).collect();
    // Along the diagonals of the table of pairs and congestion controls, one
    // diagonal further each time all pairs have had their turn.
    let rest = CLASSES.saturating_sub(out.len());
    for k in 0..rest.min(ccs.len() * pairs.len()) {
        let (pair, round) = (k % pairs.len(), k / pairs.len());
        let class = of(Some(&pairs[pair]), ccs[(pair + round * 3) % ccs.len()]);
        if !out.contains(&class) {
            out.push(class);
        }
    }
    out
}

/// Congestion controls of the paper, the kernel's own, and weights.
pub(crate) const CONGESTION_CONTROLS: [&str; 8] = [
    "cubic", "reno", "bbr", "lia", "olia", "balia", "wvegas", "wrr",
];

/// Returns `CONGESTION_CONTROLS`, but for those that this kernel lacks.
pub(crate) fn congestion_controls() -> Result<Vec<&'static str>> {
    let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let available = std::fs::read_to_string(path).with_context(|| format!("read {path}"))?;
    let has = |cc: &str| available.split_whitespace().any(|a| a == cc);
    let all = CONGESTION_CONTROLS.into_iter();
    Ok(all.filter(|cc| *cc != "bbr" || has(cc)).collect())
}

/// The names of the pairs.
pub(crate) fn pairs() -> Result<Vec<String>> {
    let table = text::shipped_table("pairs")?;
    let variants = table.get("variant").and_then(Value::as_array);
    let names = variants.into_iter().flatten();
    Ok(names
        .filter_map(|v| Some(v.get("name")?.as_str()?.to_owned()))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_pair_and_congestion_control_occurs() {
        let all = CONGESTION_CONTROLS;
        let without_bbr: Vec<&str> = all.into_iter().filter(|c| *c != "bbr").collect();
        let pairs = pairs().unwrap();
        assert_eq!(pairs.len(), 7);
        for ccs in [&all[..], &without_bbr] {
            let classes = classes(ccs, &pairs);
            assert_eq!(classes.len(), CLASSES, "{ccs:?}");
            let names: BTreeSet<String> = classes.iter().map(Class::name).collect();
            assert_eq!(names.len(), CLASSES, "{names:?}");
            let slugs: BTreeSet<String> = names.iter().map(|n| text::slug(n)).collect();
            assert_eq!(slugs.len(), CLASSES, "{slugs:?}");
            for paired in [false, true] {
                let seen: BTreeSet<&str> = classes
                    .iter()
                    .filter(|c| c.pair.is_some() == paired)
                    .map(|c| c.cc.as_str())
                    .collect();
                assert_eq!(seen, ccs.iter().copied().collect(), "{paired}");
            }
            let seen: BTreeSet<&String> = classes.iter().filter_map(|c| c.pair.as_ref()).collect();
            assert_eq!(seen.len(), pairs.len());
        }
    }

    #[test]
    fn each_class_is_a_scenario_of_20_seconds() {
        let ccs = congestion_controls().unwrap();
        for class in classes(&ccs, &pairs().unwrap()) {
            let s = text::parse(&class.scenario(3).unwrap()).unwrap();
            assert_eq!(s.cases.len(), 1, "{class:?}");
            let case = &s.cases[0];
            assert_eq!(case.duration - case.warmup, MEASURED);
            assert_eq!(case.variant, None);
            assert_eq!(s.seed, 3);
            let accesses = if class.pair.is_some() { 2 } else { 3 };
            assert_eq!(case.accesses.len(), accesses);
            assert_eq!(case.weights.is_some(), class.cc == "wrr");
            if let Some("300/10 + 80/30") = class.pair.as_deref() {
                let rates: Vec<f64> = text::rates(&s).into_iter().map(|r| r.1).collect();
                assert_eq!(rates, [300.0, 80.0]);
            }
        }
    }
}
