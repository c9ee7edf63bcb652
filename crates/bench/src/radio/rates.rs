//! Three links at once: rate and processor time.

use std::time::Duration;

use anyhow::Result;

use super::{Run, shaped};
use crate::udp::{self, Flood};
use crate::wire::Wire;
use braid_lab::cpu::process_seconds;

/// Rate in Mbit/s, one-way delay in microseconds, datagrams per super-packet
/// (what TCP would have at such a rate).
pub(super) const LINKS: [(f64, u64, usize); 3] =
    [(342.0, 10_100, 16), (1190.0, 1280, 44), (12.0, 1080, 2)];

/// Floods exceed the rate by this, so that the queue is never empty.
pub(super) const EXCESS: f64 = 1.03;

pub(super) fn measure(run: &mut Run<'_>) -> Result<()> {
    let specs = LINKS.map(|(mbps, us, _)| shaped(mbps, Duration::from_micros(us)));
    let wire = Wire::start(&specs)?;
    let mut routes = Vec::new();
    for (i, (mbps, _, segments)) in LINKS.into_iter().enumerate() {
        let flood = Flood {
            mbps: mbps * EXCESS,
            segments,
        };
        routes.push(wire.route(&format!("p{i}"), i, flood)?);
    }
    let time = run.time(20);
    let (floods, (cores, stats)) = udp::run(&routes, || {
        std::thread::sleep(time / 10);
        let (cpu, from) = (process_seconds(wire.pid())?, std::time::Instant::now());
        std::thread::sleep(time * 9 / 10);
        let cores = (process_seconds(wire.pid())? - cpu) / from.elapsed().as_secs_f64();
        Ok((cores, wire.stats()?))
    })?;
    run.count(&floods);
    run.pauses("rates", &stats);
    for (i, (mbps, ..)) in LINKS.into_iter().enumerate() {
        let (_, got) = &floods[&format!("p{i}")];
        let off = (got.mbps / mbps - 1.0) * 100.0;
        run.report.bar(
            &format!("rate of {mbps} Mbit/s, three links at once"),
            "within 0.5 %",
            format!("{:.2} Mbit/s ({off:+.3} %)", got.mbps),
            off.abs() <= 0.5,
        );
    }
    run.report.bar(
        "processor time for the three",
        "under 0.6 core",
        format!("{cores:.2} core"),
        cores < 0.6,
    );
    Ok(())
}
