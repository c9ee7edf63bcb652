//! Verdict of the rules about a flow, and why.

use std::fmt::Write;

use braid_api::Rules;
use braid_core::rules::{Flow, Match, Outcome, ask};
use serde::Serialize;

/// Verdict about a flow.
#[derive(Debug, Serialize)]
pub(super) struct Verdict {
    /// Rule that decides; absent: none, and the flow goes over the bond.
    rule: Option<String>,
    /// Outcome, in words.
    outcome: String,
    /// Access by which it leaves directly now.
    by: Option<String>,
    /// Why it does not leave, where it should.
    note: Option<String>,
    /// Rules before the one that decides, or all.
    asked: Vec<Asked>,
}

/// Rule that was asked first and did not decide.
#[derive(Debug, Serialize)]
struct Asked {
    rule: String,
    /// Criterion by which the flow does not meet it, or of which a fact is not known.
    criterion: &'static str,
    /// Whether that is not known: then it may decide.
    perhaps: bool,
}

impl Verdict {
    /// Judges a flow.
    pub(super) fn new(rules: &Rules, flow: &Flow) -> Self {
        let (asked, decides) = ask(rules.rules.iter().map(|r| &r.rule), flow);
        let asked = rules.rules.iter().zip(asked).filter_map(|(r, result)| {
            let (criterion, perhaps) = match result {
                Match::No(criterion) => (criterion, false),
                Match::Unknown(criterion) => (criterion, true),
                Match::Yes => return None,
            };
            Some(Asked {
                rule: r.title.clone(),
                criterion: criterion.as_str(),
                perhaps,
            })
        });
        let asked = asked.collect();
        let rule = decides.map(|i| &rules.rules[i]);
        let by = rule.and_then(|r| r.by[usize::from(flow.to.is_ipv6())].clone());
        let is_direct = rule.is_some_and(|r| matches!(r.rule.outcome, Outcome::Direct(_)));
        let family = if flow.to.is_ipv4() { "IPv4" } else { "IPv6" };
        let unled = (is_direct && by.is_none())
            .then(|| format!("refused: no access of the rule leads {family} out"));
        Self {
            rule: rule.map(|r| r.title.clone()),
            outcome: rule.map_or_else(|| "class default".into(), |r| r.rule.outcome.to_string()),
            by,
            note: rule.and_then(|r| r.note.clone()).or(unled),
            asked,
        }
    }

    /// Returns the text for people.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for a in &self.asked {
            // Writing to text does not fail.
            let _ = match a.perhaps {
                true => writeln!(
                    text,
                    "{}: perhaps; it asks for {}, which is not given",
                    a.rule, a.criterion
                ),
                false => writeln!(text, "{}: no, by {}", a.rule, a.criterion),
            };
        }
        let rule = self.rule.as_deref().unwrap_or("no other rule");
        let _ = write!(text, "{rule}: {}", self.outcome);
        match (&self.note, &self.by) {
            (Some(note), _) => text += &format!(" ({note})"),
            (None, Some(by)) => text += &format!(" (now {by})"),
            (None, None) => {}
        }
        text + "\n"
    }
}

#[cfg(test)]
mod tests {
    use braid_core::rules::Mac;

    use super::*;

    fn rules() -> Rules {
        serde_json::from_str(
            r#"{"t_ns": 1, "default": {"flows": 0, "up_packets": 0, "up_bytes": 0, "down_packets": 0, "down_bytes": 0},
            "rules": [
            {"title": "tv", "rule": {"client": "02:00:5e:10:00:01", "block": true}, "by": [null, null],
             "count": {"flows": 0, "up_packets": 0, "up_bytes": 0, "down_packets": 0, "down_bytes": 0}},
            {"title": "rule 2", "rule": {"port": 443, "protocol": "udp", "direct": "nr"}, "by": ["nr", null],
             "count": {"flows": 0, "up_packets": 0, "up_bytes": 0, "down_packets": 0, "down_bytes": 0}}]}"#,
        )
        .unwrap()
    }

    #[test]
    fn a_verdict_says_why() {
        let flow = Flow {
            protocol: Some(17),
            port: Some(443),
            ..Flow::to("203.0.113.9".parse().unwrap())
        };
        let text = Verdict::new(&rules(), &flow).text();
        assert_eq!(
            text,
            "tv: perhaps; it asks for client, which is not given\nrule 2: direct by nr (now nr)\n"
        );
        let other = Flow {
            mac: Some(Mac([2; 6])),
            port: Some(80),
            ..flow.clone()
        };
        let text = Verdict::new(&rules(), &other).text();
        assert_eq!(
            text,
            "tv: no, by client\nrule 2: no, by port\nno other rule: class default\n"
        );
        let v6 = Flow {
            to: "2001:db8::9".parse().unwrap(),
            ..flow.clone()
        };
        let text = Verdict::new(&rules(), &v6).text();
        assert!(
            text.ends_with(
                "rule 2: direct by nr (refused: no access of the rule leads IPv6 out)\n"
            ),
            "{text}"
        );
        let none = Verdict::new(&Rules::default(), &flow).text();
        assert_eq!(none, "no other rule: class default\n");
    }
}
