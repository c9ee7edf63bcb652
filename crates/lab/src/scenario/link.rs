//! From the keys of a link table to a [`LinkSpec`].

use std::ops::Range;
use std::time::Duration;

use braid_core::Rate;
use braid_core::units::format_duration;
use braid_radio::model::{
    DelaySpec, JitterSpec, LinkChange, LinkSpec, LossSpec, QueueSpec, RateSpec,
};
use braid_traces::Quantity;
use serde_spanned::Spanned;

use super::diagnostic::Problem;
use super::files::Files;
use super::raw::{QueueText, RawBurstLoss, RawDelay, RawLink, RawRate};
use super::text::{Either, Fraction, Text};

/// Queue of a link that names none.
const DEFAULT_QUEUE: QueueSpec = QueueSpec::Time(Duration::from_millis(100));

/// Builds the link; `files` finds its trace. `rate_needed` is false for a link whose rate comes from its medium.
pub(super) fn link_spec(
    raw: &RawLink,
    files: &Files<'_>,
    rate_needed: bool,
) -> Result<LinkSpec, Problem> {
    let rate = match rate_spec(raw, files)? {
        Some(r) => r,
        None if rate_needed => {
            return Err(Problem::whole("no `rate` and no `trace`"));
        }
        None => RateSpec::Unlimited,
    };
    Ok(LinkSpec {
        rate,
        delay: delay(raw, files)?.unwrap_or(DelaySpec::Constant(Duration::ZERO)),
        jitter: jitter(raw),
        loss: loss(raw, files)?.unwrap_or(LossSpec::None),
        queue: queue(raw),
        overhead_bytes: raw.overhead_bytes.unwrap_or(0),
        outage: raw.outage.unwrap_or_default(),
        mtu: mtu(raw)?,
    })
}

/// The changes that an event's table of link properties asks for.
pub(super) fn changes(raw: &RawLink, files: &Files<'_>) -> Result<Vec<LinkChange>, Problem> {
    let mut out = Vec::new();
    if let Some(rate) = rate_spec(raw, files)? {
        out.push(LinkChange::Rate(rate));
    }
    if let Some(spec) = delay(raw, files)? {
        out.push(LinkChange::Delay(spec));
    }
    if raw.jitter.is_some() {
        out.push(LinkChange::Jitter(jitter(raw)));
    }
    if let Some(spec) = loss(raw, files)? {
        out.push(LinkChange::Loss(spec));
    }
    if raw.queue.is_some() {
        out.push(LinkChange::Queue(queue(raw)));
    }
    if let Some(mtu) = mtu(raw)? {
        out.push(LinkChange::Mtu(Some(mtu)));
    }
    if raw.overhead_bytes.is_some() || raw.outage.is_some() {
        return Err(Problem::whole(
            "`overhead_bytes` and `outage` cannot change during a run",
        ));
    }
    Ok(out)
}

fn rate_spec(raw: &RawLink, files: &Files<'_>) -> Result<Option<RateSpec>, Problem> {
    match (&raw.rate, &raw.trace) {
        (Some(r), Some(t)) => Err(both(r.span(), t.span(), "rate", "trace")),
        (Some(r), None) => rate_value(r.get_ref(), raw.period.map(|p| p.0))
            .map(Some)
            .map_err(|m| Problem::at(r.span(), m)),
        (None, Some(t)) => files
            .load(t.get_ref(), raw.column.as_ref(), raw.format.as_ref())
            .map(Some)
            .map_err(|m| Problem::at(t.span(), m)),
        (None, None) => Ok(None),
    }
}

/// Two ways to say one thing.
fn both(value: Range<usize>, trace: Range<usize>, key: &str, trace_key: &str) -> Problem {
    Problem::at(
        value.start.max(trace.start)..value.end.max(trace.end),
        format!("both `{key}` and `{trace_key}` are given: keep one"),
    )
}

/// Refuses a column where no trace is named.
fn no_trace(column: Option<&Spanned<String>>, key: &str) -> Result<(), Problem> {
    match column {
        Some(c) => Err(Problem::at(
            c.span(),
            format!("a column is one of `{key}`: name it too"),
        )),
        None => Ok(()),
    }
}

