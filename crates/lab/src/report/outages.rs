//! The table of outages: a row for each case and access that had any.

use super::cases::{Case, Spread};
use super::columns::{Align, Column, Text, Tone};
use super::numbers::plain;

const COLUMNS: [(&str, Align); 7] = [
    ("case", Align::Left),
    ("access", Align::Left),
    ("outages", Align::Right),
    ("taken out\nafter ms", Align::Right),
    ("used again\nafter ms", Align::Right),
    ("not used\nagain", Align::Right),
    ("gap seen\nms", Align::Right),
];
/// Only where something takes accesses out.
const OUT: usize = 3;

/// The columns of the table; `None` where there was no outage.
pub(crate) fn recoveries(cases: &[Case<'_>], order: &[String]) -> Option<Vec<Column>> {
    let mut rows: Vec<[Text; COLUMNS.len()]> = Vec::new();
    let known = cases
        .iter()
        .flat_map(Case::recoveries)
        .any(|r| r.out_ms.is_some());
    for c in cases {
        for a in order {
            let all: Vec<_> = c.recoveries().filter(|r| r.access == *a).collect();
            if all.is_empty() {
                continue;
            }
            let out = Spread::of(all.iter().filter_map(|r| r.out_ms));
            let back = Spread::of(all.iter().filter_map(|r| r.reuse_ms));
            let gap = Spread::of(all.iter().filter_map(|r| r.gap_ms));
            let never = all.iter().filter(|r| r.reuse_ms.is_none()).count();
            rows.push([
                Text::new(plain(c.name)),
                Text::new(plain(a)),
                Text::new(all.len().to_string()),
                Text::spread(out, None),
                Text::spread(back, c.paper(&format!("recoveries.{a}.reuse_ms"))),
                Text::new(never.to_string()).tone(if never > 0 { Tone::Bad } else { Tone::Plain }),
                Text::spread(gap, None),
            ]);
        }
    }
    if rows.is_empty() {
        return None;
    }
    let columns = COLUMNS
        .into_iter()
        .enumerate()
        .filter(|(i, _)| known || *i != OUT)
        .map(|(i, (title, align))| Column {
            title: title.to_owned(),
            label: "",
            rank: 0,
            align,
            cells: rows.iter().map(|r| r[i].clone()).collect(),
        });
    Some(columns.collect())
}
