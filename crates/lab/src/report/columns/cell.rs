//! A column of a table of results, and the text of its cells.

use crate::report::cases::Spread;
use crate::report::numbers::short;

/// How a cell is coloured, where colour is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Bad,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Content of one cell of a column.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    /// Our value; may have several lines.
    pub(crate) main: String,
    /// The paper's value for it.
    pub(crate) paper: Option<String>,
    /// Least and most of the repeats.
    pub(crate) range: Option<String>,
    /// Where `main` is a list: its items, which may stand on lines of their own.
    pub(crate) items: Vec<String>,
    /// Items of the paper's value, where it is a list; they may stand on lines of their own.
    pub(crate) paper_items: Vec<String>,
    /// Where it is a share: access and fraction.
    pub(crate) share: Vec<(String, f64)>,
    pub(crate) tone: Tone,
}

impl Text {
    pub(crate) fn new(main: impl Into<String>) -> Self {
        Self {
            main: main.into(),
            paper: None,
            range: None,
            items: Vec::new(),
            paper_items: Vec::new(),
            share: Vec::new(),
            tone: Tone::Plain,
        }
    }

    pub(super) fn none() -> Self {
        Self::new("")
    }

    pub(crate) fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    /// Median, the paper's number, the range over repeats.
    pub(crate) fn spread(s: Option<Spread>, paper: Option<f64>) -> Self {
        Self {
            paper: paper.map(short),
            range: s.and_then(range),
            ..Self::new(s.map_or_else(|| "-".to_owned(), |s| short(s.median)))
        }
    }

    pub(super) fn list(items: Vec<String>) -> Self {
        Self {
            main: items.join(" "),
            items,
            ..Self::none()
        }
    }

    /// As it stands on the terminal: the paper's number beside ours where both
    /// are short, else on a line of its own.
    pub(crate) fn text(&self) -> String {
        let mut t = self.main.clone();
        if let Some(p) = &self.paper {
            let break_or_blank = if self.main.len() + p.len() > 12 {
                '\n'
            } else {
                ' '
            };
            t.push_str(&format!("{break_or_blank}(paper {p})"));
        }
        if let Some(r) = &self.range {
            t.push_str(&format!("\n{r}"));
        }
        t
    }
}

pub(super) fn range(s: Spread) -> Option<String> {
    (s.n > 1).then(|| format!("{}–{}", short(s.min), short(s.max)))
}

/// A column with a cell for every row.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) title: String,
    /// Name of the column where it is not shown.
    pub(crate) label: &'static str,
    /// The higher, the sooner it gives way; 0 never does.
    pub(crate) rank: u8,
    pub(crate) align: Align,
    pub(crate) cells: Vec<Text>,
}
