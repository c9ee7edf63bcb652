//! Capacity traces from paths: one link per cell, carrier, operator or rank.

use std::collections::HashMap;
use std::str::FromStr;

use braid_core::Rate;

use super::paths::{Paths, STEP};
use crate::{Capacity, Column, Format, MAX_COLUMNS, Trace};

/// Unit that becomes a link of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// Every cell, while it is the one of its carrier.
    Cell,
    /// Every carrier, on its best cell at a time.
    Carrier,
    /// Every operator, on its best cell at a time.
    Operator,
    /// The best cell at a time, the second best, and so on, each on a carrier of
    /// its own.
    Rank,
    /// The best single path, and all paths together.
    Total,
}

impl FromStr for Per {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "cell" => Ok(Self::Cell),
            "carrier" => Ok(Self::Carrier),
            "operator" => Ok(Self::Operator),
            "rank" => Ok(Self::Rank),
            "total" => Ok(Self::Total),
            _ => Err(format!(
                "\"{s}\": expected cell, carrier, operator, rank or total"
            )),
        }
    }
}

/// A capacity trace of `paths`, second by second, with at most `most` links and
/// never more than a trace may have: those that carry most, in the order in which
/// they first occur. Also how many links were left out.
///
/// # Errors
/// There is no path in any second.
pub fn trace(paths: &Paths, per: Per, most: usize) -> Result<(Trace, usize), String> {
    let seconds = paths.seconds.len();
    let mut names: Vec<String> = Vec::new();
    let mut rates: Vec<Vec<Rate>> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    let mut add = |t: usize, name: String, rate: Rate| {
        let at = *index.entry(name).or_insert_with_key(|name| {
            names.push(name.clone());
            rates.push(vec![Rate::ZERO; seconds]);
            names.len() - 1
        });
        // Paths come best first: what is there is larger.
        let r = &mut rates[at][t];
        *r = rate.max(*r);
    };
    for (t, now) in paths.seconds.iter().enumerate() {
        if per == Per::Total {
            add(t, "best".to_owned(), now.best());
            add(t, "multipath".to_owned(), now.multipath());
            continue;
        }
        for (rank, path) in now.paths.iter().enumerate() {
            let c = &paths.cells[path.cell];
            let name = match per {
                Per::Cell => format!("{}.{}.{}", c.operator, c.carrier, c.cell),
                // A link of a capacity trace is all three: it keeps its name.
                Per::Carrier if c.operator == c.carrier => c.carrier.clone(),
                Per::Carrier => format!("{}.{}", c.operator, c.carrier),
                Per::Operator => c.operator.clone(),
                Per::Rank | Per::Total => format!("path{}", rank + 1),
            };
            add(t, plain(&name), path.rate);
        }
    }
    if names.is_empty() {
        return Err("no cell was heard in any second".to_owned());
    }
    let bits = |i: &usize| -> u64 { rates[*i].iter().map(|r| r.as_bps()).sum() };
    let mut kept: Vec<usize> = (0..names.len()).collect();
    kept.sort_by_key(|i| std::cmp::Reverse(bits(i)));
    kept.truncate(most.clamp(1, MAX_COLUMNS));
    kept.sort_unstable();
    let left_out = names.len() - kept.len();
    let columns = kept.into_iter().map(|i| Column {
        name: names[i].clone(),
        rates: std::mem::take(&mut rates[i]),
    });
    let at = |t: usize| STEP * u32::try_from(t).unwrap_or(u32::MAX);
    let trace = Trace {
        format: Format::Csv,
        capacity: Capacity::Steps {
            starts: (0..seconds).map(at).collect(),
            end: at(seconds),
            columns: columns.collect(),
        },
        problems: Vec::new(),
        notes: Vec::new(),
    };
    Ok((trace, left_out))
}

/// `name` as a column of our CSV may be called.
fn plain(name: &str) -> String {
    let ok = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    name.chars().map(|c| if ok(c) { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::CapacityModel;
    use super::super::drive::{DriveSpec, drive};
    use super::*;
    use crate::write;

    fn sum(t: &Trace, second: usize) -> u64 {
        let Capacity::Steps { columns, .. } = &t.capacity else {
            panic!("not sampled")
        };
        columns.iter().map(|c| c.rates[second].as_bps()).sum()
    }

    #[test]
    fn links_add_up_and_can_be_read_back() {
        let m = drive(&DriveSpec::shipped(), 3, 400).unwrap();
        let paths = m.paths(&CapacityModel::default());
        let get = |per| trace(&paths, per, 64).unwrap();
        let (carriers, ranks, total) = (get(Per::Carrier), get(Per::Rank), get(Per::Total));
        let cells = get(Per::Cell);
        assert_eq!(total.0.columns(), ["best", "multipath"]);
        for (t, now) in paths.seconds.iter().enumerate() {
            let all = now.multipath().as_bps();
            assert_eq!((sum(&carriers.0, t), sum(&ranks.0, t)), (all, all));
            assert_eq!(sum(&total.0, t), all + now.best().as_bps());
            assert!(cells.1 > 0 || sum(&cells.0, t) == all);
        }
        for (t, _) in [carriers, ranks, total, cells, get(Per::Operator)] {
            let mut text = Vec::new();
            write::csv(&t, &[], &mut text).unwrap();
            assert_eq!(Trace::parse(&text, None).unwrap().capacity, t.capacity);
        }
        let (two, left) = trace(&paths, Per::Carrier, 2).unwrap();
        assert_eq!((two.columns().len(), left), (2, 2));
        assert!(trace(&Paths::default(), Per::Cell, 9).is_err());
    }

    #[test]
    fn names_are_made_to_fit() {
        assert_eq!(plain("T-Mobile NL.LTE 20"), "T-Mobile-NL.LTE-20");
        assert!(
            "cells"
                .parse::<Per>()
                .unwrap_err()
                .contains("expected cell")
        );
    }
}
