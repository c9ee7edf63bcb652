//! Input that `cells`, `capacity` and `plan` have in common: a recording of signals, or
//! a capacity trace, as paths.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use braid_core::units::parse_duration;
use braid_traces::signal::capacity::ShannonFit;
use braid_traces::signal::import::{self, SignalFormat};
use braid_traces::signal::sinr::SinrModel;
use braid_traces::signal::{
    BANDWIDTH_MHZ, CapacityModel, DEFAULT_BANDWIDTH_MHZ, Flaw, Measurements, Paths,
};
use braid_traces::{Format, LineError, Trace};
use clap::Args;

use super::{Failure, warn};

/// Which recording to read, and how it becomes capacity.
#[derive(Debug, Args)]
pub(super) struct Signals {
    /// The recording of signals, or a capacity trace, each link of which is a
    /// cell.
    pub(super) file: PathBuf,
    /// Its format: signal, ucc-5g, or one of a capacity trace [default: what the
    /// content shows]
    #[arg(long)]
    format: Option<String>,
    /// Take the recording's rates instead of its signals
    #[arg(long)]
    rates: bool,
    /// Network load: how much of the time the other cells of a carrier send
    #[arg(long, value_name = "PART", default_value_t = SinrModel::default().network_load)]
    load: f64,
    /// Noise figure of the device in dB
    #[arg(long, value_name = "DB", default_value_t = SinrModel::default().noise_figure_db)]
    noise_figure: f64,
    /// Thermal noise of a subcarrier of 15 kHz in dBm [default: that of 290 K, -132.2]
    #[arg(long, value_name = "DBM", allow_negative_numbers = true)]
    noise: Option<f64>,
    /// Constants of the capacity formula: how much of Shannon's capacity is used,
    /// which part of the SINR counts, the best efficiency in bit/s/Hz
    #[arg(long, value_name = "C,GAMMA,C15", default_value_t = ShannonFit::default())]
    fit: ShannonFit,
    /// Bandwidth of a carrier, before what the file says; without a carrier: of
    /// those of which it says nothing [default: 20]; may be repeated
    #[arg(long, value_name = "[CARRIER=]MHZ")]
    bandwidth: Vec<String>,
    /// Take the device's own SINR where the file has it
    #[arg(long)]
    measured_sinr: bool,
    /// Begin here (in the segment), in whole seconds
    #[arg(long, value_name = "TIME", default_value = "0 s", value_parser = whole_seconds)]
    start: Duration,
    /// Take this much, in whole seconds [default: all there is]
    #[arg(long, value_name = "TIME", value_parser = whole_seconds)]
    length: Option<Duration>,
    /// Take only this segment of a drive, its parts joined
    #[arg(long, value_name = "NAME")]
    segment: Option<String>,
}

/// A time that falls between no two samples: those are a second apart.
fn whole_seconds(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|e| e.to_string())?;
    match time.subsec_nanos() {
        0 => Ok(time),
        _ => Err("expected whole seconds".to_owned()),
    }
}

/// A recording as paths.
pub(super) struct Recording {
    pub(super) paths: Paths,
    pub(super) flaws: Vec<Flaw>,
    /// Flaws of a capacity trace, and notes.
    pub(super) notes: Vec<String>,
    /// Kind of the file.
    pub(super) kind: String,
}

impl Signals {
    pub(super) fn read(&self) -> Result<Recording, Failure> {
        let model = self.model()?;
        let (signal, rates) = self.formats()?;
        let detected = || {
            let read = std::fs::File::open(&self.file);
            let mut head = Vec::new();
            let opened = read.and_then(|f| {
                use std::io::Read as _;
                f.take(1 << 16).read_to_end(&mut head)
            });
            opened.ok()?;
            SignalFormat::detect(&head)
        };
        let signal = match (signal, rates) {
            (Some(s), _) => Some(s),
            (None, Some(_)) => None,
            (None, None) if self.rates => None,
            (None, None) => detected(),
        };
        let mut recording = match signal {
            Some(format) => {
                let m = import::read(&self.file, Some(format))?;
                self.require_carriers(&m)?;
                Recording {
                    paths: m.paths(&model),
                    flaws: m.flaws,
                    notes: m.notes,
                    kind: format.describe().to_owned(),
                }
            }
            None => {
                let t = Trace::read(&self.file, rates)?;
                let problems = t.problems.iter().map(ToString::to_string);
                Recording {
                    paths: Paths::from_trace(&t).map_err(|e| self.error(e))?,
                    flaws: Vec::new(),
                    notes: problems.chain(t.notes.iter().cloned()).collect(),
                    kind: t.format.describe().to_owned(),
                }
            }
        };
        let paths = &mut recording.paths;
        if let Some(name) = &self.segment {
            *paths = paths.segment(name).map_err(|e| self.error(e))?;
        }
        if self.start != Duration::ZERO || self.length.is_some() {
            let part = paths.part(self.start, self.length);
            *paths = part.map_err(|e| self.error(e))?;
        }
        Ok(recording)
    }

