//! Problems with a configuration, and where they stand.

/// Problem with a configuration, and the key that it is at.
pub(in super::super) struct Problem {
    path: Vec<String>,
    pub(super) what: String,
}

pub(in super::super) fn problem(path: &[&str], what: impl Into<String>) -> Problem {
    Problem {
        path: path.iter().map(|s| (*s).to_owned()).collect(),
        what: what.into(),
    }
}

impl Problem {
    /// Where the key stands in TOML, or the nearest above it that does; bytes.
    pub(super) fn offset(&self, text: &str) -> usize {
        find(text, &self.path).unwrap_or(0)
    }
}

fn find(text: &str, path: &[String]) -> Option<usize> {
    let document = toml::de::DeTable::parse(text).ok()?;
    let mut table = document.get_ref();
    let mut at = None;
    for key in path {
        let Some((k, value)) = table.iter().find(|(k, _)| k.get_ref() == key) else {
            break;
        };
        at = Some(k.span().start);
        match value.get_ref() {
            toml::de::DeValue::Table(t) => table = t,
            _ => break,
        }
    }
    at
}

/// Line and column (from 1, in characters) of a byte offset.
pub(super) fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}
