//! Tables for people: drawn to the width of a terminal, in plain columns elsewhere.

use std::io::{self, IsTerminal};

use braid_lab::report::table::Style;
use comfy_table::presets::{NOTHING, UTF8_HORIZONTAL_ONLY};
use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ContentArrangement, LineStyle, Table as Drawn,
};

/// Meaning of a cell, shown by its colour too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Weak,
    Bad,
}

/// A column: its title and its cells, of which every column has as many.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) title: String,
    pub(crate) right: bool,
    pub(crate) cells: Vec<(String, Tone)>,
}

impl Column {
    /// A column of words.
    pub(crate) fn left(title: impl Into<String>, cells: Vec<(String, Tone)>) -> Self {
        Self {
            title: title.into(),
            right: false,
            cells,
        }
    }

    /// A column of numbers.
    pub(crate) fn right(title: impl Into<String>, cells: Vec<String>) -> Self {
        let cells = cells.into_iter().map(|c| (c, Tone::Plain)).collect();
        Self {
            title: title.into(),
            right: true,
            cells,
        }
    }

    /// Columns with these titles: the first `words` of words, the others of numbers. A row
    /// has a cell for each.
    pub(crate) fn all(titles: &[String], words: usize, rows: &[Vec<String>]) -> Vec<Self> {
        let column = |(i, title): (usize, &String)| {
            let cells = rows.iter().map(|row| row[i].clone());
            match i < words {
                true => Self::left(title, cells.map(|c| (c, Tone::Plain)).collect()),
                false => Self::right(title, cells.collect()),
            }
        };
        titles.iter().enumerate().map(column).collect()
    }

    /// Characters of its widest cell, which may have several lines.
    pub(crate) fn width(&self) -> usize {
        let lines = self.cells.iter().flat_map(|(text, _)| text.lines());
        let cells = lines.map(|line| line.chars().count());
        cells.chain([self.title.chars().count()]).max().unwrap_or(0)
    }

    /// Whether no cell says anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.cells
            .iter()
            .all(|(text, _)| text.is_empty() || text == "-")
    }
}

/// How many characters a table of these columns is wide if nothing is wrapped.
pub(crate) fn width(columns: &[Column]) -> usize {
    // A space on each side of a cell, and one between cells.
    let cells: usize = columns.iter().map(|c| c.width() + 3).sum();
    cells.saturating_sub(1)
}

/// Where the table goes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Output {
    /// A terminal: lines under the title, cells wrapped to the width.
    Terminal(Style),
    /// A file or another program: a line for each row, nothing but text.
    Plain,
}

impl Output {
    /// For standard output.
    pub(crate) fn detect() -> Self {
        Self::of(&io::stdout())
    }

    /// For a stream of this process.
    pub(crate) fn of(stream: &impl IsTerminal) -> Self {
        match stream.is_terminal() {
            true => Self::Terminal(Style::of(true)),
            false => Self::Plain,
        }
    }

    /// Characters in a line; without end where no terminal cuts them.
    pub(crate) fn width(self) -> usize {
        match self {
            Self::Terminal(style) => style.width,
            Self::Plain => usize::MAX,
        }
    }
}

/// The table, with a line end after each line.
pub(crate) fn draw(columns: &[Column], output: Output) -> String {
    let mut t = Drawn::new();
    let colour = match output {
        Output::Terminal(style) => {
            t.load_style(UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none()));
            t.set_content_arrangement(ContentArrangement::Dynamic);
            t.set_width(u16::try_from(style.width).unwrap_or(u16::MAX));
            style.colour
        }
        Output::Plain => {
            t.load_style(NOTHING);
            t.set_content_arrangement(ContentArrangement::Disabled);
            false
        }
    };
    if colour {
        t.enforce_styling();
    } else {
        t.force_no_tty();
    }
    let align = |c: &Column| match c.right {
        true => CellAlignment::Right,
        false => CellAlignment::Left,
    };
    t.set_header(columns.iter().map(|c| {
        let cell = Cell::new(&c.title).set_alignment(align(c));
        cell.add_attribute(Attribute::Bold)
    }));
    for row in 0..columns.first().map_or(0, |c| c.cells.len()) {
        t.add_row(columns.iter().map(|c| {
            let (text, tone) = &c.cells[row];
            let cell = Cell::new(text).set_alignment(align(c));
            match tone {
                Tone::Plain => cell,
                Tone::Good => cell.fg(Color::Green),
                Tone::Weak => cell.fg(Color::Yellow),
                Tone::Bad => cell.fg(Color::Red).add_attribute(Attribute::Bold),
            }
        }));
    }
    let mut text = String::new();
    for line in t.to_string().lines() {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn columns(cells: &[String]) -> Vec<Column> {
        let words = cells.iter().map(|c| (c.clone(), Tone::Bad)).collect();
        vec![
            Column::left("name", words),
            Column::right("n", cells.iter().map(|c| c.len().to_string()).collect()),
        ]
    }

    #[test]
    fn outside_of_a_terminal_a_row_is_a_line_of_text() {
        let long = "a sentence that is much longer than any terminal ".repeat(9);
        let text = draw(&columns(&[long.clone(), "b".into()]), Output::Plain);
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(
            text.contains(long.trim_end()) && !text.contains('\u{1b}'),
            "{text}"
        );
    }

    proptest! {
        #[test]
        fn a_terminal_is_never_too_narrow(
            cells in prop::collection::vec("[a-z ]{0,60}", 1..4),
            width in 40usize..160,
        ) {
            let style = Style { width, colour: false };
            let text = draw(&columns(&cells), Output::Terminal(style));
            for line in text.lines() {
                prop_assert!(line.chars().count() <= width, "{line}");
            }
        }
    }
}
