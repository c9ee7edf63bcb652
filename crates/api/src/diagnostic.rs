//! Errors that point at the place in a file: line, column, what is wrong, what was expected, and
//! the word that was meant.
//!
//! Scenarios, campaigns, configurations of daemons and drives all use it. A reader finds a
//! [`Problem`] at a span or a key of the text; [`Problem::in_file`] makes a [`Diagnostic`] of it,
//! which prints as `FILE:LINE:COLUMN: MESSAGE`.

mod keys;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use thiserror::Error;

/// Error in a file, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct Diagnostic {
    /// The file, as the user named it.
    pub file: PathBuf,
    /// Line from 1 and column from 1 (in characters); `None` when the whole
    /// file is meant.
    pub at: Option<(usize, usize)>,
    /// Description of what is wrong and what was expected.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())?;
        if let Some((line, column)) = self.at {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}

/// Problem at a place of the text, before file and line are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    place: Place,
    /// Description of what is wrong and what was expected.
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    File,
    Bytes(usize),
    /// From the top of the document.
    Key(Vec<String>),
    LineColumn(usize, usize),
}

impl Problem {
    /// Problem with the bytes `span` of the text.
    pub fn at(span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            place: Place::Bytes(span.start),
            message: message.into(),
        }
    }

    /// Problem with a key of a TOML document: the names of its tables, then its own. Elements of
    /// arrays go by their number, from 0. Where there is no such key, the nearest above it counts.
    pub fn at_key(path: &[&str], message: impl Into<String>) -> Self {
        Self {
            place: Place::Key(path.iter().map(|s| (*s).to_owned()).collect()),
            message: message.into(),
        }
    }

    /// Problem with the file as a whole.
    pub fn whole(message: impl Into<String>) -> Self {
        Self {
            place: Place::File,
            message: message.into(),
        }
    }

    /// Places a problem that has no place yet at the bytes `span` of the text.
    pub fn or_at(mut self, span: Range<usize>) -> Self {
        if self.place == Place::File {
            self.place = Place::Bytes(span.start);
        }
        self
    }

    /// Adds the file, whose text tells line and column.
    pub fn in_file(self, file: PathBuf, text: &str) -> Diagnostic {
        let at = match &self.place {
            Place::File => None,
            Place::Bytes(start) => Some(line_column(text, *start)),
            Place::Key(path) => {
                let start = keys::find(text, path).unwrap_or(0);
                Some(line_column(text, start))
            }
            Place::LineColumn(line, column) => Some((*line, *column)),
        };
        Diagnostic {
            file,
            at,
            message: self.message,
        }
    }

    /// Replaces the message with the words that go with its beginning, if there are any:
    /// pairs of a beginning and what to say instead.
    pub fn reworded(mut self, words: &[(&str, &str)]) -> Self {
        let known = words
            .iter()
            .find(|(begins, _)| self.message.starts_with(begins));
        if let Some((_, better)) = known {
            self.message = (*better).to_owned();
        }
        self
    }
}

impl From<toml::de::Error> for Problem {
    fn from(e: toml::de::Error) -> Self {
        Self {
            place: e.span().map_or(Place::File, |s| Place::Bytes(s.start)),
            message: explain(e.message()),
        }
    }
}

impl From<serde_json::Error> for Problem {
    fn from(e: serde_json::Error) -> Self {
        let all = e.to_string();
        // The place, which we say in front.
        let message = all.rsplit_once(" at line ").map_or(&*all, |(what, _)| what);
        Self {
            place: Place::LineColumn(e.line(), e.column()),
            message: explain(message),
        }
    }
}

fn line_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |i| i + 1);
    (line, before[start..].chars().count() + 1)
}

/// Names the nearest known word when serde complains of an unknown one.
fn explain(message: &str) -> String {
    let message = message.trim();
    if !message.starts_with("unknown field") && !message.starts_with("unknown variant") {
        return message.to_owned();
    }
    let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let Some((given, known)) = words.split_first() else {
        return message.to_owned();
    };
    let mut text = message
        .replacen("unknown field", "unknown key", 1)
        .replacen("unknown variant", "unknown value", 1);
    if let Some(near) = nearest(given, known.iter().copied()) {
        text.push_str(&format!("; did you mean `{near}`?"));
    }
    text
}

/// Returns the known word most like `given`, if one is close enough to be meant.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|k| (strsim::jaro_winkler(given, k), k))
        .filter(|(score, _)| *score > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, k)| k)
}
