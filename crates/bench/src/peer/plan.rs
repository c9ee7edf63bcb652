//! Combinations of server and client, and the links between them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use toml::Table;

use crate::text;

/// Variants of `pairs`.
pub(super) const PAIRS: [&str; 3] = ["10/1 + 10/25", "100/5 + 100/20", "300/10 + 80/30"];
/// Congestion controls of the server, on both implementations.
pub(super) const CONGESTION: [&str; 2] = ["cubic", "bbr"];
/// The name that is asked for.
pub(super) const FILE: &str = "file.bin";
/// Length of a download: what the links carry in this time is sent.
const LENGTH: Duration = Duration::from_secs(5);
/// When a download is given up.
const LIMIT: Duration = Duration::from_secs(60);
const PORT: u16 = 4443;

/// An implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Braid,
    Picoquic,
}

impl Who {
    pub(super) const ALL: [Self; 2] = [Self::Braid, Self::Picoquic];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Braid => "Braid",
            Self::Picoquic => "picoquic",
        }
    }
}

/// One download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Combination {
    pub(super) server: Who,
    pub(super) client: Who,
    pub(super) cc: &'static str,
}

/// Every one.
pub(super) fn combinations() -> impl Iterator<Item = Combination> {
    CONGESTION.into_iter().flat_map(|cc| {
        Who::ALL
            .into_iter()
            .flat_map(move |server| Who::ALL.map(|client| Combination { server, client, cc }))
    })
}

impl Combination {
    pub(super) fn has(&self, who: Who) -> bool {
        self.server == who || self.client == who
    }

    pub(super) fn name(&self) -> String {
        let (server, client) = (self.server.name(), self.client.name());
        format!("{server} to {client}, {}", self.cc)
    }
}

/// Where programs and files are.
#[derive(Debug)]
pub(super) struct Places<'a> {
    /// This program.
    pub(super) bench: &'a Path,
    /// `picoquicdemo`.
    pub(super) picoquic: &'a Path,
    /// Holds the file in `www`, the server's certificate and key, and what comes.
    pub(super) dir: &'a Path,
    pub(super) pin: String,
}

fn quoted(path: &Path) -> Result<String> {
    let text = path.to_str().context("a path that is no text")?;
    Ok(format!("'{}'", text.replace('\'', r"'\''")))
}

impl Places<'_> {
    fn server(&self, c: &Combination) -> Result<String> {
        let (dir, cc) = (quoted(self.dir)?, c.cc);
        Ok(match c.server {
            Who::Braid => format!(
                "exec {} __hq serve --at 0.0.0.0:{PORT} --certificate {dir}/cert.pem \
                 --key {dir}/key.pem --cc {cc} {dir}/www",
                quoted(self.bench)?
            ),
            Who::Picoquic => format!(
                "exec {} -p {PORT} -c {dir}/cert.pem -k {dir}/key.pem -a hq-interop -M -G {cc} \
                 -w {dir}/www",
                quoted(self.picoquic)?
            ),
        })
    }

    /// Leaves, in the file `NAME`, its duration in ns and the hash of what came.
    fn client(&self, c: &Combination, name: &str) -> Result<String> {
        let (dir, cc) = (quoted(self.dir)?, c.cc);
        let get = match c.client {
            Who::Braid => format!(
                "{} __hq get --from {{proxy}}:{PORT} --pin {} --cc {cc} --out in/{FILE} {FILE} a b",
                quoted(self.bench)?,
                self.pin
            ),
            // The second path, by its address and the number of its interface.
            Who::Picoquic => format!(
                "b=$(ip -4 -o addr show b | awk '{{split($4, a, \"/\"); \
                 print a[1] \"/\" ($1 + 0)}}'); \
                 cd in && {} -o . -n peer -a hq-interop -M -G {cc} -A \"$b\" {{proxy}} {PORT} /{FILE} && \
                 cd ..",
                quoted(self.picoquic)?
            ),
        };
        Ok(format!(
            "cd {dir} && rm -rf in && mkdir in && t=$(date +%s%N) && {get} && \
             echo $(($(date +%s%N) - t)) $(cat in/*{FILE} | sha256sum) > {name}"
        ))
    }

    /// The scenario of one pair, and how large the file is.
    pub(super) fn scenario(&self, pair: &str, run: u32) -> Result<(String, u64)> {
        let mut table = text::pair(pair, "peer")?;
        table.insert("seed".into(), i64::from(run).into());
        text::set_length(&mut table, Duration::ZERO, LIMIT);
        for c in combinations() {
            let mut traffic = Table::new();
            traffic.insert("kind".into(), "command".into());
            let name = result_name(pair, &c, run);
            traffic.insert("run".into(), self.client(&c, &name)?.into());
            traffic.insert("server".into(), self.server(&c)?.into());
            let mut case = Table::new();
            case.insert("name".into(), c.name().into());
            case.insert("engine".into(), "mptcp".into());
            case.insert("traffic".into(), traffic.into());
            text::push(&mut table, "case", case);
        }
        let text = text::to_text(&table)?;
        let mbps = text::rates(&text::parse(&text)?)
            .iter()
            .map(|(_, r)| r)
            .sum::<f64>();
        Ok((text, (mbps * 1e6 / 8.0 * LENGTH.as_secs_f64()) as u64))
    }
}

/// Name of the file in which a download leaves its result.
pub(super) fn result_name(pair: &str, c: &Combination, run: u32) -> String {
    format!(
        "{}-{}-{run:02}.result",
        text::slug(pair),
        text::slug(&c.name())
    )
}