    /// The format of signals, or that of rates, that was asked for.
    fn formats(&self) -> Result<(Option<SignalFormat>, Option<Format>), Failure> {
        let Some(name) = &self.format else {
            return Ok((None, None));
        };
        let signal = name.parse::<SignalFormat>().ok().filter(|_| !self.rates);
        let rates = name.parse::<Format>();
        match (signal, rates) {
            (Some(s), _) => Ok((Some(s), None)),
            (None, Ok(f)) => Ok((None, Some(f))),
            (None, Err(_)) => {
                let names = Format::ALL.map(Format::name).join(", ");
                Err(Failure::Usage(format!(
                    "--format {name}: expected signal, {names}"
                )))
            }
        }
    }

    fn model(&self) -> Result<CapacityModel, Failure> {
        let mut model = CapacityModel {
            sinr: SinrModel {
                network_load: self.load,
                noise_figure_db: self.noise_figure,
                thermal_dbm: self.noise.unwrap_or(SinrModel::default().thermal_dbm),
            },
            fit: self.fit,
            measured_sinr: self.measured_sinr,
            default_bandwidth_mhz: DEFAULT_BANDWIDTH_MHZ,
            ..CapacityModel::default()
        };
        model.sinr.check().map_err(Failure::Usage)?;
        for b in &self.bandwidth {
            let (carrier, mhz) = b
                .rsplit_once('=')
                .map_or((None, &**b), |(c, m)| (Some(c), m));
            let number = mhz.parse().ok().filter(|m| BANDWIDTH_MHZ.contains(m));
            let mhz = number.ok_or_else(|| {
                Failure::Usage(format!("--bandwidth {b}: expected MHz, 0.1 to 400"))
            })?;
            match carrier {
                Some("") => {
                    return Err(Failure::Usage(format!(
                        "--bandwidth {b}: expected the name of a carrier before the ="
                    )));
                }
                Some(c) => model.bandwidths.push((c.to_owned(), mhz)),
                None => model.default_bandwidth_mhz = mhz,
            }
        }
        Ok(model)
    }

    /// Refuses bandwidths of carriers that the recording does not have.
    fn require_carriers(&self, m: &Measurements) -> Result<(), Failure> {
        let named = self.bandwidth.iter().filter_map(|b| b.rsplit_once('='));
        for (name, _) in named {
            if !m.carriers.iter().any(|c| c.name == name) {
                let there: Vec<&str> = m.carriers.iter().map(|c| &*c.name).collect();
                return Err(self.whole(format!(
                    "no carrier \"{name}\" (--bandwidth): there are {}",
                    there.join(", ")
                )));
            }
        }
        Ok(())
    }

    /// An error about this file.
    pub(super) fn error(&self, e: LineError) -> Failure {
        Failure::Trace(e.in_file(&self.file))
    }

    /// An error about the whole of this file.
    pub(super) fn whole(&self, msg: String) -> Failure {
        self.error(LineError { line: None, msg })
    }

    /// The name of the file without its folder.
    pub(super) fn name(&self) -> String {
        super::name(&self.file)
    }

    /// Warns of what was found in the recording.
    pub(super) fn warn(&self, recording: &Recording) {
        warn(&self.file, &recording.flaws);
        warn(&self.file, &recording.notes);
    }

    /// How capacities came about, for comments in files.
    pub(super) fn provenance(&self, recording: &Recording) -> Vec<String> {
        let mut model = format!("from {} ({})", self.name(), recording.kind);
        let _ = write!(
            model,
            ", network load {}, noise figure {} dB",
            self.load, self.noise_figure
        );
        if let Some(dbm) = self.noise {
            let _ = write!(model, ", noise {dbm} dBm");
        }
        if self.fit != ShannonFit::default() {
            let _ = write!(model, ", fit {}", self.fit);
        }
        if !self.bandwidth.is_empty() {
            let _ = write!(model, ", bandwidth {}", self.bandwidth.join(", "));
        }
        if self.measured_sinr {
            model += ", the device's SINR where measured";
        }
        let seconds = self.start.as_secs();
        if seconds > 0 || self.length.is_some() || self.segment.is_some() {
            let segment = self.segment.as_deref().unwrap_or("all");
            let _ = write!(model, ", from second {seconds} on, segment {segment}");
        }
        let made = format!("made by braid {}", env!("CARGO_PKG_VERSION"));
        let mut lines = vec![made, model];
        lines.extend(recording.flaws.iter().map(ToString::to_string));
        lines.extend(recording.notes.iter().cloned());
        lines
    }
}
