//! `iperf3 --json`: what arrived in each interval of a test.

use serde::Deserialize;

use super::super::error::LineError;
use super::super::samples::{Policy, Samples, Value};
use super::Parsed;

#[derive(Deserialize)]
struct Output {
    #[serde(default)]
    intervals: Vec<Interval>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Interval {
    sum: Sum,
}

/// Streams of an interval together.
#[derive(Deserialize)]
struct Sum {
    start: f64,
    bits_per_second: f64,
    /// Whether it is one of the first, which `--omit` leaves out.
    #[serde(default)]
    omitted: bool,
}

pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, LineError> {
    let output: Output = serde_json::from_slice(bytes).map_err(|e| {
        let line = u64::try_from(e.line()).unwrap_or(u64::MAX);
        LineError::at(line.max(1), format!("not the output of iperf3 --json: {e}"))
    })?;
    if let Some(error) = output.error {
        return Err(LineError::file(format!("iperf3 failed: {error}")));
    }
    let mut samples = Samples::new(vec!["link".into()], Policy::Recorded);
    let kept = output.intervals.iter().filter(|i| !i.sum.omitted);
    for (i, interval) in kept.enumerate() {
        let at = (interval.sum.start * 1e6).round() as i64;
        let mbps = Value::Mbps(interval.sum.bits_per_second / 1e6);
        samples.push(i as u64 + 1, at, std::iter::once(mbps))?;
    }
    let notes = vec![
        "iperf3 counts payload, a link IP packets: over TCP it carried about 4 % more".to_owned(),
    ];
    Parsed::of(samples, notes)
}

#[cfg(test)]
mod tests {
    use super::super::super::{Format, Trace};

    #[test]
    fn reads_the_intervals() {
        let interval = |start: f64, mbps: f64, omitted: bool| {
            format!(
                "{{\"streams\": [], \"sum\": {{\"socket\": 5, \"start\": {start}, \"end\": {}, \
                 \"bits_per_second\": {}, \"omitted\": {omitted}, \"sender\": false}}}}",
                start + 1.0,
                mbps * 1e6
            )
        };
        let all = [
            (0.0, 1.0, true),
            (0.0, 90.0, false),
            (1.000_05, 80.5, false),
        ];
        let all = all.map(|(s, m, o)| interval(s, m, o)).join(",\n");
        let file = format!("{{\n\"start\": {{}}, \"intervals\": [{all}], \"end\": {{}}}}");
        let t = Trace::parse(file.as_bytes(), None).unwrap();
        assert_eq!((t.format, t.columns()), (Format::Iperf3, vec!["link"]));
        let values: Vec<f64> = t.values(0).iter().map(|v| v.1).collect();
        assert_eq!(values, [90.0, 80.5]);
        let failed = b"{\"intervals\": [], \"error\": \"unable to connect\"}";
        let e = Trace::parse(failed, None).unwrap_err();
        assert!(e.msg.contains("unable to connect"), "{e}");
        let e = Trace::parse(b"{\n\"intervals\": [{]\n}", None).unwrap_err();
        assert!(e.line == Some(2) && e.msg.contains("iperf3 --json"), "{e}");
    }
}
