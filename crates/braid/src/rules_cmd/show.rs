//! Table of the rules, and of the classes.

use std::collections::BTreeMap;

use braid_api::{ClassStatus, RuleCount, RuleStatus, Rules};
use braid_core::class::ClassSteering;
use serde::Serialize;

use crate::table::{Column, Output, Tone, draw};
use crate::watch::Show;

/// Rules, with what has met them and their rates.
#[derive(Debug, Serialize)]
pub(super) struct Shown {
    rules: Vec<Row>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    classes: Vec<ClassRow>,
}

/// One class.
#[derive(Debug, Serialize)]
struct ClassRow {
    #[serde(flatten)]
    class: ClassStatus,
    /// Rate that the device sends of it on each access; empty without an earlier reading.
    sent_mbps: BTreeMap<String, f64>,
}

/// One rule, or the default.
#[derive(Debug, Serialize)]
struct Row {
    title: String,
    traffic: String,
    outcome: String,
    /// Accesses by which flows leave that are sent directly: of IPv4, and of IPv6.
    by: [Option<String>; 2],
    #[serde(flatten)]
    count: RuleCount,
    /// Absent without an earlier reading.
    up_mbps: Option<f64>,
    down_mbps: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl Shown {
    /// Makes it of what was read, and read before.
    pub(super) fn new(now: &Rules, before: Option<&Rules>) -> Self {
        let seconds = before.map(|b| now.t_ns.saturating_sub(b.t_ns) as f64 / 1e9);
        let rates = |count: RuleCount, before: Option<RuleCount>| {
            let rate = |bytes: u64, before: u64| {
                let seconds = seconds.filter(|s| *s > 0.0)?;
                Some(bytes.checked_sub(before)? as f64 * 8.0 / 1e6 / seconds)
            };
            let before = before.map(|b| (b.up_bytes, b.down_bytes));
            let rates =
                before.map(|(up, down)| (rate(count.up_bytes, up), rate(count.down_bytes, down)));
            rates.unwrap_or_default()
        };
        let row = |r: &RuleStatus| {
            let same = |b: &&RuleStatus| b.title == r.title && b.rule == r.rule;
            let earlier = before
                .and_then(|b| b.rules.iter().find(same))
                .map(|b| b.count);
            let (up_mbps, down_mbps) = rates(r.count, earlier);
            Row {
                title: r.title.clone(),
                traffic: r.rule.descriptor.to_string(),
                outcome: r.rule.outcome.to_string(),
                by: r.by.clone(),
                count: r.count,
                up_mbps,
                down_mbps,
                note: r.note.clone(),
            }
        };
        let mut rules: Vec<Row> = now.rules.iter().map(row).collect();
        if !rules.is_empty() {
            let (up_mbps, down_mbps) = rates(now.default, before.map(|b| b.default));
            rules.push(Row {
                title: "default".into(),
                traffic: "all else".into(),
                outcome: "class default".into(),
                by: [None, None],
                count: now.default,
                up_mbps,
                down_mbps,
                note: None,
            });
        }
        let classes = now.classes.iter().map(|class| {
            let earlier = before.and_then(|b| b.classes.iter().find(|c| c.name == class.name));
            let rate = |(access, bytes): (&String, &u64)| {
                let seconds = seconds.filter(|s| *s > 0.0)?;
                let more = bytes.checked_sub(*earlier?.sent_bytes.get(access)?)?;
                Some((access.clone(), more as f64 * 8.0 / 1e6 / seconds))
            };
            ClassRow {
                class: class.clone(),
                sent_mbps: class.sent_bytes.iter().filter_map(rate).collect(),
            }
        });
        Self {
            rules,
            classes: classes.collect(),
        }
    }

    /// Draws the classes, with what each access carries of them.
    fn classes(&self, output: Output) -> String {
        let plain = |f: &dyn Fn(&ClassRow) -> String| -> Vec<(String, Tone)> {
            self.classes.iter().map(|r| (f(r), Tone::Plain)).collect()
        };
        let mode = |s: &Option<ClassSteering>| s.as_ref().map_or("-", |s| &s.mode).to_owned();
        let mut columns = vec![
            Column::left("class", plain(&|r| r.class.name.clone())),
            Column::left("up", plain(&|r| mode(&r.class.up))),
            Column::left("down", plain(&|r| mode(&r.class.down))),
        ];
        let accesses = self.classes.iter().flat_map(|r| r.class.sent_bytes.keys());
        let mut accesses: Vec<&String> = accesses.collect();
        accesses.sort();
        accesses.dedup();
        for access in accesses {
            let number = |f: &dyn Fn(&ClassRow) -> String| self.classes.iter().map(f).collect();
            let bytes = |r: &ClassRow| r.class.sent_bytes.get(access).copied();
            let sent = number(&|r| megabytes(bytes(r).unwrap_or(0)));
            columns.push(Column::right(format!("{access} up MB"), sent));
            let sent = number(&|r| rate(r.sent_mbps.get(access).copied()));
            columns.push(Column::right(format!("{access} up Mbit/s"), sent));
        }
        draw(&columns, output)
    }

    /// Draws the rules, or says what happens without any.
    fn rules(&self, output: Output) -> String {
        if self.rules.is_empty() {
            return "no rules: all that hosts send goes over the bond\n".to_owned();
        }
        let plain = |f: &dyn Fn(&Row) -> String| -> Vec<(String, Tone)> {
            self.rules.iter().map(|r| (f(r), Tone::Plain)).collect()
        };
        let number = |f: &dyn Fn(&Row) -> String| self.rules.iter().map(f).collect::<Vec<_>>();
        let leaves = self.rules.iter().map(|r| match &r.note {
            Some(note) => (note.clone(), Tone::Bad),
            None => (by(&r.by), Tone::Plain),
        });
        let columns = [
            Column::left("rule", plain(&|r| r.title.clone())),
            Column::left("traffic", plain(&|r| r.traffic.clone())),
            Column::left("outcome", plain(&|r| r.outcome.clone())),
            Column::left("now", leaves.collect()),
            Column::right("flows", number(&|r| r.count.flows.to_string())),
            Column::right("up MB", number(&|r| megabytes(r.count.up_bytes))),
            Column::right("down MB", number(&|r| megabytes(r.count.down_bytes))),
            Column::right("up Mbit/s", number(&|r| rate(r.up_mbps))),
            Column::right("down Mbit/s", number(&|r| rate(r.down_mbps))),
        ];
        let columns: Vec<Column> = columns.into_iter().filter(|c| !c.is_empty()).collect();
        draw(&columns, output)
    }
}

impl Show for Shown {
    fn text(&self, output: Output) -> String {
        let rules = self.rules(output);
        match self.classes.is_empty() {
            true => rules,
            false => format!("{rules}\n{}", self.classes(output)),
        }
    }
}

/// Says by which access flows leave, and which family does so by another or not at all.
fn by(by: &[Option<String>; 2]) -> String {
    match by {
        [None, None] => String::new(),
        [Some(v4), Some(v6)] if v4 == v6 => v4.clone(),
        [Some(v4), Some(v6)] => format!("{v4}, IPv6 {v6}"),
        [Some(v4), None] => format!("{v4}, no IPv6"),
        [None, Some(v6)] => format!("{v6}, no IPv4"),
    }
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / 1e6)
}

