//! How much one link carries when nothing limits it.

use std::time::{Duration, Instant};

use anyhow::Result;
use braid_lab::cpu::process_seconds;

use super::{Run, unlimited};
use crate::tcp;
use crate::wire::Wire;

pub(super) fn measure(run: &mut Run<'_>) -> Result<()> {
    let wire = Wire::start(&[unlimited(Duration::ZERO)])?;
    let (from, to) = wire.tcp(0)?;
    from.set_tcp_congestion(b"cubic")?;
    let end = Instant::now() + run.time(10).max(Duration::from_secs(3));
    let (cpu, began) = (process_seconds(wire.pid())?, Instant::now());
    let got = tcp::stream(&from, &to, |_| Ok(Instant::now() >= end))?;
    let cores = (process_seconds(wire.pid())? - cpu) / began.elapsed().as_secs_f64();
    run.carried += got.bytes;
    run.bad += got.bad;
    run.pauses("unshaped", &wire.stats()?);
    let gbps = got.mbps / 1e3;
    run.report.bar(
        "unshaped, one TCP stream, every byte checked",
        "over 10 Gbit/s",
        format!("{gbps:.1} Gbit/s of payload at {cores:.2} core"),
        gbps > 10.0,
    );
    Ok(())
}
