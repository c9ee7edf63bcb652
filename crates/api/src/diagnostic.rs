//! Errors that point at the place in the file.

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

/// Problem at a byte range of the text, before file and line are known.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Place in the text, bytes; `None` when the whole file is meant.
    pub span: Option<Range<usize>>,
    /// Description of what is wrong and what was expected.
    pub message: String,
}

impl Problem {
    /// Problem with the bytes `span` of the text.
    pub fn at(span: Range<usize>, message: impl Into<String>) -> Self {
        Self {
            span: Some(span),
            message: message.into(),
        }
    }

    /// Problem with the file as a whole.
    pub fn whole(message: impl Into<String>) -> Self {
        Self {
            span: None,
            message: message.into(),
        }
    }

    /// Adds the file, whose text tells line and column.
    pub fn in_file(self, file: PathBuf, text: &str) -> Diagnostic {
        Diagnostic {
            file,
            at: self.span.map(|s| line_column(text, s.start)),
            message: self.message,
        }
    }
}

impl From<toml::de::Error> for Problem {
    fn from(e: toml::de::Error) -> Self {
        Self {
            span: e.span(),
            message: explain(e.message()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_lines_and_columns() {
        assert_eq!(line_column("a = 1\nb = é2", 6), (2, 1));
        assert_eq!(line_column("a = 1\nb = é2", 12), (2, 6));
        assert_eq!(line_column("", 99), (1, 1));
    }

    #[test]
    fn names_the_nearest_key() {
        let e = explain("unknown field `dealy`, expected one of `rate`, `delay`, `loss`");
        assert!(e.ends_with("did you mean `delay`?"), "{e}");
        let e = explain("unknown field `zzz`, expected `rate` or `delay`");
        assert!(!e.contains("did you mean"), "{e}");
    }
}