fn delay(raw: &RawLink, files: &Files<'_>) -> Result<Option<DelaySpec>, Problem> {
    match (&raw.delay, &raw.delay_trace) {
        (Some(d), Some(t)) => Err(both(d.span(), t.span(), "delay", "delay_trace")),
        (Some(d), None) => delay_spec(d.get_ref(), raw.period.map(|p| p.0))
            .map(Some)
            .map_err(|m| Problem::at(d.span(), m)),
        (None, Some(t)) => {
            let column = raw.delay_column.as_ref();
            let (values, span) = files
                .values(t.get_ref(), column, Quantity::Delay)
                .map_err(|m| Problem::at(t.span(), m))?;
            let delay = |ms: f64| Duration::from_secs_f64(ms / 1e3);
            Ok(Some(match values[..] {
                [(_, ms)] => DelaySpec::Constant(delay(ms)),
                _ => DelaySpec::Steps {
                    points: values.iter().map(|(t, ms)| (*t, delay(*ms))).collect(),
                    period: Some(span),
                },
            }))
        }
        (None, None) => no_trace(raw.delay_column.as_ref(), "delay_trace").map(|()| None),
    }
}

fn rate_value(raw: &RawRate, period: Option<Duration>) -> Result<RateSpec, String> {
    Ok(match raw {
        Either::Short(Text(r)) if *r == Rate::ZERO => {
            return Err(
                "a link of rate zero carries nothing: use an event with `set = \"down\"`".into(),
            );
        }
        Either::Short(Text(r)) => RateSpec::Constant(*r),
        Either::Long(steps) => {
            let points: Vec<_> = steps.iter().map(|(t, r)| (t.0, r.0)).collect();
            check_steps(points.iter().map(|p| p.0), period)?;
            if points.iter().all(|p| p.1 == Rate::ZERO) {
                return Err("every step has rate zero".into());
            }
            RateSpec::Steps { points, period }
        }
    })
}

fn delay_spec(raw: &RawDelay, period: Option<Duration>) -> Result<DelaySpec, String> {
    const MOST: Duration = Duration::from_secs(60);
    let spec = match raw {
        Either::Short(Text(d)) => DelaySpec::Constant(*d),
        Either::Long(steps) => {
            let points: Vec<_> = steps.iter().map(|(t, d)| (t.0, d.0)).collect();
            check_steps(points.iter().map(|p| p.0), period)?;
            DelaySpec::Steps { points, period }
        }
    };
    let longest = match &spec {
        DelaySpec::Constant(d) => *d,
        DelaySpec::Steps { points, .. } => points.iter().map(|p| p.1).max().unwrap_or_default(),
    };
    if longest > MOST {
        return Err(format!(
            "a delay of {longest:?} is not possible here: expected at most 60 s"
        ));
    }
    Ok(spec)
}

fn check_steps(
    times: impl Iterator<Item = Duration>,
    period: Option<Duration>,
) -> Result<(), String> {
    let times: Vec<_> = times.collect();
    if times.first() != Some(&Duration::ZERO) {
        return Err("steps are [time, value] pairs of which the first has time \"0 s\"".into());
    }
    if times.windows(2).any(|w| w[1] <= w[0]) {
        return Err("the times of the steps must ascend".into());
    }
    match (period, times.last()) {
        (Some(p), Some(last)) if p <= *last => {
            Err("`period` must be longer than the time of the last step".into())
        }
        _ => Ok(()),
    }
}

fn jitter(raw: &RawLink) -> Option<JitterSpec> {
    raw.jitter
        .filter(|j| !j.0.is_zero())
        .map(|deviation| JitterSpec {
            deviation: deviation.0,
            reorder: raw.reorder.unwrap_or(false),
        })
}

/// Path MTU: no less than IPv4's least, as nothing useful passes then.
fn mtu(raw: &RawLink) -> Result<Option<u32>, Problem> {
    let Some(mtu) = &raw.mtu else { return Ok(None) };
    match mtu.get_ref() {
        m @ 68..=65_535 => Ok(Some(*m)),
        _ => Err(Problem::at(
            mtu.span(),
            "expected an MTU of 68 to 65535 bytes",
        )),
    }
}

fn loss(raw: &RawLink, files: &Files<'_>) -> Result<Option<LossSpec>, Problem> {
    match (&raw.loss, &raw.loss_trace) {
        (Some(l), Some(t)) => Err(both(l.span(), t.span(), "loss", "loss_trace")),
        (Some(l), None) => Ok(Some(loss_value(l.get_ref()))),
        (None, Some(t)) => {
            let column = raw.loss_column.as_ref();
            let (points, span) = files
                .values(t.get_ref(), column, Quantity::Loss)
                .map_err(|m| Problem::at(t.span(), m))?;
            Ok(Some(match points[..] {
                [(_, p)] => loss_value(&Either::Short(Fraction(p))),
                _ => LossSpec::Steps {
                    points,
                    period: Some(span),
                },
            }))
        }
        (None, None) => no_trace(raw.loss_column.as_ref(), "loss_trace").map(|()| None),
    }
}

