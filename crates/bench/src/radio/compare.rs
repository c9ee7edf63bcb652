//! Side by side with the published emulator `rattan`, and for rate with `tc tbf`.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use braid_lab::cpu::process_seconds;
use socket2::Socket;

use super::delay::DELAYS;
use super::rates::EXCESS;
use super::rattan::{self, Rattan};
use super::shaper::Shaper;
use super::{Run, shaped, unlimited};
use crate::pauses::Pauses;
use crate::probe::{self, DelayError};
use crate::report::Comparison;
use crate::tcp;
use crate::udp::{self, Flood, Floods, Route};
use crate::wire::Wire;

/// Rates compared, Mbit/s.
const RATES: [f64; 3] = [12.0, 342.0, 1190.0];
/// Load beside the probes, on the same link, in single datagrams: the same for both.
const LOAD: Flood = Flood {
    mbps: 100.0,
    segments: 1,
};

/// One path through an emulator.
enum Path1 {
    Braid(Box<Wire>),
    Rattan(Box<Rattan>),
}

/// Emulated link: rate in Mbit/s if limited, and delay.
type What = (Option<f64>, Duration);

impl Path1 {
    fn start(program: Option<&Path>, (mbps, delay): What) -> Result<Self> {
        let Some(program) = program else {
            let spec = mbps.map_or_else(|| unlimited(delay), |m| shaped(m, delay));
            return Ok(Self::Braid(Box::new(Wire::start(&[spec])?)));
        };
        let us = format!("{}us", delay.as_micros());
        let mut a = vec![
            "--uplink-delay".to_owned(),
            us.clone(),
            "--downlink-delay".to_owned(),
            us,
        ];
        if let Some(mbps) = mbps {
            // As many packets as 50 ms of the rate.
            let packets = (mbps * 1e6 * 0.05 / 8.0 / 1500.0) as u64;
            a.extend(["--uplink-bandwidth".to_owned(), format!("{mbps}Mbps")]);
            a.extend(["--uplink-queue".to_owned(), "droptail".to_owned()]);
            a.extend([
                "--uplink-queue-args".to_owned(),
                format!("{{\"packet_limit\":{packets}}}"),
            ]);
        }
        Ok(Self::Rattan(Box::new(Rattan::start(program, &a)?)))
    }

    fn pid(&self) -> i32 {
        match self {
            Self::Braid(w) => w.pid(),
            Self::Rattan(r) => r.pid(),
        }
    }

    fn udp(&self) -> Result<(Socket, Socket)> {
        match self {
            Self::Braid(w) => w.udp(0),
            Self::Rattan(r) => r.udp(),
        }
    }

    fn tcp(&self) -> Result<(Socket, Socket)> {
        match self {
            Self::Braid(w) => w.tcp(0),
            Self::Rattan(r) => r.tcp(),
        }
    }

    /// Counts what our emulator carried; what another one does is not ours to count.
    fn count(&self, run: &mut Run<'_>, floods: &Floods) -> Result<()> {
        if let Self::Braid(wire) = self {
            run.count(floods);
            run.pauses("compare", &wire.stats()?);
        }
        Ok(())
    }

    fn route(&self, flood: Flood) -> Result<Route> {
        let (from, to) = self.udp()?;
        Ok(Route {
            name: "flood".to_owned(),
            from,
            to,
            flood,
        })
    }
}

/// Rate that came of a flood of 1.03 times `mbps`, if the sender managed that.
struct Rate {
    mbps: f64,
    offered_mbps: f64,
    /// Rate that it should have been, Mbit/s.
    wanted_mbps: f64,
}

impl Rate {
    fn of(sent: u64, got: &udp::Received, time: Duration, wanted_mbps: f64) -> Self {
        let bits = sent as f64 * (udp::FULL + udp::HEADERS) as f64 * 8.0;
        Self {
            mbps: got.mbps,
            offered_mbps: bits / 1e6 / time.as_secs_f64(),
            wanted_mbps,
        }
    }

    fn show(&self) -> String {
        let off = (self.mbps / self.wanted_mbps - 1.0) * 100.0;
        let short = if self.offered_mbps < self.wanted_mbps {
            format!(", of only {:.0} offered", self.offered_mbps)
        } else {
            String::new()
        };
        format!("{:.2} Mbit/s ({off:+.2} %{short})", self.mbps)
    }
}

/// Rate, and the emulator's cores.
fn rate(run: &mut Run<'_>, program: Option<&Path>, mbps: f64) -> Result<(Rate, f64)> {
    let path = Path1::start(program, (Some(mbps), Duration::from_millis(1)))?;
    let flood = Flood {
        mbps: mbps * EXCESS,
        segments: 1,
    };
    let time = run.time(8).max(Duration::from_secs(2));
    let (cpu, began) = (process_seconds(path.pid())?, Instant::now());
    let (floods, cores) = udp::run(&[path.route(flood)?], || {
        std::thread::sleep(time);
        Ok((process_seconds(path.pid())? - cpu) / began.elapsed().as_secs_f64())
    })?;
    path.count(run, &floods)?;
    let (sent, got) = &floods["flood"];
    Ok((Rate::of(*sent, got, time, mbps), cores))
}

