//! Columns of a result, and the texts of their cells: on the terminal and in the report
//! alike. A new column is one entry of [`COLUMNS`].

mod cell;

use std::collections::BTreeMap;

use super::cases::Case;
use super::files::human_bytes;
use super::numbers::{of_wire, percent, plain, short};
use crate::summary::{CaseResult, EnergyUse, EngineCpu, Packets, Pages, Voice};
use braid_core::stats::Percentiles;
use cell::range;
pub(crate) use cell::{Align, Column, Text, Tone};

const REQUESTS: &str = "request-response";

/// Whether goodput is what the case is about; requests of a byte have none.
fn has_goodput(r: &CaseResult) -> bool {
    r.traffic != REQUESTS
}

/// Datagrams of the measured traffic, or else of that beside it.
fn packets(r: &CaseResult) -> Option<Packets> {
    r.packets.or_else(|| r.beside.as_ref()?.packets)
}

/// The call that is measured, or else the one beside.
fn voice(r: &CaseResult) -> Option<Voice> {
    r.voice.or_else(|| r.beside.as_ref()?.voice)
}

/// Pages of the measured traffic, or else of that beside it.
fn pages(r: &CaseResult) -> Option<Pages> {
    r.web.or_else(|| r.beside.as_ref()?.web)
}

fn of_due(packets: Packets, part: fn(&Packets) -> u64) -> f64 {
    part(&packets) as f64 / packets.due.max(1) as f64
}

