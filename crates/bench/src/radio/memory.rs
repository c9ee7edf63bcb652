//! Memory over ten minutes at full load.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::rates::{EXCESS, LINKS};
use super::{Run, shaped};
use crate::udp::{self, Flood};
use crate::wire::Wire;

/// Maximum growth after the first minute, KiB: a page table here and there.
const MOST_KIB: u64 = 256;

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
    let (settle, time) = (run.time(60), run.time(600));
    let (floods, (first, most, stats)) = udp::run(&routes, || {
        std::thread::sleep(settle);
        let first = wire.stats()?.process.rss_bytes;
        let end = Instant::now() + time.saturating_sub(settle);
        let mut most = first;
        while Instant::now() < end {
            std::thread::sleep(Duration::from_secs(1));
            most = most.max(wire.stats()?.process.rss_bytes);
        }
        Ok((first, most, wire.stats()?))
    })?;
    run.count(&floods);
    run.pauses("memory", &stats);
    let grown = (most - first) / 1024;
    run.report.bar(
        &format!("memory over {:.0} s at full load", time.as_secs_f64()),
        &format!("grows by at most {MOST_KIB} KiB after the first tenth"),
        format!("{:.1} MiB, grew by {grown} KiB", most as f64 / 1048576.0),
        grown <= MOST_KIB,
    );
    Ok(())
}
