//! `braid rules export` and `import`: rules and classes as ATSSS rules of a core network, and back.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use braid_api::atsss::{Names, Remark, export, import};
use braid_api::config::{Config, DeviceAccess, Format};
use braid_core::atsss::{Container, Form, MAX_BYTES};
use braid_netns::error::LabError;
use clap::Args;
use serde_json::json;

use crate::watch::print;

/// Name that stands for standard input.
const STDIN: &str = "-";
/// Octets of a file at most that are read as digits: each in two, with room between them.
const MAX_TEXT: u64 = 8 * MAX_BYTES as u64;

/// `braid rules export`.
#[derive(Clone, Debug, Args)]
pub(super) struct ExportArgs {
    /// Configuration of the device
    #[arg(value_name = "FILE")]
    config: PathBuf,
    /// Write the octets to a file, instead of hexadecimal digits to standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Access that stands for the 3GPP access; the first of kind 5g or lte unless given
    #[arg(long = "3gpp", value_name = "NAME")]
    threegpp: Option<String>,
    /// Access that stands for the non-3GPP access; the first of another kind unless given
    #[arg(long = "non-3gpp", value_name = "NAME")]
    non_threegpp: Option<String>,
    /// Give each rule an identity, as later versions of TS 24.193 have it
    #[arg(long)]
    numbered: bool,
}

/// `braid rules import`.
#[derive(Clone, Debug, Args)]
pub(super) struct ImportArgs {
    /// ATSSS container: its octets, or hexadecimal digits; - reads standard input
    #[arg(value_name = "FILE")]
    container: PathBuf,
    /// Name of the access that stands for the 3GPP access
    #[arg(long = "3gpp", value_name = "NAME", default_value = "nr")]
    threegpp: String,
    /// Name of the access that stands for the non-3GPP access
    #[arg(long = "non-3gpp", value_name = "NAME", default_value = "wifi")]
    non_threegpp: String,
}

impl ExportArgs {
    /// Writes the rules of a configuration as an ATSSS container.
    pub(super) fn run(&self, json: bool) -> Result<ExitCode> {
        let file = &self.config;
        let text = fs::read_to_string(file)
            .map_err(|e| bad(format!("read the configuration {}: {e}", file.display())))?;
        let config = Config::<DeviceAccess>::parse(&text, Format::Toml)
            .map_err(|p| bad(p.in_file(file.clone(), &text).to_string()))?;
        let at = |what: String| bad(format!("{}: {what}", file.display()));
        let (threegpp, other) = (self.threegpp.as_deref(), self.non_threegpp.as_deref());
        let names = Names::choose(&config, threegpp, other).map_err(at)?;
        let exported = export(&config, &names, self.numbered).map_err(at)?;
        let form = Form {
            numbered: self.numbered,
            inclusive: self.numbered,
        };
        let octets = exported.container.encode(form);
        let octets = octets.map_err(|e| at(e.to_string()))?;
        say(&exported.remarks, json);
        if let Some(out) = &self.out {
            fs::write(out, &octets).with_context(|| format!("write {}", out.display()))?;
        }
        let digits: String = octets.iter().map(|o| format!("{o:02x}")).collect();
        if json {
            let text = json!({
                "octets": digits,
                "rules": exported.container.rules().len(),
                "remarks": texts(&exported.remarks),
            });
            print(&format!("{text:#}\n"))?;
        } else if self.out.is_none() {
            print(&format!("{digits}\n"))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl ImportArgs {
    /// Writes the rules of an ATSSS container as tables of a configuration.
    pub(super) fn run(&self, json: bool) -> Result<ExitCode> {
        let file = &self.container;
        let at = |what: String| bad(format!("{}: {what}", file.display()));
        let names = Names {
            threegpp: self.threegpp.clone(),
            non_threegpp: self.non_threegpp.clone(),
        };
        if names.threegpp == names.non_threegpp {
            return Err(bad("--3gpp and --non-3gpp name the same access".to_owned()));
        }
        let read = read(file).map_err(|e| at(format!("read the container: {e}")))?;
        let octets = octets(&read).map_err(at)?;
        let (container, _) = Container::decode(&octets).map_err(|e| at(e.to_string()))?;
        let imported = import(&container, &names);
        say(&imported.remarks, json);
        let text = match json {
            false => imported.toml().context("write the rules as TOML")?,
            true => {
                let mut text = serde_json::to_value(&imported)?;
                text["remarks"] = json!(texts(&imported.remarks));
                format!("{text:#}\n")
            }
        };
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn bad(what: String) -> anyhow::Error {
    LabError::BadInput(what).into()
}

/// Says what has no counterpart, where standard output does not.
fn say(remarks: &[Remark], json: bool) {
    for remark in remarks.iter().filter(|_| !json) {
        braid_api::note!("braid: {remark}");
    }
}

fn texts(remarks: &[Remark]) -> Vec<String> {
    remarks.iter().map(ToString::to_string).collect()
}

/// Reads a file, or standard input, as far as a container may be long.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    match file.as_os_str() == STDIN {
        true => io::stdin().take(MAX_TEXT).read_to_end(&mut read)?,
        false => fs::File::open(file)?
            .take(MAX_TEXT)
            .read_to_end(&mut read)?,
    };
    Ok(read)
}

/// Returns the octets of a container: those that are read, or that text has as hexadecimal digits.
fn octets(read: &[u8]) -> Result<Vec<u8>, String> {
    let is_text = |o: &u8| o.is_ascii_graphic() || o.is_ascii_whitespace();
    // The first octet of a container is no letter or digit: parameters have low numbers.
    if read.is_empty() || !read.iter().all(is_text) {
        return Ok(read.to_vec());
    }
    let mut digits = Vec::new();
    for (i, o) in read.iter().enumerate() {
        match char::from(*o).to_digit(16) {
            // A digit of base 16 fits.
            Some(digit) => digits.push(digit as u8),
            None if o.is_ascii_whitespace() => {}
            None => {
                return Err(format!(
                    "byte {i}: '{}' is no hexadecimal digit",
                    char::from(*o).escape_default()
                ));
            }
        }
    }
    let (pairs, []) = digits.as_chunks::<2>() else {
        return Err(format!(
            "byte {}: a digit lacks, each octet has two",
            read.len()
        ));
    };
    Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_read_as_they_are_or_as_digits() {
        assert_eq!(octets(&[1, 0, 0]), Ok(vec![1, 0, 0]));
        assert_eq!(octets(b"01 00\n00\n"), Ok(vec![1, 0, 0]));
        assert_eq!(octets(b"0aFf"), Ok(vec![0x0a, 0xff]));
        assert_eq!(octets(b""), Ok(vec![]));
        let e = octets(b"01 0g").unwrap_err();
        assert_eq!(e, "byte 4: 'g' is no hexadecimal digit");
        let e = octets(b"01 0").unwrap_err();
        assert_eq!(e, "byte 4: a digit lacks, each octet has two");
    }
}
