//! Random loss against what was asked for.

use std::time::Duration;

use anyhow::Result;
use braid_radio::model::{LinkSpec, LossSpec};

use super::{Run, unlimited};
use crate::udp::{self, Flood};
use crate::wire::Wire;

const RATES: [f64; 3] = [1e-4, 1e-3, 1e-2];
/// Slow enough that nothing else drops a packet.
const FLOOD: Flood = Flood {
    mbps: 2500.0,
    segments: 44,
};

pub(super) fn measure(run: &mut Run<'_>) -> Result<()> {
    for p in RATES {
        let spec = LinkSpec {
            loss: LossSpec::Bernoulli(p),
            ..unlimited(Duration::from_millis(1))
        };
        let wire = Wire::start(&[spec])?;
        let time = run.time(10);
        let (floods, ()) = udp::run(&[wire.route("loss", 0, FLOOD)?], || {
            std::thread::sleep(time);
            Ok(())
        })?;
        run.count(&floods);
        let stats = wire.stats()?;
        run.pauses("loss", &stats);
        let m = stats.links["p0.up"].model;
        let (n, lost) = (m.in_packets as f64, m.drops.loss as f64);
        let sigma = (n * p * (1.0 - p)).sqrt();
        let off = (lost - n * p) / sigma;
        run.report.bar(
            &format!("loss of {p:e}"),
            "within 3 sigma",
            format!("{:.4e} of {n} packets ({off:+.2} sigma)", lost / n),
            off.abs() <= 3.0,
        );
        let (sent, got) = &floods["loss"];
        if got.datagrams != m.out_packets || *sent != m.in_packets {
            run.report.note(format!(
                "loss of {p:e}: beside the link, the hosts' own queues dropped {} packets before and {} behind it",
                sent.saturating_sub(m.in_packets),
                m.out_packets.saturating_sub(got.datagrams)
            ));
        }
    }
    Ok(())
}