/// Payload of one TCP stream without a limit, and the emulator's cores.
fn throughput(run: &mut Run<'_>, program: Option<&Path>) -> Result<(f64, f64)> {
    let path = Path1::start(program, (None, Duration::from_millis(1)))?;
    let (from, to) = path.tcp()?;
    from.set_tcp_congestion(b"cubic")?;
    let end = Instant::now() + run.time(8).max(Duration::from_secs(3));
    let (cpu, began) = (process_seconds(path.pid())?, Instant::now());
    let got = tcp::stream(&from, &to, |_| Ok(Instant::now() >= end))?;
    if let Path1::Braid(wire) = &path {
        run.pauses("compare", &wire.stats()?);
        run.carried += got.bytes;
        run.bad += got.bad;
    }
    let cores = (process_seconds(path.pid())? - cpu) / began.elapsed().as_secs_f64();
    Ok((got.mbps, cores))
}

/// Errors of the delay under [`LOAD`], and the emulator's cores.
fn delay(run: &mut Run<'_>, program: Option<&Path>, us: u64) -> Result<(DelayError, f64)> {
    let wanted = Duration::from_micros(us);
    let path = Path1::start(program, (None, wanted))?;
    let (from, to) = path.udp()?;
    let count = run.time(8).as_millis() as u32;
    let (cpu, began) = (process_seconds(path.pid())?, Instant::now());
    let (floods, (stamps, cores)) = udp::run(&[path.route(LOAD)?], || {
        std::thread::sleep(Duration::from_millis(300));
        let stamps = probe::send_through(&from, &to, count, wanted)?;
        let cores = (process_seconds(path.pid())? - cpu) / began.elapsed().as_secs_f64();
        Ok((stamps, cores))
    })?;
    path.count(run, &floods)?;
    // The other emulator's lateness is told as it is, and so is ours.
    Ok((DelayError::of(&stamps, wanted, &Pauses::default())?, cores))
}

/// A measurement of the other emulator as text; that it failed is a result too.
fn or_failure(r: Result<String>) -> String {
    r.unwrap_or_else(|e| format!("failed: {e:#}"))
}

pub(super) fn measure(run: &mut Run<'_>) -> Result<()> {
    let program = rattan::install(&run.options.tools)?;
    let program = Some(program.as_path());
    let mut rows = Vec::new();
    for mbps in RATES {
        let show = |(r, cores): (Rate, f64)| format!("{}, {cores:.2} core", r.show());
        let ours = show(rate(run, None, mbps)?);
        let theirs = or_failure(rate(run, program, mbps).map(show));
        let tbf = or_failure(token_bucket(run, mbps).map(|r| r.show()));
        rows.push(vec![format!("rate of {mbps} Mbit/s"), ours, theirs, tbf]);
    }
    let show = |(m, cores): (f64, f64)| format!("{:.2} Gbit/s, {cores:.2} core", m / 1e3);
    let ours = show(throughput(run, None)?);
    let theirs = or_failure(throughput(run, program).map(show));
    rows.push(vec![
        "no limit, one TCP stream".to_owned(),
        ours,
        theirs,
        "-".to_owned(),
    ]);
    for us in DELAYS {
        let show = |(e, cores): (DelayError, f64)| {
            let a = e.absolute;
            format!(
                "mean {:.1} us, p99 {:.1} us, {cores:.2} core",
                a.mean, a.p99
            )
        };
        let ours = show(delay(run, None, us)?);
        let theirs = or_failure(delay(run, program, us).map(show));
        let what = format!(
            "error of a delay of {} ms, {} Mbit/s beside",
            us as f64 / 1e3,
            LOAD.mbps
        );
        rows.push(vec![what, ours, theirs, "-".to_owned()]);
    }
    let table = Comparison {
        title: "Side by side, the same traffic: one link, UDP in single datagrams of 1500 bytes"
            .to_owned(),
        head: vec![
            "what".to_owned(),
            "braid".to_owned(),
            format!("rattan {}", rattan::VERSION),
            "tc tbf (by its own count)".to_owned(),
        ],
        rows,
    };
    run.report.comparisons.push(table);
    Ok(())
}

/// Rate of the kernel's token bucket, which counts Ethernet's header too.
fn token_bucket(run: &Run<'_>, mbps: f64) -> Result<Rate> {
    let shaper = Shaper::start(mbps)?;
    let flood = Flood {
        mbps: mbps * EXCESS,
        segments: 1,
    };
    let time = run.time(8).max(Duration::from_secs(2));
    let (floods, ()) = udp::run(&[shaper.route(flood)?], || {
        std::thread::sleep(time);
        Ok(())
    })?;
    let (sent, got) = &floods["tbf"];
    Ok(Rate::of(*sent, got, time, mbps * 1500.0 / 1514.0))
}
