//! Report of what was measured: on the terminal, and in the documentation.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use braid_lab::summary::CaseResult;
use comfy_table::{Table, presets::UTF8_HORIZONTAL_ONLY};

/// One requirement and what came out.
#[derive(Clone, Debug)]
pub(crate) struct Bar {
    pub(crate) what: String,
    pub(crate) bar: String,
    pub(crate) measured: String,
    pub(crate) pass: bool,
}

/// A comparison.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    pub(crate) title: String,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Comparison {
    pub(crate) fn new<const N: usize>(
        title: impl Into<String>,
        head: [&str; N],
        rows: Vec<Vec<String>>,
    ) -> Self {
        Self {
            title: title.into(),
            head: head.map(str::to_owned).into(),
            rows,
        }
    }
}

/// Everything measured in a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    pub(crate) bars: Vec<Bar>,
    pub(crate) comparisons: Vec<Comparison>,
    pub(crate) notes: Vec<String>,
}

impl Report {
    /// Adds a bar, saying it on standard error as well.
    pub(crate) fn bar(&mut self, what: &str, bar: &str, measured: String, pass: bool) {
        let verdict = if pass { "met" } else { "MISSED" };
        eprintln!("{what}: {measured} (bar: {bar}): {verdict}");
        self.bars.push(Bar {
            what: what.to_owned(),
            bar: bar.to_owned(),
            measured,
            pass,
        });
    }

    /// The bar that every byte of the application was right in each of these runs.
    pub(crate) fn every_byte<'a>(&mut self, cases: impl Iterator<Item = &'a CaseResult>) {
        let (mut runs, mut wrong) = (0, 0);
        for case in cases {
            runs += 1;
            wrong += usize::from(case.failed.is_some() || case.intact != Some(true));
        }
        self.bar(
            "every byte of the application",
            "right in every run",
            format!("{wrong} of {runs} runs failed or had a wrong byte"),
            wrong == 0,
        );
    }

    /// Adds a remark, saying it on standard error as well.
    pub(crate) fn note(&mut self, text: String) {
        eprintln!("note: {text}");
        self.notes.push(text);
    }

    /// Whether every bar was met.
    pub(crate) fn all_met(&self) -> bool {
        self.bars.iter().all(|b| b.pass)
    }

    fn tables(&self) -> Vec<Comparison> {
        let rows = self.bars.iter().map(|b| {
            let verdict = if b.pass { "met" } else { "**missed**" };
            vec![
                b.what.clone(),
                b.bar.clone(),
                b.measured.clone(),
                verdict.to_owned(),
            ]
        });
        let bars = Comparison::new(
            "Bars",
            ["what", "bar", "measured", "verdict"],
            rows.collect(),
        );
        let mut all = vec![bars];
        all.extend(self.comparisons.iter().cloned());
        all
    }

    /// For the terminal.
    pub(crate) fn terminal(&self) -> String {
        let mut out = String::new();
        for t in self.tables() {
            let mut table = Table::new();
            table.load_style(UTF8_HORIZONTAL_ONLY);
            table.set_header(&t.head);
            table.add_rows(&t.rows);
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{}\n{table}\n", t.title);
        }
        for n in &self.notes {
            let _ = writeln!(out, "- {n}");
        }
        out
    }

    /// For the documentation; `circumstances` are lines above the tables.
    pub(crate) fn markdown(&self, circumstances: &[String]) -> String {
        let mut out = String::new();
        for c in circumstances {
            let _ = writeln!(out, "- {c}");
        }
        let row = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|c| c.replace('|', "\\|")).collect();
            format!("| {} |", cells.join(" | "))
        };
        for t in self.tables() {
            let _ = writeln!(out, "\n**{}**\n\n{}", t.title, row(&t.head));
            let _ = writeln!(out, "|{}", "---|".repeat(t.head.len()));
            for r in &t.rows {
                let _ = writeln!(out, "{}", row(r));
            }
        }
        if !self.notes.is_empty() {
            out.push('\n');
        }
        for n in &self.notes {
            let _ = writeln!(out, "- {n}");
        }
        out
    }
}

/// Replaces what stands between the comments `<!-- name -->` and `<!-- /name -->`
/// in `text`.
pub(crate) fn replace_section(text: &str, name: &str, new: &str) -> Result<String> {
    let (open, close) = (format!("<!-- {name} -->"), format!("<!-- /{name} -->"));
    let (Some(a), Some(b)) = (text.find(&open), text.find(&close)) else {
        bail!("there are no lines \"{open}\" and \"{close}\" to put the results between");
    };
    let a = a + open.len();
    if b < a {
        bail!("\"{close}\" stands before \"{open}\"");
    }
    Ok(format!("{}\n{new}{}", &text[..a], &text[b..]))
}

/// Writes `section` into the file at `path`, which is made if it is missing.
pub(crate) fn write_section(path: &Path, name: &str, section: &str) -> Result<()> {
    let attempt = || format!("cannot write the results to {}", path.display());
    let text = match std::fs::read_to_string(path) {
        Ok(t) => t,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            format!("# Performance\n\n<!-- {name} -->\n<!-- /{name} -->\n")
        }
        Err(e) => return Err(e).with_context(attempt),
    };
    let text = replace_section(&text, name, section).with_context(attempt)?;
    std::fs::write(path, text).with_context(attempt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_section_changes() {
        let text = "a\n<!-- x -->\nold\n<!-- /x -->\nb\n";
        let new = replace_section(text, "x", "1\n2\n").unwrap();
        assert_eq!(new, "a\n<!-- x -->\n1\n2\n<!-- /x -->\nb\n");
        assert_eq!(replace_section(&new, "x", "1\n2\n").unwrap(), new);
        assert!(replace_section("a", "x", "").is_err());
        assert!(replace_section("<!-- /x --><!-- x -->", "x", "").is_err());
    }

    #[test]
    fn a_missed_bar_shows() {
        let mut r = Report::default();
        r.bar("rate", "< 1 %", "0.1 %".to_owned(), true);
        assert!(r.all_met());
        r.bar("a|b", "< 1 %", "2 %".to_owned(), false);
        assert!(!r.all_met());
        let m = r.markdown(&["today".to_owned()]);
        assert!(m.contains("| rate | < 1 % | 0.1 % | met |"), "{m}");
        assert!(m.contains("| a\\|b | < 1 % | 2 % | **missed** |"), "{m}");
        assert!(r.terminal().contains("missed"));
    }
}
