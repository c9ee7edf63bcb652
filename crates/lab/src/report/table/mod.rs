//! The result of a run as a table for the terminal.
//!
//! Only columns that say something about the scenario's traffic appear; where
//! the terminal is too narrow for them, the less telling ones give way and are
//! named under the table.

mod columns;
mod layout;

use std::io::IsTerminal;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{Attribute, Cell, CellAlignment, Color, Table};

use super::cases::{Case, PAUSE_MS, Spread, accesses, cases, paper_only};
use super::numbers::{percent, plain, short};
use crate::summary::Summary;
use columns::{Align, Column, Tone};

/// How the table is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal.
    pub width: usize,
    /// Whether colour may be used.
    pub colour: bool,
}

/// Width where nothing says how wide the output is.
const DEFAULT_WIDTH: usize = 100;
/// Below this nothing is readable; lines then wrap at the terminal's edge.
const MIN_WIDTH: usize = 40;

impl Style {
    /// For standard output: its width and, unless `NO_COLOR` is set, colour on
    /// a terminal; `COLUMNS` or 100 columns without colour elsewhere.
    pub fn detect() -> Self {
        let tty = std::io::stdout().is_terminal();
        let asked = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
        let seen = if tty {
            Table::new().width().map(usize::from)
        } else {
            None
        };
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        Self {
            width: seen.or(asked).unwrap_or(DEFAULT_WIDTH).max(MIN_WIDTH),
            colour: tty && !no_colour && std::env::var_os("TERM").is_none_or(|t| t != "dumb"),
        }
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
    if let Some(t) = columns::recoveries(&cases, &order) {
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
    out.extend(paper_lines(summary, style.width));
    out.push(String::new());
    out.join("\n")
}

/// What stands under the table, and the marks in the rows that point there.
#[derive(Default)]
struct Notes {
    lines: Vec<(String, String)>,
    numbered: usize,
}

impl Notes {
    /// The name of a case with the marks of its notes.
    fn name(&mut self, case: &Case<'_>) -> String {
        let mut marks = String::new();
        if case.paused() {
            marks.push('†');
            let h = case.host();
            let text = format!(
                "{}: the host paused {} time{} for more than {PAUSE_MS} ms, {} ms at most; \
                 the numbers of this case include that.",
                plain(case.name),
                h.late_wakes,
                if h.late_wakes == 1 { "" } else { "s" },
                short(h.max_late_ms),
            );
            self.lines.push(("†".to_owned(), text));
        }
        let failures = failures(case);
        for text in failures
            .into_iter()
            .chain(case.notes().into_iter().map(plain))
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
        text.push_str(&format!(
            " · medians of {repeats} repeats, least–most below"
        ));
    }
    wrap(&text, "", width)
}

/// What the paper prints and no case reproduces, and where it all is printed.
fn paper_lines(s: &Summary, width: usize) -> Vec<String> {
    let mut out = Vec::new();
    let only: Vec<String> = paper_only(s)
        .into_iter()
        .map(|(name, figures)| {
            let values: Vec<String> = figures
                .iter()
                .map(|p| columns::paper_value(&p.field, p.value))
                .collect();
            format!("{} {}", plain(name), values.join(", "))
        })
        .collect();
    if !only.is_empty() {
        let text = format!("Only in the paper: {}", only.join("; "));
        out.push(wrap(&text, "  ", width));
    }
    let mut sources: Vec<String> = s.paper.iter().map(|p| plain(&p.source)).collect();
    sources.sort();
    sources.dedup();
    if !sources.is_empty() {
        out.push(wrap(&format!("Paper: {}", sources.join("; ")), "  ", width));
    }
    out
}

fn wrap(text: &str, indent: &str, width: usize) -> String {
    let options = textwrap::Options::new(width).subsequent_indent(indent);
    textwrap::fill(text, options)
}

fn draw(columns: &[Column], style: Style) -> String {
    let mut t = Table::new();
    t.load_style(UTF8_HORIZONTAL_ONLY.row_separator(comfy_table::LineStyle::none()));
    if style.colour {
        t.enforce_styling();
    } else {
        t.force_no_tty();
    }
    let align = |c: &Column| match c.align {
        Align::Left => CellAlignment::Left,
        Align::Right => CellAlignment::Right,
    };
    let header = columns.iter().map(|c| {
        Cell::new(&c.title)
            .set_alignment(align(c))
            .add_attribute(Attribute::Bold)
    });
    t.set_header(header.collect::<Vec<Cell>>());
    for row in 0..columns.first().map_or(0, |c| c.cells.len()) {
        let cells = columns.iter().map(|c| {
            let text = &c.cells[row];
            let cell = Cell::new(&text.text).set_alignment(align(c));
            match text.tone {
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

/// `median`, the paper's number beside it, and the range on a second line.
fn spread_text(s: Option<Spread>, paper: Option<f64>) -> String {
    let mut text = s.map_or_else(|| "-".to_owned(), |s| short(s.median));
    if let Some(p) = paper {
        text.push_str(&format!(" (paper {})", short(p)));
    }
    if let Some(s) = s.filter(|s| s.n > 1) {
        text.push_str(&format!("\n{}–{}", short(s.min), short(s.max)));
    }
    text
}

/// `nr 22 % · wifi 77 %`, item by item.
fn share_items<'a>(
    of: impl Fn(&str) -> Option<f64>,
    order: impl IntoIterator<Item = &'a String>,
) -> Vec<String> {
    order
        .into_iter()
        .filter_map(|a| Some(format!("{} {}", plain(a), percent(of(a)?, true))))
        .collect()
}
