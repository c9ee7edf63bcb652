//! Notes under the result, on the terminal and in the report alike.

use super::cases::{Case, PAUSE_MS, paper_only};
use super::columns::paper_value;
use super::numbers::{is_over, plain, short};
use crate::summary::Summary;

/// Note of a case whose goodput is above what the wire allowed in the measured time.
const OVER: &str = "data that had arrived in the warm-up was read in the measured time: goodput \
                    is up to 1 % above what the wire allows";

/// Notes under the table, and the marks in the rows that point to them.
#[derive(Default)]
pub(super) struct Notes {
    /// Mark and text.
    pub(super) lines: Vec<(String, String)>,
    numbered: usize,
}

impl Notes {
    /// The name of a case with the marks of its notes.
    pub(super) fn name(&mut self, case: &Case<'_>) -> String {
        let mut marks = String::new();
        if case.paused() {
            marks.push('†');
            self.pause(case);
        }
        let failures = failures(case);
        let alone = case.measured_alone();
        let partly = (!alone.is_empty()).then(|| {
            let names = plain(&alone.join(", "));
            format!("best single: of those measured alone: {names}")
        });
        let over = case.median(|r| r.efficiency).is_some_and(is_over);
        let over = over.then(|| OVER.to_owned());
        for text in failures
            .into_iter()
            .chain(case.notes().into_iter().map(plain))
            .chain(partly)
            .chain(over)
        {
            marks.push_str(&self.mark(text));
        }
        let name = plain(case.name);
        if marks.is_empty() {
            name
        } else {
            format!("{name} {marks}")
        }
    }

    /// One line for all cases that the host's pauses befell.
    fn pause(&mut self, case: &Case<'_>) {
        let h = case.host();
        let what = format!(
            "{} ({}, {} ms)",
            plain(case.name),
            h.late_wakes,
            short(h.max_late_ms)
        );
        match self.lines.iter_mut().find(|(mark, _)| mark == "†") {
            Some((_, text)) => {
                text.push_str(", ");
                text.push_str(&what);
            }
            None => self.lines.push((
                "†".to_owned(),
                format!(
                    "the host paused for more than {PAUSE_MS} ms, and these numbers include that \
                     (how often, the longest): {what}"
                ),
            )),
        }
    }

    /// The mark of a note; the same text has the same one everywhere.
    fn mark(&mut self, text: String) -> String {
        if let Some((mark, _)) = self.lines.iter().find(|(_, t)| *t == text) {
            return mark.clone();
        }
        self.numbered += 1;
        let mark = format!("[{}]", self.numbered);
        self.lines.push((mark.clone(), text));
        mark
    }
}

/// Why repeats of a case failed, each reason once with the repeats it befell.
fn failures(case: &Case<'_>) -> Vec<String> {
    let mut reasons: Vec<(&str, Vec<u32>)> = Vec::new();
    for (repeat, why) in case.failures() {
        match reasons.iter_mut().find(|(w, _)| *w == why) {
            Some((_, r)) => r.push(repeat),
            None => reasons.push((why, vec![repeat])),
        }
    }
    let text = |(why, repeats): (&str, Vec<u32>)| {
        let why = plain(why);
        let list: Vec<String> = repeats.iter().map(u32::to_string).collect();
        match repeats.len() {
            n if n == case.runs.len() => format!("failed: {why}"),
            1 => format!("repeat {} failed and is left out: {why}", list[0]),
            _ => format!("repeats {} failed and are left out: {why}", list.join(", ")),
        }
    };
    reasons.into_iter().map(text).collect()
}

/// Lists the figures that the paper prints and no case reproduces, and the paper's sources.
pub(super) fn paper_lines(s: &Summary) -> Vec<String> {
    let mut out = Vec::new();
    let only: Vec<String> = paper_only(s)
        .into_iter()
        .map(|(name, figures)| {
            let values: Vec<String> = figures
                .iter()
                .map(|p| paper_value(&p.field, p.value))
                .collect();
            format!("{} {}", plain(name), values.join(", "))
        })
        .collect();
    if !only.is_empty() {
        out.push(format!("Only in the paper: {}", only.join("; ")));
    }
    let mut sources: Vec<String> = s.paper.iter().map(|p| plain(&p.source)).collect();
    sources.sort();
    sources.dedup();
    if !sources.is_empty() {
        out.push(format!("Paper: {}", sources.join("; ")));
    }
    out
}
