//! Delay while the emulator is busy with other links.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, anyhow};

use super::rates::{EXCESS, LINKS};
use super::{Run, shaped, unlimited};
use crate::pauses::Watch;
use crate::probe::{self, DelayError};
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
    let done = AtomicBool::new(false);
    let (floods, (stamps, pauses, stats)) = udp::run(&routes, || {
        std::thread::sleep(Duration::from_millis(500));
        let (stamps, pauses) = std::thread::scope(|s| {
            let watch = Watch::start(s, &done);
            let probes: Vec<_> = sockets
                .iter()
                .zip(DELAYS)
                .map(|((from, to), us)| {
                    s.spawn(move || probe::send_through(from, to, count, Duration::from_micros(us)))
                })
                .collect();
            let join = |p: std::thread::ScopedJoinHandle<'_, _>| {
                p.join().map_err(|_| anyhow!("a probe panicked"))?
            };
            let stamps = probes.into_iter().map(join).collect::<Result<Vec<_>>>();
            done.store(true, Ordering::Relaxed);
            anyhow::Ok((stamps?, watch?.join()?))
        })?;
        Ok((stamps, pauses, wire.stats()?))
    })?;
    run.count(&floods);
    run.pauses("delay", &stats);
    for (us, stamps) in DELAYS.into_iter().zip(stamps) {
        let e = DelayError::of(&stamps, Duration::from_micros(us), &pauses)?;
        let (all, own) = (e.absolute, e.unpaused);
        run.report.bar(
            &format!(
                "error of a delay of {} ms, the three links loaded",
                us as f64 / 1e3
            ),
            "mean < 20 us, p99 < 100 us outside the host's pauses",
            format!(
                "mean {:.1} us, p99 {:.1} us; with the pauses: mean {:.1} us (signed {:+.1}), p50 {:.1}, p99 {:.1}, max {:.1} us of {} probes",
                own.mean, own.p99, all.mean, e.mean, all.p50, all.p99, all.max, e.probes
            ),
            own.mean < 20.0 && own.p99 < 100.0,
        );
    }
    Ok(())
}
