//! The result of a run as a table for the terminal.
//!
//! Only columns that say something about the scenario's traffic appear; where
//! the terminal is too narrow for them, the less telling ones give way and are
//! named under the table.

mod layout;

use std::io::IsTerminal;

use comfy_table::presets::{NOTHING, UTF8_HORIZONTAL_ONLY};
use comfy_table::{Attribute, Cell, CellAlignment, Color, Table};

use layout::Printed;

use super::cases::{accesses, cases};
use super::columns::{self, Align, Tone};
use super::notes::{Notes, paper_lines};
use super::numbers::plain;
use super::outages;
use crate::summary::Summary;

/// How the table is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; [`usize::MAX`] for a file or another program, where each row
    /// is a line of text, and no column gives way.
    pub width: usize,
    /// Whether colour may be used.
    pub colour: bool,
}

/// Width of a terminal that does not say how wide it is.
const DEFAULT_WIDTH: usize = 100;
/// Below this nothing is readable; lines then wrap at the terminal's edge.
const MIN_WIDTH: usize = 40;

impl Style {
    /// For standard output: the width of a terminal and, unless `NO_COLOR` is set, colour;
    /// lines of text elsewhere.
    pub fn detect() -> Self {
        Self::of(std::io::stdout().is_terminal())
    }

    /// For a terminal, as it is, or for lines of text.
    pub fn of(terminal: bool) -> Self {
        if !terminal {
            return Self {
                width: usize::MAX,
                colour: false,
            };
        }
        let asked = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
        let seen = Table::new().width().map(usize::from);
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        Self {
            width: seen.or(asked).unwrap_or(DEFAULT_WIDTH).max(MIN_WIDTH),
            colour: !no_colour && std::env::var_os("TERM").is_none_or(|t| t != "dumb"),
        }
    }

    /// Whether each row is a line of text.
    fn is_plain(self) -> bool {
        self.width == usize::MAX
    }
}

/// The whole result: a heading, the table, what stands under it. Ends with a
/// line end.
pub fn render(summary: &Summary, style: Style) -> String {
    let cases = cases(summary);
    let order = accesses(summary);
    let mut notes = Notes::default();
    let names = cases.iter().map(|c| notes.name(c)).collect();
    let wanted = columns::of(&cases, names, &order);
    let fitted = layout::fit(wanted, style.width);
    let mut out = vec![heading(summary, style.width)];
    out.push(draw(&fitted.columns, style));
    if !fitted.dropped.is_empty() {
        let text = format!(
            "Not shown for want of room: {}. All of it is in the report.",
            fitted.dropped.join(", ")
        );
        out.push(wrap(&text, "", style.width));
    }
    if let Some(t) = outages::recoveries(&cases, &order) {
        out.push(String::new());
        out.push("After each outage of an access:".to_owned());
        out.push(draw(&layout::fit(t, style.width).columns, style));
    }
    out.extend(notes.lines.iter().map(|(mark, text)| {
        wrap(
            &format!("{mark} {text}"),
            &" ".repeat(mark.chars().count() + 1),
            style.width,
        )
    }));
    out.extend(
        paper_lines(summary)
            .iter()
            .map(|t| wrap(t, "  ", style.width)),
    );
    out.push(String::new());
    out.join("\n")
}

fn heading(s: &Summary, width: usize) -> String {
    let repeats = s.cases.iter().map(|c| c.repeat).max().unwrap_or(1);
    let mut text = format!(
        "{} · {} clock · seed {} · kernel {} · braid {}",
        plain(&s.scenario),
        plain(&s.clock),
        s.seed,
        plain(&s.kernel),
        plain(&s.version)
    );
    if repeats > 1 {
        let more = format!(" · medians of {repeats} repeats, least–most below");
        text.push_str(&more);
    }
    wrap(&text, "", width)
}

fn wrap(text: &str, indent: &str, width: usize) -> String {
    let options = textwrap::Options::new(width).subsequent_indent(indent);
    textwrap::fill(text, options)
}

fn draw(columns: &[Printed], style: Style) -> String {
    let mut t = Table::new();
    t.load_style(match style.is_plain() {
        true => NOTHING,
        false => UTF8_HORIZONTAL_ONLY.row_separator(comfy_table::LineStyle::none()),
    });
    // A word that is broken for the terminal is whole in a line.
    let text = |t: &str| match style.is_plain() {
        true => t.replace("-\n", "").replace('\n', " "),
        false => t.to_owned(),
    };
    if style.colour {
        t.enforce_styling();
    } else {
        t.force_no_tty();
    }
    let align = |c: &Printed| match c.column.align {
        Align::Left => CellAlignment::Left,
        Align::Right => CellAlignment::Right,
    };
    let header = columns.iter().map(|c| {
        Cell::new(text(&c.column.title))
            .set_alignment(align(c))
            .add_attribute(Attribute::Bold)
    });
    t.set_header(header.collect::<Vec<Cell>>());
    for row in 0..columns.first().map_or(0, |c| c.cells.len()) {
        let cells = columns.iter().map(|c| {
            let cell = Cell::new(text(&c.cells[row])).set_alignment(align(c));
            match c.column.cells[row].tone {
                Tone::Plain => cell,
                Tone::Good => cell.fg(Color::Green),
                Tone::Bad => cell.fg(Color::Red).add_attribute(Attribute::Bold),
            }
        });
        t.add_row(cells.collect::<Vec<Cell>>());
    }
    for (i, c) in t.column_iter_mut().enumerate() {
        // One blank of the gap is where comfy-table draws a vertical line.
        c.set_padding((if i == 0 { 0 } else { layout::GAP as u16 - 1 }, 0));
    }
    t.trim_fmt()
}