fn loss_value(raw: &Either<Fraction, RawBurstLoss>) -> LossSpec {
    match raw {
        Either::Short(p) if p.0 == 0.0 => LossSpec::None,
        Either::Short(p) => LossSpec::Bernoulli(p.0),
        Either::Long(g) => LossSpec::GilbertElliott {
            good_to_bad: g.good_to_bad.0,
            bad_to_good: g.bad_to_good.0,
            loss_good: g.loss_good.map_or(0.0, |p| p.0),
            loss_bad: g.loss_bad.map_or(1.0, |p| p.0),
        },
    }
}

fn queue(raw: &RawLink) -> QueueSpec {
    match &raw.queue {
        None => DEFAULT_QUEUE,
        Some(Either::Short(Text(QueueText::Time(d)))) => QueueSpec::Time(*d),
        Some(Either::Short(Text(QueueText::Bytes(b)))) => QueueSpec::Bytes(*b),
        Some(Either::Short(Text(QueueText::Packets(n)))) => QueueSpec::Packets(*n),
        Some(Either::Long(c)) => QueueSpec::Codel {
            target: c.target.map_or(Duration::from_millis(5), |t| t.0),
            interval: c.interval.map_or(Duration::from_millis(100), |t| t.0),
            limit_packets: c.limit_packets.unwrap_or(1000),
        },
    }
}

/// Multiplies every rate (and every queue limit in bytes or packets, so that
/// it stands for the same time) by `factor`.
pub(super) fn scale(spec: &mut LinkSpec, factor: f64) {
    scale_rate(&mut spec.rate, factor);
    scale_queue(&mut spec.queue, factor);
}

/// Multiplies the rate or queue limit of a link's change by `factor`, as `scale` does.
pub(super) fn scale_change(change: &mut LinkChange, factor: f64) {
    match change {
        LinkChange::Rate(r) => scale_rate(r, factor),
        LinkChange::Queue(q) => scale_queue(q, factor),
        _ => {}
    }
}

pub(super) fn scale_rate(rate: &mut RateSpec, factor: f64) {
    match rate {
        RateSpec::Unlimited => {}
        RateSpec::Constant(r) => *r = r.scaled(factor),
        RateSpec::Steps { points, .. } => points.iter_mut().for_each(|p| p.1 = p.1.scaled(factor)),
        RateSpec::Opportunities { packet_bytes, .. } => {
            *packet_bytes = (f64::from(*packet_bytes) * factor).round().max(1.0) as u32;
        }
    }
}

fn scale_queue(queue: &mut QueueSpec, factor: f64) {
    match queue {
        QueueSpec::Bytes(b) => *b = (*b as f64 * factor).round() as u64,
        QueueSpec::Packets(n) => *n = (f64::from(*n) * factor).round().max(1.0) as u32,
        QueueSpec::Time(_) | QueueSpec::Codel { .. } => {}
    }
}

/// A change in a few words, for `events.csv` and the report.
pub(super) fn describe(change: &LinkChange) -> String {
    match change {
        LinkChange::Rate(RateSpec::Constant(r)) => format!("rate {r}"),
        LinkChange::Rate(_) => "rate by steps or trace".to_owned(),
        LinkChange::Delay(DelaySpec::Constant(d)) => format!("delay {}", format_duration(*d)),
        LinkChange::Delay(_) => "delay by steps or trace".to_owned(),
        LinkChange::Jitter(None) => "no jitter".to_owned(),
        LinkChange::Jitter(Some(j)) => format!("jitter {}", format_duration(j.deviation)),
        LinkChange::Loss(LossSpec::None) => "no loss".to_owned(),
        LinkChange::Loss(LossSpec::Bernoulli(p)) => format!("loss {p}"),
        LinkChange::Loss(LossSpec::GilbertElliott { .. }) => "bursty loss".to_owned(),
        LinkChange::Loss(LossSpec::Steps { .. }) => "loss by steps or trace".to_owned(),
        LinkChange::Queue(_) => "queue".to_owned(),
        LinkChange::Mtu(None) => "no MTU".to_owned(),
        LinkChange::Mtu(Some(bytes)) => format!("MTU {bytes}"),
        LinkChange::Down => "down".to_owned(),
        LinkChange::Up => "up".to_owned(),
    }
}
