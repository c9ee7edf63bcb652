//! Fitting columns into the width of the terminal.

use textwrap::core::display_width;

use crate::report::columns::{Column, Text};

/// Blanks between columns.
pub(super) const GAP: usize = 2;

/// A column as it will be printed.
pub(super) struct Printed {
    pub(super) column: Column,
    /// Its cells, ready to print.
    pub(super) cells: Vec<String>,
}

/// Columns that fit, and the labels of those that had to go.
pub(super) struct Fitted {
    pub(super) columns: Vec<Printed>,
    pub(super) dropped: Vec<&'static str>,
}

/// Names shorter than this are not worth breaking.
const MIN_NAME: usize = 14;

/// Makes `columns` at most `width` wide: first the least telling give way, then
/// shares break into lines, then more columns go, then names break.
pub(super) fn fit(columns: Vec<Column>, width: usize) -> Fitted {
    let printed = columns.into_iter().map(|column| Printed {
        cells: column.cells.iter().map(Text::text).collect(),
        column,
    });
    let mut f = Fitted {
        columns: printed.collect(),
        dropped: Vec::new(),
    };
    drop_down_to(&mut f, width, 7);
    break_items(&mut f, width, 1, 0);
    drop_down_to(&mut f, width, 5);
    break_items(&mut f, width, 0, MIN_NAME);
    drop_down_to(&mut f, width, 1);
    f
}

fn total(columns: &[Printed]) -> usize {
    columns
        .iter()
        .map(|c| content_width(c) + GAP)
        .sum::<usize>()
        .saturating_sub(GAP)
}

fn content_width(c: &Printed) -> usize {
    c.cells
        .iter()
        .map(|t| text_width(t))
        .fold(text_width(&c.column.title), usize::max)
}

fn text_width(text: &str) -> usize {
    text.lines().map(display_width).max().unwrap_or(0)
}

/// Drops columns of at least `rank`, the highest first, the last of equals first.
fn drop_down_to(f: &mut Fitted, width: usize, rank: u8) {
    while total(&f.columns) > width {
        let candidate = f
            .columns
            .iter()
            .enumerate()
            .filter(|(_, c)| c.column.rank >= rank);
        let Some((i, _)) = candidate.max_by_key(|(i, c)| (c.column.rank, *i)) else {
            return;
        };
        f.dropped.insert(0, f.columns.remove(i).column.label);
    }
}

/// Breaks the breakable cells of columns of at least `rank` (or, for 0, of the
/// names) as little as makes the table fit, but not below `least`.
fn break_items(f: &mut Fitted, width: usize, rank: u8, least: usize) {
    for i in 0..f.columns.len() {
        let c = &f.columns[i];
        let breakable = c.column.cells.iter().any(|t| t.items.len() > 1);
        let over = total(&f.columns).saturating_sub(width);
        if !breakable || over == 0 || (rank == 0) != (c.column.rank == 0) {
            continue;
        }
        let now = content_width(c);
        let room = now
            .saturating_sub(over)
            .max(least)
            .max(text_width(&c.column.title))
            .max(longest_item(c));
        let c = &mut f.columns[i];
        for (t, cell) in c.column.cells.iter().zip(&mut c.cells) {
            *cell = broken(t, room);
        }
        // Where even that does not make it fit, the columns that go next make
        // room; the breaks stay, since they cost only lines.
    }
}

fn longest_item(c: &Printed) -> usize {
    let lists = c.column.cells.iter().flat_map(lists).flatten();
    lists.map(|i| display_width(&i)).max().unwrap_or(0)
}

/// The lists of a cell: ours and, in brackets, the paper's.
fn lists(t: &Text) -> Vec<Vec<String>> {
    let mut paper = t.paper_items.clone();
    if let Some(first) = paper.first_mut() {
        first.insert_str(0, "(paper ");
    }
    if let Some(last) = paper.last_mut() {
        last.push(')');
    }
    [t.items.clone(), paper]
        .into_iter()
        .filter(|l| !l.is_empty())
        .collect()
}

/// The cell with its lists broken into lines of at most `room`.
fn broken(t: &Text, room: usize) -> String {
    if t.items.is_empty() {
        return t.text();
    }
    let mut lines: Vec<String> = Vec::new();
    for list in lists(t) {
        let mut line = String::new();
        for item in list {
            if line.is_empty() {
                line = item;
            } else if display_width(&line) + 1 + display_width(&item) <= room {
                line.push(' ');
                line.push_str(&item);
            } else {
                lines.push(std::mem::replace(&mut line, item));
            }
        }
        lines.push(line);
    }
    lines.join("\n")
}
