//! The `[backhaul.NAME]` tables: lines that accesses share.

use serde_spanned::Spanned;

use super::build::Builder;
use super::diagnostic::Problem;
use super::raw::{RawChange, RawLink};

/// A key, and whether it is given.
type Key = (&'static str, bool);

/// Keys that a backhaul sets, and its accesses therefore do not.
fn of_line(raw: &RawLink) -> [Key; 7] {
    [
        ("rate", raw.rate.is_some()),
        ("period", raw.period.is_some()),
        ("trace", raw.trace.is_some()),
        ("column", raw.column.is_some()),
        ("format", raw.format.is_some()),
        ("queue", raw.queue.is_some()),
        ("overhead_bytes", raw.overhead_bytes.is_some()),
    ]
}

/// Keys that belong to the accesses behind a backhaul.
fn of_accesses(raw: &RawLink) -> [Key; 8] {
    [
        ("delay", raw.delay.is_some()),
        ("delay_trace", raw.delay_trace.is_some()),
        ("jitter", raw.jitter.is_some()),
        ("reorder", raw.reorder.is_some()),
        ("loss", raw.loss.is_some()),
        ("loss_trace", raw.loss_trace.is_some()),
        ("outage", raw.outage.is_some()),
        ("mtu", raw.mtu.is_some()),
    ]
}

fn first_given(keys: &[Key]) -> Option<&'static str> {
    keys.iter().find(|k| k.1).map(|k| k.0)
}

/// The first key of `raw` that belongs to the backhaul.
pub(super) fn not_its_own(raw: &RawLink) -> Option<&'static str> {
    first_given(&of_line(raw))
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
        if let Some(key) = first_given(&of_accesses(link)) {
            return wrong(format!(
                "backhaul \"{name}\": `{key}` belongs to each access behind it; a backhaul has {}",
                of_line(link).map(|k| k.0).join(", ")
            ));
        }
    }
    Ok(())
}
