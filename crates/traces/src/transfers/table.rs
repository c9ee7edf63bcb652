//! Tables with a line of names and a line for each sample, separated by commas: every field with
//! its place, for messages.

use std::ops::Range;

use braid_api::diagnostic::{Problem, nearest};

use super::super::format::quote;

/// Field of a table and its bytes in the text.
#[derive(Clone, Debug)]
pub(super) struct Field<'a> {
    pub(super) text: &'a str,
    pub(super) span: Range<usize>,
}

impl Field<'_> {
    /// Number within `low` and `high`.
    pub(super) fn number(&self, low: f64, high: f64, expected: &str) -> Result<f64, Problem> {
        match self.text.parse::<f64>() {
            Ok(v) if (low..=high).contains(&v) => Ok(v),
            _ => Err(self.problem(&format!("{}: expected {expected}", quote(self.text)))),
        }
    }

    pub(super) fn problem(&self, message: &str) -> Problem {
        Problem::at(self.span.clone(), message)
    }
}

/// Table with its first line apart.
pub(super) struct Table<'a> {
    names: Vec<Field<'a>>,
    text: &'a str,
    /// Bytes at which the first sample begins.
    body: usize,
}

/// Fields of a line that begins at byte `start` of the text.
fn fields(line: &str, start: usize) -> Vec<Field<'_>> {
    let mut at = start;
    let split = line.split(',').map(|raw| {
        let begin = at + (raw.len() - raw.trim_start().len());
        let text = raw.trim();
        at += raw.len() + 1;
        Field {
            text,
            span: begin..begin + text.len(),
        }
    });
    split.collect()
}

/// Lines with the byte at which each begins; neither empty ones nor comments.
fn lines(text: &str, from: usize) -> impl Iterator<Item = (usize, &str)> {
    let mut at = from;
    let all = text[from..].split_inclusive('\n').map(move |line| {
        let start = at;
        at += line.len();
        (start, line.trim_end_matches(['\n', '\r']))
    });
    all.filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
}

impl<'a> Table<'a> {
    /// Reads the names; `None` where the first line has a number among them, or none.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let bom = if text.starts_with('\u{feff}') { 3 } else { 0 };
        let (start, line) = lines(text, bom).next()?;
        let names = fields(line, start);
        let all_words = names
            .iter()
            .all(|n| n.text.starts_with(|c: char| c.is_ascii_alphabetic()));
        all_words.then_some(Self {
            names,
            text,
            body: start + line.len(),
        })
    }

    /// Whether a column has this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.names.iter().any(|n| n.text == name)
    }

    /// Columns in their order.
    pub(super) fn names(&self) -> &[Field<'a>] {
        &self.names
    }

    /// Place of the column called `name`.
    pub(super) fn column(&self, name: &str) -> Result<usize, Problem> {
        let found = self.names.iter().position(|n| n.text == name);
        found.ok_or_else(|| {
            let near = nearest(name, self.names.iter().map(|n| n.text));
            let near = near.map_or(String::new(), |n| format!(" (\"{n}\" is the nearest)"));
            let message = format!("no column \"{name}\": expected one in this line{near}");
            self.names[0].problem(&message)
        })
    }

    /// Samples: the fields of each line.
    pub(super) fn rows(&self) -> impl Iterator<Item = Result<Vec<Field<'a>>, Problem>> + '_ {
        lines(self.text, self.body).map(|(start, line)| {
            let row = fields(line, start);
            match row.len() == self.names.len() {
                true => Ok(row),
                false => {
                    let message = format!(
                        "fields in this line: {}: expected {}, as in the first",
                        row.len(),
                        self.names.len()
                    );
                    Err(Problem::at(start..start + line.len(), message))
                }
            }
        })
    }
}