/// A column as the table has it.
struct ColumnSpec {
    /// Heading, in lines as on the terminal.
    title: &'static str,
    /// Name of the column where it is not shown.
    label: &'static str,
    /// The higher, the sooner it gives way; 0 never does.
    rank: u8,
    /// Whether it never gives way to others for these cases, whatever its rank.
    stays: fn(&[Case<'_>]) -> bool,
    align: Align,
    /// Cell of a case that did not fail, of the case and the names of the accesses in their
    /// order. A column without any cell does not appear.
    cell: Cell,
}

type Cell = fn(&Case<'_>, &[String]) -> Option<Text>;

const fn left(title: &'static str, label: &'static str, rank: u8, cell: Cell) -> ColumnSpec {
    ColumnSpec {
        title,
        label,
        rank,
        stays: |_| false,
        align: Align::Left,
        cell,
    }
}

const fn right(title: &'static str, label: &'static str, rank: u8, cell: Cell) -> ColumnSpec {
    ColumnSpec {
        align: Align::Right,
        ..left(title, label, rank, cell)
    }
}

impl ColumnSpec {
    const fn stays_if(self, stays: fn(&[Case<'_>]) -> bool) -> Self {
        Self { stays, ..self }
    }

    /// The column of these cases; `None` where no case has a cell in it.
    fn of(&self, cases: &[Case<'_>], order: &[String]) -> Option<Column> {
        let cells: Vec<Option<Text>> = cases
            .iter()
            .map(|c| {
                if c.failed() {
                    None
                } else {
                    (self.cell)(c, order)
                }
            })
            .collect();
        cells.iter().any(Option::is_some).then(|| Column {
            title: self.title.to_owned(),
            label: self.label,
            rank: if (self.stays)(cases) { 0 } else { self.rank },
            align: self.align,
            cells: cells
                .into_iter()
                .map(|c| c.unwrap_or_else(Text::none))
                .collect(),
        })
    }
}

/// The columns after the case's name, from left to right: heading, label, rank, cell.
const COLUMNS: &[ColumnSpec] = &[
    right("goodput\nMbit/s", "goodput", 0, |c, _| {
        let s = c.spread(|r| has_goodput(r).then_some(r.goodput_mbps))?;
        Some(Text::spread(Some(s), c.paper("goodput_mbps")))
    }),
    right("ceiling\nMbit/s", "ceiling", 7, |c, _| {
        Some(Text::new(short(c.median(|r| r.ceiling_mbps)?)))
    }),
    right("of the\nwire", "efficiency", 1, |c, _| {
        let e = c.median(|r| r.efficiency)?;
        let tone = if e >= 0.95 { Tone::Good } else { Tone::Plain };
        Some(Text::new(of_wire(e)).tone(tone))
    }),
    right("links'\ncapacity", "capacity of the links", 4, |c, _| {
        Some(Text::new(short(c.median(|r| r.capacity_mbps)?)))
    }),
    right("ideal\nsingle", "ideal single path", 3, |c, _| {
        Some(Text::new(short(c.median(|r| r.ideal_mbps)?)))
    }),
    right(
        "of ideal\nsingle",
        "goodput over ideal single path",
        3,
        |c, _| {
            let of = c.median(|r| Some(r.goodput_mbps / r.ideal_mbps.filter(|i| *i > 0.0)?))?;
            Some(Text::new(percent(of, false)))
        },
    ),
    right("best\nsingle", "best single path", 2, |c, _| {
        let b = c.median(|r| r.best_single_mbps)?;
        // 1 % is what noise may take.
        let below = c
            .median(|r| Some(r.goodput_mbps))
            .is_some_and(|g| g < 0.99 * b);
        let tone = if below { Tone::Bad } else { Tone::Plain };
        Some(Text::new(short(b)).tone(tone))
    }),
    right("latency ms\nmean / p90", "latency", 1, |c, _| {
        let (mean, p90) = (c.latency(|l| l.mean)?, c.latency(|l| l.p90)?);
        let paper = (c.paper("latency_ms.mean"), c.paper("latency_ms.p90"));
        let of = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), short);
        let any = paper.0.is_some() || paper.1.is_some();
        Some(Text {
            paper: any.then(|| format!("{} / {}", of(paper.0), of(paper.1))),
            range: c
                .spread(|r| Some(r.latency_ms.as_ref()?.mean))
                .and_then(range),
            ..Text::new(format!("{} / {}", short(mean), short(p90)))
        })
    }),
    right("p99 / max\nms", "latency p99 and max", 6, |c, _| {
        Some(Text::new(format!(
            "{} / {}",
            short(c.latency(|l| l.p99)?),
            short(c.latency(|l| l.max)?)
        )))
    }),
    right("lost", "datagrams lost", 1, |c, _| {
        let of = c.median(|r| Some(of_due(packets(r)?, |p| p.lost)))?;
        Some(Text::new(percent(of, false)))
    }),
    right("out of\norder", "datagrams out of order", 2, |c, _| {
        let of = c.median(|r| Some(of_due(packets(r)?, |p| p.reordered)))?;
        Some(Text::new(percent(of, false)))
    }),
    right("MOS\nworst 8 s", "MOS of the call", 1, |c, _| {
        let (whole, worst) = (
            c.median(|r| Some(voice(r)?.mos))?,
            c.median(|r| Some(voice(r)?.worst_mos))?,
        );
        // Nearly all users are satisfied from here on (G.107 Annex B, R = 80).
        let tone = if worst >= 4.03 {
            Tone::Good
        } else {
            Tone::Plain
        };
        Some(Text::new(format!("{whole:.2} / {worst:.2}")).tone(tone))
    }),
    right("page ms\np50 / p90", "time of a page", 1, |c, _| {
        let of = |part: fn(&Percentiles) -> f64| c.median(|r| Some(part(&pages(r)?.page_ms)));
        let (p50, p90) = (of(|p| p.p50)?, of(|p| p.p90)?);
        Some(Text::new(format!("{} / {}", short(p50), short(p90))))
    }),
    right(
        "first byte\nms",
        "time to a page's first byte",
        2,
        |c, _| {
            let p50 = c.median(|r| Some(pages(r)?.first_byte_ms.p50))?;
            Some(Text::new(short(p50)))
        },
    ),
    right(
        "beside\nMbit/s",
        "goodput of the traffic beside",
        3,
        |c, _| {
            let s = c.spread(|r| {
                let beside = r
                    .beside
                    .as_ref()
                    .filter(|b| b.voice.is_none() && b.web.is_none())?;
                Some(beside.goodput_mbps)
            })?;
            Some(Text::spread(Some(s), None))
        },
    ),
    right(
        "beside ms\nmean / p99",
        "latency of the traffic beside",
        3,
        |c, _| {
            let of = |part: fn(&Percentiles) -> f64| {
                c.median(|r| r.beside.as_ref()?.latency_ms.as_ref().map(part))
            };
            let (mean, p99) = (of(|l| l.mean)?, of(|l| l.p99)?);
            Some(Text::new(format!("{} / {}", short(mean), short(p99))))
        },
    ),
    right("done\ns", "time to the last byte", 2, |c, _| {
        let s = c.spread(|r| r.completion_s)?;
        Some(Text::spread(Some(s), c.paper("completion_s")))
    }),
    right("stalls", "stalls", 1, |c, _| {
        let n = c.median(|r| r.stalls.map(f64::from))?;
        let tone = if n > 0.0 { Tone::Bad } else { Tone::Good };
        let text = match c.median(|r| r.stalled_s) {
            Some(s) if n > 0.0 => format!("{n} ({} s)", short(s)),
            _ => n.to_string(),
        };
        Some(Text::new(text).tone(tone))
    }),
    left("share of bytes", "share of bytes", 3, |c, order| {
        has_goodput(c.first())
            .then(|| share(c, order, false))
            .flatten()
    }),
    left("share of packets", "share of packets", 3, |c, order| {
        (!has_goodput(c.first()))
            .then(|| share(c, order, true))
            .flatten()
    }),
    right(
        "share\nof all",
        "share of all devices' goodput",
        2,
        |c, _| {
            let s = c.spread(|r| r.share_of_all)?;
            Some(Text {
                range: (s.n > 1)
                    .then(|| format!("{}–{}", percent(s.min, true), percent(s.max, true))),
                ..Text::new(percent(s.median, true))
            })
        },
    ),
    right(
        "others\nMbit/s",
        "goodput of the other devices",
        4,
        |c, _| {
            let first = &c.first().others_mbps;
            let total = c.median(|r| Some(r.others_mbps.values().sum()))?;
            let lines: Vec<String> = match first.len() {
                0 => return None,
                1..=4 => first
                    .keys()
                    .filter_map(|n| {
                        let mbps = c.median(|r| r.others_mbps.get(n).copied())?;
                        Some(format!("{} {}", plain(n), short(mbps)))
                    })
                    .collect(),
                n => vec![format!("{} of {n}", short(total))],
            };
            Some(Text::new(lines.join("\n")))
        },
    ),
    right("energy\nJ", "energy of the radios", 1, |c, _| {
        let s = c.spread(|r| joules(&r.energy, |e| e.spent.total_joules()))?;
        Some(Text::spread(Some(s), c.paper("energy_joules")))
    }),
    right(
        "energy\nJ/MB",
        "energy of the radios by payload",
        2,
        |c, _| {
            let s = c.spread(|r| {
                let mb = r.goodput_mbps * r.seconds / 8.0;
                let all = joules(&r.energy, |e| e.spent.total_joules())?;
                (mb > 0.0).then_some(all / mb)
            })?;
            Some(Text::spread(Some(s), None))
        },
    ),
    left("energy of each", "energy of each radio", 4, |c, order| {
        let of = |a: &String| {
            let median = c.median(|r| r.energy.get(a).map(|e| e.spent.total_joules()))?;
            Some(format!("{} {} J", plain(a), short(median)))
        };
        let items: Vec<String> = order.iter().filter_map(of).collect();
        (items.len() > 1).then(|| Text::list(items))
    }),
    right(
        "tail after\nJ",
        "energy of the tails afterwards",
        5,
        |c, _| {
            let s = c.spread(|r| joules(&r.energy, |e| e.tail_after_joules))?;
            (s.max > 0.0).then(|| Text::spread(Some(s), None))
        },
    ),
    right("others\nJ", "energy of the other devices", 4, |c, _| {
        let s = c.spread(|r| joules(&r.others_energy, |e| e.spent.total_joules()))?;
        Some(Text::spread(Some(s), None))
    }),
    right("channel\nbusy", "channel busy time", 4, |c, _| {
        let media = c.media();
        let lines: Vec<String> = media
            .iter()
            .map(|(n, m)| {
                let name = if media.len() > 1 {
                    format!("{} ", plain(n))
                } else {
                    String::new()
                };
                format!("{name}{}", percent(m.busy, true))
            })
            .collect();
        (!lines.is_empty()).then(|| Text::new(lines.join("\n")))
    }),
    right("colli-\nsions", "collisions", 7, |c, _| {
        let lines: Vec<String> = c
            .media()
            .values()
            .map(|m| percent(m.collisions, false))
            .collect();
        (!lines.is_empty()).then(|| Text::new(lines.join("\n")))
    }),
    right("gap\nms", "longest gap", 5, |c, _| {
        Some(Text::spread(
            Some(c.spread(|r| r.gap_ms)?),
            c.paper("gap_ms"),
        ))
    }),
    right("window\noverruns", "windows overrun", 1, |c, _| {
        let s = c.spread(|r| r.window_overruns.map(|n| n as f64))?;
        (s.max > 0.0).then(|| Text::spread(Some(s), None).tone(Tone::Bad))
    }),
    right("sent again\nsame / other", "sent again", 8, |c, _| {
        let of = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), |v| human_bytes(v as u64));
        let same = c.median(|r| r.retransmitted_bytes.map(|b| b as f64));
        let other = c.median(|r| r.reinjected_bytes.map(|b| b as f64));
        (same.is_some() || other.is_some())
            .then(|| Text::new(format!("{} / {}", of(same), of(other))))
    }),
    left("intact", "intact", 6, |c, _| {
        Some(match c.intact()? {
            true => Text::new("yes").tone(Tone::Good),
            false => Text::new("NO").tone(Tone::Bad),
        })
    })
    .stays_if(|cases| cases.iter().any(|c| c.intact() == Some(false))),
    right("CPU\ns", "CPU time", 9, |c, _| {
        let engine = |r: &CaseResult| r.engine_cpu_seconds.map_or(0.0, EngineCpu::sum);
        let s = c.median(|r| Some(r.cpu_seconds + engine(r)))?;
        Some(Text::new(format!("{s:.1}")))
    }),
];

/// The columns of a result; `names` are the rows' names with their marks.
pub(crate) fn of(cases: &[Case<'_>], names: Vec<String>, order: &[String]) -> Vec<Column> {
    let text_column = |name, cells| Column {
        title: String::from(name),
        label: name,
        rank: 0,
        align: Align::Left,
        cells,
    };
    let names = names
        .into_iter()
        .map(|n| Text::list(n.split(' ').map(str::to_owned).collect()));
    let mut out = vec![text_column("case", names.collect())];
    out.extend(COLUMNS.iter().filter_map(|spec| spec.of(cases, order)));
    if out.len() == 1 {
        out.push(text_column("result", vec![Text::none(); cases.len()]));
    }
    for (row, _) in cases.iter().enumerate().filter(|(_, c)| c.failed()) {
        out[1].cells[row] = Text::new("failed").tone(Tone::Bad);
    }
    out
}

fn share(c: &Case<'_>, order: &[String], packets: bool) -> Option<Text> {
    let s = c.share(packets);
    if s.is_empty() {
        return None;
    }
    let field = if packets { "packet_share" } else { "share" };
    let items = |of: &dyn Fn(&str) -> Option<f64>| -> Vec<String> {
        let item = |a: &String| Some(format!("{} {}", plain(a), percent(of(a)?, true)));
        order.iter().filter_map(item).collect()
    };
    let ours = items(&|a| s.get(a).copied());
    let paper = items(&|a| c.paper(&format!("{field}.{a}")));
    Some(Text {
        paper: (!paper.is_empty()).then(|| paper.join(" ")),
        paper_items: paper,
        share: order
            .iter()
            .filter_map(|a| Some((a.clone(), *s.get(a.as_str())?)))
            .collect(),
        ..Text::list(ours)
    })
}

/// Sum over radios; `None` where none has a power model.
fn joules(of: &BTreeMap<String, EnergyUse>, part: fn(&EnergyUse) -> f64) -> Option<f64> {
    (!of.is_empty()).then(|| of.values().map(part).sum())
}

/// A number of the paper with the name and unit of its field.
pub(crate) fn paper_value(field: &str, value: f64) -> String {
    let v = short(value);
    match field {
        "goodput_mbps" => format!("{v} Mbit/s"),
        "latency_ms.mean" => format!("{v} ms"),
        "completion_s" => format!("{v} s"),
        "energy_joules" => format!("{v} J"),
        "gap_ms" => format!("gap {v} ms"),
        _ if field.starts_with("latency_ms.") => format!("{} {v} ms", plain(&field[11..])),
        _ => match field
            .strip_prefix("share.")
            .or(field.strip_prefix("packet_share."))
        {
            Some(a) => format!("{} {}", plain(a), percent(value, false)),
            None => format!("{} {v}", plain(field)),
        },
    }
}
