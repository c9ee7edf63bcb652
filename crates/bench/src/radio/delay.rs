//! Delay while the emulator is busy with other links.

use std::time::Duration;

use anyhow::{Result, anyhow};

use super::rates::{EXCESS, LINKS};
use super::{Run, shaped, unlimited};
use crate::probe;
use crate::udp::{self, Flood};
use crate::wire::Wire;

/// One-way delays, microseconds.
pub(super) const DELAYS: [u64; 3] = [1_100, 10_000, 50_000];

pub(super) fn measure(run: &mut Run<'_>) -> Result<()> {
    let mut specs: Vec<_> = DELAYS
        .iter()
        .map(|&us| unlimited(Duration::from_micros(us)))
        .collect();
    specs.extend(LINKS.map(|(mbps, us, _)| shaped(mbps, Duration::from_micros(us))));
    let wire = Wire::start(&specs)?;
    let mut routes = Vec::new();
    for (i, (mbps, _, segments)) in LINKS.into_iter().enumerate() {
        let flood = Flood {
            mbps: mbps * EXCESS,
            segments,
        };
        routes.push(wire.route(&format!("load{i}"), DELAYS.len() + i, flood)?);
    }
    let count = run.time(20).as_millis() as u32;
    let sockets = (0..DELAYS.len())
        .map(|i| wire.udp(i))
        .collect::<Result<Vec<_>>>()?;
    let (floods, (errors, stats)) = udp::run(&routes, || {
        std::thread::sleep(Duration::from_millis(500));
        let errors = std::thread::scope(|s| {
            let probes: Vec<_> = sockets
                .iter()
                .zip(DELAYS)
                .map(|((from, to), us)| {
                    s.spawn(move || probe::delay(from, to, count, Duration::from_micros(us)))
                })
                .collect();
            let join = |p: std::thread::ScopedJoinHandle<'_, _>| {
                p.join().map_err(|_| anyhow!("a probe panicked"))?
            };
            probes.into_iter().map(join).collect::<Result<Vec<_>>>()
        })?;
        Ok((errors, wire.stats()?))
    })?;
    run.count(&floods);
    run.pauses("delay", &stats);
    for (us, e) in DELAYS.into_iter().zip(errors) {
        let a = e.absolute;
        run.report.bar(
            &format!(
                "error of a delay of {} ms, the three links loaded",
                us as f64 / 1e3
            ),
            "mean < 20 us, p99 < 100 us",
            format!(
                "mean {:.1} us (signed {:+.1}), p50 {:.1}, p99 {:.1}, max {:.1} us of {} probes",
                a.mean, e.mean, a.p50, a.p99, a.max, e.probes
            ),
            a.mean < 20.0 && a.p99 < 100.0,
        );
    }
    Ok(())
}
