//! Many bytes under loss and outages, every one of them checked. Runs last
//! and makes up what the other parts have not carried.

use std::time::{Duration, Instant};

use anyhow::Result;
use braid_radio::model::{LinkChange, LinkSpec, LossSpec};

use super::{Run, unlimited};
use crate::tcp;
use crate::wire::Wire;

/// Bytes over all parts.
const TARGET: u64 = 50_000_000_000;
/// Carried by this part whatever the others did.
const LEAST: u64 = 10_000_000_000;
/// Longest time for it.
const AT_MOST: Duration = Duration::from_secs(240);
/// Between outages, and how long they are.
const EVERY: Duration = Duration::from_millis(700);
const OUTAGE: Duration = Duration::from_millis(20);
const LEAST_OUTAGES: u32 = 5;

pub(super) fn measure(run: &mut Run<'_>) -> Result<()> {
    let spec = LinkSpec {
        loss: LossSpec::GilbertElliott {
            good_to_bad: 1e-4,
            bad_to_good: 0.3,
            loss_good: 1e-5,
            loss_bad: 0.3,
        },
        ..unlimited(Duration::ZERO)
    };
    let wire = Wire::start(&[spec])?;
    let (from, to) = wire.tcp(0)?;
    from.set_tcp_congestion(b"cubic")?;
    let scale = if run.options.quick { 20 } else { 1 };
    let target = TARGET.saturating_sub(run.carried).max(LEAST) / scale;
    let began = Instant::now();
    let mut next = began + EVERY;
    let mut outages = 0;
    let got = tcp::stream(&from, &to, |bytes| {
        if Instant::now() >= next {
            wire.change(0, &LinkChange::Down)?;
            std::thread::sleep(OUTAGE);
            wire.change(0, &LinkChange::Up)?;
            next = Instant::now() + EVERY;
            outages += 1;
        }
        Ok((bytes >= target && outages >= LEAST_OUTAGES) || began.elapsed() > AT_MOST)
    })?;
    run.carried += got.bytes;
    run.bad += got.bad;
    let stats = wire.stats()?;
    run.pauses("carry", &stats);
    let drops = stats.links["p0.up"].model.drops;
    run.report.note(format!(
        "carry: {:.1} GB over a lossy link with {outages} outages in {:.0} s: {} packets lost, {} in outages, all sent again",
        got.bytes as f64 / 1e9,
        began.elapsed().as_secs_f64(),
        drops.loss,
        drops.link_down
    ));
    let wanted = TARGET / scale;
    run.report.bar(
        "bytes carried over all parts, each one checked",
        &format!("at least {:.1} GB, none wrong", wanted as f64 / 1e9),
        format!("{:.1} GB, {} wrong", run.carried as f64 / 1e9, run.bad),
        run.carried >= wanted && run.bad == 0,
    );
    Ok(())
}
