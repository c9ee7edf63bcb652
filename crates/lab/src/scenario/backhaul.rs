//! The `[backhaul.NAME]` tables: lines that accesses share.

use serde_spanned::Spanned;

use super::build::Builder;
use super::diagnostic::Problem;
use super::raw::{RawChange, RawLink};

/// What a backhaul sets, and its accesses therefore not.
const LINE: [&str; 7] = [
    "rate",
    "period",
    "trace",
    "column",
    "format",
    "queue",
    "overhead_bytes",
];

/// The keys of [`LINE`] that `raw` has.
fn line_keys(raw: &RawLink) -> [bool; 7] {
    [
        raw.rate.is_some(),
        raw.period.is_some(),
        raw.trace.is_some(),
        raw.column.is_some(),
        raw.format.is_some(),
        raw.queue.is_some(),
        raw.overhead_bytes.is_some(),
    ]
}

/// The first key of `raw` that belongs to the backhaul.
pub(super) fn not_its_own(raw: &RawLink) -> Option<&'static str> {
    let given = line_keys(raw).into_iter().position(|set| set)?;
    Some(LINE[given])
}

/// The first key of `raw` that belongs to the accesses behind the backhaul.
fn of_accesses(raw: &RawLink) -> Option<&'static str> {
    let keys = [
        ("delay", raw.delay.is_some()),
        ("jitter", raw.jitter.is_some()),
        ("reorder", raw.reorder.is_some()),
        ("loss", raw.loss.is_some()),
        ("outage", raw.outage.is_some()),
    ];
    keys.into_iter().find(|k| k.1).map(|k| k.0)
}

impl Builder<'_> {
    /// Both directions of the backhaul called `name`; the uplink mirrors the
    /// downlink as that of an access does.
    pub(super) fn backhaul(&self, name: &Spanned<String>) -> Result<(RawLink, RawLink), Problem> {
        let known = &self.raw.backhaul;
        let raw = known.get(name.get_ref()).ok_or_else(|| {
            super::build::unknown(name, "backhaul", known.keys().map(String::as_str))
        })?;
        check(name.get_ref(), raw)?;
        let RawChange { down, up } = raw.get_ref();
        let up = if up.rate.is_none() && up.trace.is_none() {
            down.merged(up)
        } else {
            up.clone()
        };
        Ok((down.clone(), up))
    }
}

pub(super) fn check(name: &str, raw: &Spanned<RawChange>) -> Result<(), Problem> {
    let wrong = |message: String| Err(Problem::at(raw.span(), message));
    let RawChange { down, up } = raw.get_ref();
    if down.rate.is_none() && down.trace.is_none() {
        return wrong(format!(
            "backhaul \"{name}\" needs a rate: down = {{ rate = \"40 Mbit/s\" }}"
        ));
    }
    for link in [down, up] {
        if let Some(key) = of_accesses(link) {
            return wrong(format!(
                "backhaul \"{name}\": `{key}` belongs to each access behind it; a backhaul has {}",
                LINE.join(", ")
            ));
        }
    }
    Ok(())
}
