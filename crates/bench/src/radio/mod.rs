//! The radio emulator against its bars.

mod carry;
mod compare;
mod delay;
mod loss;
mod memory;
mod rates;
mod rattan;
mod shaper;
mod unshaped;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use braid_core::Rate;
use braid_radio::emulator::api::Stats;
use braid_radio::model::{DelaySpec, LinkSpec, QueueSpec, RateSpec};
use clap::Args;

use crate::machine;
use crate::report::{Report, write_section};
use crate::udp::Floods;

/// How to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// A tenth of the time: shows that everything runs; the numbers are rough
    #[arg(long)]
    quick: bool,
    /// Ten minutes more at full load, for the memory
    #[arg(long)]
    long: bool,
    /// Leave out what is not ours (rattan, tc)
    #[arg(long)]
    alone: bool,
    /// Only these parts: rates, delay, loss, unshaped, carry, memory, compare
    #[arg(long, value_delimiter = ',', value_parser = PARTS)]
    only: Vec<String>,
    /// Where the results go, between the comments bench:radio; not with --quick or --only
    #[arg(long, default_value = "docs/performance.md")]
    docs: PathBuf,
    /// Where other emulators are installed to
    #[arg(long, default_value = ".build/tools")]
    tools: PathBuf,
}

const PARTS: [&str; 7] = [
    "rates", "delay", "loss", "unshaped", "carry", "memory", "compare",
];

/// A run of the benchmark.
pub(crate) struct Run<'a> {
    pub(crate) options: &'a Options,
    pub(crate) report: Report,
    /// Bytes of payload that arrived, all of them checked.
    pub(crate) carried: u64,
    /// Datagrams or pieces of streams in which a byte was wrong.
    pub(crate) bad: u64,
    /// Wake-ups of the emulator more than 1 ms late, and the latest.
    pub(crate) late_wakes: u64,
    pub(crate) latest_us: f64,
}

impl Run<'_> {
    /// How long to measure where a full run takes `seconds`.
    pub(crate) fn time(&self, seconds: u64) -> Duration {
        Duration::from_millis(if self.options.quick {
            seconds * 150
        } else {
            seconds * 1000
        })
    }

    /// Counts what floods carried.
    pub(crate) fn count(&mut self, floods: &Floods) {
        for (_, got) in floods.values() {
            self.carried += got.datagrams * crate::udp::FULL as u64;
            self.bad += got.bad;
        }
    }

    /// Notes the host's pauses that an emulator saw.
    pub(crate) fn pauses(&mut self, part: &str, stats: &Stats) {
        let l = &stats.lateness;
        self.late_wakes += l.late_wakes;
        self.latest_us = self.latest_us.max(l.max_wake_us);
        if l.late_wakes > 0 {
            let worst = l.max_wake_us / 1e3;
            self.report.note(format!(
                "{part}: the host paused {} times for more than 1 ms, at worst {worst:.1} ms",
                l.late_wakes
            ));
        }
    }

    fn wants(&self, part: &str) -> bool {
        let only = &self.options.only;
        only.is_empty() || only.iter().any(|o| o == part)
    }
}

/// A link of `mbps` at the IP layer.
pub(crate) fn shaped(mbps: f64, delay: Duration) -> LinkSpec {
    LinkSpec {
        rate: RateSpec::Constant(Rate::from_mbps(mbps)),
        delay: DelaySpec::Constant(delay),
        queue: QueueSpec::Time(Duration::from_millis(50)),
        ..LinkSpec::default()
    }
}

/// A link without a rate.
pub(crate) fn unlimited(delay: Duration) -> LinkSpec {
    LinkSpec {
        delay: DelaySpec::Constant(delay),
        queue: QueueSpec::Packets(1_000_000),
        ..LinkSpec::default()
    }
}

/// A part of the benchmark.
type Part = fn(&mut Run<'_>) -> Result<()>;

/// Runs the benchmark; false if a bar was missed.
///
/// # Errors
/// What kept it from measuring.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let began = std::time::Instant::now();
    let mut run = Run {
        options,
        report: Report::default(),
        carried: 0,
        bad: 0,
        late_wakes: 0,
        latest_us: 0.0,
    };
    let load = machine::load();
    if load > 0.5 {
        run.report.note(format!(
            "the machine was not idle at the start: {load:.2} running tasks"
        ));
    }
    let parts: [(&str, Part); 7] = [
        ("rates", rates::measure),
        ("delay", delay::measure),
        ("loss", loss::measure),
        ("unshaped", unshaped::measure),
        ("compare", compare::measure),
        ("memory", memory::measure),
        ("carry", carry::measure),
    ];
    for (name, part) in parts {
        let extra = (name == "memory" && !options.long) || (name == "compare" && options.alone);
        let asked_for = !options.only.is_empty();
        if run.wants(name) && (!extra || asked_for) {
            eprintln!("-- {name}");
            part(&mut run)?;
        }
    }
    let paused = format!(
        "host pauses over all parts: {} wake-ups more than 1 ms late, the latest by {:.2} ms",
        run.late_wakes,
        run.latest_us / 1e3
    );
    run.report.note(paused);
    println!("{}", run.report.terminal());
    if !options.quick && options.only.is_empty() {
        let command: Vec<String> = std::env::args().skip(1).collect();
        let circumstances = [
            format!("{}, in {:.0} s", date(), began.elapsed().as_secs_f64()),
            format!(
                "`cargo run --release -p braid-bench -- {}`",
                command.join(" ")
            ),
            machine::describe(),
        ];
        write_section(
            &options.docs,
            "bench:radio",
            &run.report.markdown(&circumstances),
        )?;
    }
    Ok(run.report.all_met())
}

fn date() -> String {
    let now = jiff::Timestamp::now().to_string();
    now.split('T').next().unwrap_or_default().to_owned()
}
