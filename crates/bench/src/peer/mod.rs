//! Multipath QUIC with another implementation of the draft: picoquic's demonstration program,
//! which whoever measures has built. Each end serves each; files are compared by hash.

pub(crate) mod hq;
mod judge;
mod plan;

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use braid_mpquic::tls::Identity;
use braid_netns::error::LabError;
use clap::Args;
use sha2::{Digest, Sha256};

use crate::pattern::{BLOCK, Pattern};
use crate::runs::{RunArgs, Runs};
use judge::Download;
use plan::{FILE, PAIRS, Places};

/// How to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The program `picoquicdemo`, of the project private-octopus/picoquic
    #[arg(long)]
    picoquic: PathBuf,
    /// How often each run is made
    #[arg(long, default_value_t = FULL, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    repeat: u32,
    #[command(flatten)]
    runs: RunArgs,
}

/// Repeats that the bars ask for.
const FULL: u32 = 5;

/// Runs each end as the server of each; false if a bar was missed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let picoquic = fs::canonicalize(&options.picoquic).map_err(|e| {
        let what = format!("there is no {}: {e}", options.picoquic.display());
        LabError::missing(what, "build picoquic, and name its program with --picoquic")
    })?;
    let mut runs = Runs::new(&options.runs, "peer")?;
    let dir = fs::canonicalize(runs.dir()).context("find the folder of the runs")?;
    let (certificate, key) = (dir.join("cert.pem"), dir.join("key.pem"));
    let identity = match certificate.exists() && key.exists() {
        true => Identity::load(&certificate, &key)?,
        false => Identity::create("peer", &certificate, &key)?,
    };
    let places = Places {
        bench: &std::env::current_exe().context("find this program")?,
        picoquic: &picoquic,
        dir: &dir,
        pin: identity.pin().to_string(),
    };
    let total = options.repeat as usize * PAIRS.len();
    let mut all = Vec::new();
    for pair in PAIRS {
        let (_, bytes) = places.scenario(pair, 1)?;
        let hash = make_file(&dir.join("www"), bytes)?;
        for n in 1..=options.repeat {
            let (scenario, _) = places.scenario(pair, n)?;
            let name = format!("{}-{n:02}", crate::text::slug(pair));
            let cases = runs.piece(&name, &scenario, total)?.summary.cases;
            for (c, case) in plan::combinations().zip(&cases) {
                let result = dir.join(plan::result_name(pair, &c, n));
                all.push(Download::read(pair, c, case, bytes, &hash, &result));
            }
        }
    }
    let full = options.repeat >= FULL;
    runs.finish(judge::judge(&all), "peer", full)
}

/// Makes the file that is served, and says its hash.
fn make_file(dir: &Path, bytes: u64) -> Result<String> {
    let attempted = || format!("make the file to serve in {}", dir.display());
    fs::create_dir_all(dir).with_context(attempted)?;
    let file = fs::File::create(dir.join(FILE)).with_context(attempted)?;
    let (mut out, mut hash) = (BufWriter::new(file), Sha256::new());
    let (pattern, mut block) = (Pattern::new(), vec![0; BLOCK]);
    let mut left = usize::try_from(bytes).context("a file that large")?;
    for number in 0.. {
        let n = left.min(BLOCK);
        if n == 0 {
            break;
        }
        pattern.fill(number, &mut block);
        out.write_all(&block[..n]).with_context(attempted)?;
        hash.update(&block[..n]);
        left -= n;
    }
    out.flush().with_context(attempted)?;
    let digest = hash.finalize();
    Ok(digest.iter().map(|b| format!("{b:02x}")).collect())
}