fn rate(mbps: Option<f64>) -> String {
    mbps.map_or_else(|| "-".to_owned(), |r| format!("{r:.1}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(t_ns: u64, up_bytes: u64) -> Rules {
        let text = format!(
            r#"{{"t_ns": {t_ns}, "rules": [
            {{"title": "modem", "rule": {{"name": "modem", "to": "192.168.8.1", "direct": ["nr", "wifi"]}},
              "by": ["nr", null], "count": {{"flows": 3, "up_packets": 9, "up_bytes": {up_bytes},
              "down_packets": 0, "down_bytes": 7000000}}}},
            {{"title": "rule 2", "rule": {{"client": "02:00:5e:10:00:01", "direct": "lifi"}},
              "by": [null, null], "note": "refused: lifi does not work", "count": {{"flows": 0, "up_packets": 0,
              "up_bytes": 0, "down_packets": 0, "down_bytes": 0}}}}],
            "default": {{"flows": 40, "up_packets": 1, "up_bytes": 2, "down_packets": 3, "down_bytes": 4}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_rule_is_a_line_with_its_rates() {
        let shown = Shown::new(
            &rules(3_000_000_000, 2_500_000),
            Some(&rules(1_000_000_000, 0)),
        );
        let text = shown.text(Output::Plain);
        let lines: Vec<Vec<&str>> = text
            .lines()
            .map(|l| {
                l.split("  ")
                    .map(str::trim)
                    .filter(|w| !w.is_empty())
                    .collect()
            })
            .collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert_eq!(
            lines[1],
            [
                "modem",
                "to 192.168.8.1",
                "direct by nr, else wifi",
                "nr, no IPv6",
                "3",
                "2.5",
                "7.0",
                "10.0",
                "0.0"
            ]
        );
        assert!(text.contains("refused: lifi does not work"), "{text}");
        assert_eq!(lines[3][..3], ["default", "all else", "class default"]);
        // A daemon that began anew has counted less.
        let anew = Shown::new(&rules(5_000_000_000, 1), Some(&rules(3_000_000_000, 9)));
        assert_eq!(anew.rules[0].up_mbps, None);
        assert_eq!(anew.rules[0].down_mbps, Some(0.0));
    }

    #[test]
    fn a_class_is_a_line_with_what_each_access_carries() {
        let with = |t_ns, nr: u64| {
            let mut rules = rules(t_ns, 0);
            let classes = format!(
                r#"[{{"name": "voice", "up": {{"mode": "redundant"}}, "down": {{"mode": "rr"}},
                  "sent_bytes": {{"nr": {nr}, "wifi": 5}}}}, {{"name": "default", "sent_bytes": {{"nr": 0, "wifi": 0}}}}]"#
            );
            rules.classes = serde_json::from_str(&classes).unwrap();
            rules
        };
        let shown = Shown::new(
            &with(3_000_000_000, 2_500_000),
            Some(&with(1_000_000_000, 0)),
        );
        let text = shown.text(Output::Plain);
        let line = |name: &str| {
            let (_, classes) = text.split_once("\n\n").unwrap();
            let mut words = classes.lines().map(|l| l.split_whitespace().collect());
            words
                .find(|words: &Vec<&str>| words.first() == Some(&name))
                .unwrap_or_else(|| panic!("no line of {name} in:\n{text}"))
                .join(" ")
        };
        assert_eq!(line("voice"), "voice redundant rr 2.5 10.0 0.0 0.0");
        assert_eq!(line("default"), "default - - 0.0 0.0 0.0 0.0");
        let classes_alone = Rules {
            rules: Vec::new(),
            ..with(1_000_000_000, 0)
        };
        let text = Shown::new(&classes_alone, None).text(Output::Plain);
        assert!(text.starts_with("no rules: "), "{text}");
        assert!(text.contains("redundant"), "{text}");
    }

    #[test]
    fn without_rules_it_says_what_happens() {
        let text = Shown::new(&Rules::default(), None).text(Output::Plain);
        assert_eq!(text, "no rules: all that hosts send goes over the bond\n");
    }
}
