//! Journal: every observation and decision of a control loop, one JSON object a line.
//!
//! ```text
//! {"header":{"version":1,"program":"braid 0.1.0","role":"device","engine":"mptcp","seed":7}}
//! {"observation":{"at_ns":0,"what":{"configuration":{...}}}}
//! {"decision":{"at_ns":0,"policy":"capacity","steering":{...}}}
//! ```
//!
//! Entries stand in the order in which the loop saw them. A field or a kind that this version
//! does not know is an error with its line: a replay that leaves something out would decide
//! otherwise and not say so.

use std::io::{self, BufRead, Read, Write};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::control::{Decision, Observation};
use crate::{Engine, Role};

/// Version of the format. Raise it when an old reader would misread a new journal; a new kind
/// of observation does not need it, because readers refuse what they do not know.
pub const VERSION: u32 = 1;

/// Longest line, bytes. The longest observation, a configuration, takes under 1 kB per access.
pub const MAX_LINE: usize = 1 << 20;

/// First line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Version of the format.
    pub version: u32,
    /// Program that wrote it, with its version.
    pub program: String,
    /// End at which the loop ran.
    pub role: Role,
    /// Engine that applied the decisions.
    pub engine: Engine,
    /// Seed of the loop.
    pub seed: u64,
}

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entry {
    /// First line.
    Header(Header),
    /// Observation that the loop took in.
    Observation(Observation),
    /// Decision that the loop took.
    Decision(Decision),
}

/// Error: a journal that cannot be read.
#[derive(Debug, Error)]
#[error("line {line}{}: {problem}", column.map(|c| format!(", column {c}")).unwrap_or_default())]
pub struct JournalError {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1; absent where the whole line is meant.
    pub column: Option<usize>,
    /// Reason.
    #[source]
    pub problem: Problem,
}

/// Reason why a line of a journal cannot be read.
#[derive(Debug, Error)]
pub enum Problem {
    /// Reading failed.
    #[error("reading failed: {0}")]
    Io(#[from] io::Error),
    /// The line is no entry of this version.
    #[error("not an entry that this version of Braid knows: {0}")]
    Entry(String),
    /// The journal does not begin with a header.
    #[error("expected the header of a journal, {{\"header\":{{\"version\":{VERSION},...}}}}")]
    NoHeader,
    /// A second header: two journals were joined.
    #[error("a second header: replay one journal at a time")]
    SecondHeader,
    /// The journal has another version.
    #[error("version {0} of the format, expected {VERSION}: read it with the Braid that wrote it")]
    Version(u32),
    /// The line does not end.
    #[error("the line has no end: its writer was cut off; remove it to read the rest")]
    Truncated,
    /// The line is longer than any entry.
    #[error("longer than {MAX_LINE} bytes: this is no journal")]
    TooLong,
}

/// Writer of a journal.
#[derive(Debug)]
pub struct Writer<W: Write> {
    output: W,
}

impl<W: Write> Writer<W> {
    /// Begins a journal: writes the header.
    ///
    /// # Errors
    /// Writing fails.
    pub fn new(output: W, header: Header) -> io::Result<Self> {
        let mut writer = Self { output };
        writer.write(&Entry::Header(header))?;
        Ok(writer)
    }

    /// Writes an observation.
    ///
    /// # Errors
    /// Writing fails.
    pub fn observation(&mut self, observation: Observation) -> io::Result<()> {
        self.write(&Entry::Observation(observation))
    }

    /// Writes a decision.
    ///
    /// # Errors
    /// Writing fails.
    pub fn decision(&mut self, decision: Decision) -> io::Result<()> {
        self.write(&Entry::Decision(decision))
    }

    /// Writes the whole line in one call, so that a process that is killed leaves whole lines
    /// where the output does not buffer.
    fn write(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        self.output.write_all(&line)
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// Flushing fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Returns the output.
    pub fn output(&self) -> &W {
        &self.output
    }

    /// Flushes and returns the output.
    ///
    /// # Errors
    /// Flushing fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }
}

/// Reader of a journal: its entries after the header, in order. It ends after the first error.
#[derive(Debug)]
pub struct Reader<R: BufRead> {
    input: R,
    line: usize,
    header: Header,
    failed: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// No header, another version, or reading fails.
    pub fn new(mut input: R) -> Result<Self, JournalError> {
        let at = |problem| JournalError {
            line: 1,
            column: None,
            problem,
        };
        let text = read_line(&mut input).map_err(at)?;
        let text = text.ok_or_else(|| at(Problem::NoHeader))?;
        // A later version may have other fields, and its number is what its reader must know.
        let version = serde_json::from_slice::<serde_json::Value>(&text).ok();
        let version = version.and_then(|v| v["header"]["version"].as_u64());
        match version.map(|v| u32::try_from(v).unwrap_or(u32::MAX)) {
            None => return Err(at(Problem::NoHeader)),
            Some(VERSION) => {}
            Some(other) => return Err(at(Problem::Version(other))),
        }
        match parse(&text, 1)? {
            Entry::Header(header) => Ok(Self {
                input,
                line: 1,
                header,
                failed: false,
            }),
            _ => Err(at(Problem::NoHeader)),
        }
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    fn read(&mut self) -> Result<Option<Entry>, JournalError> {
        self.line += 1;
        let line = self.line;
        let at = |problem| JournalError {
            line,
            column: None,
            problem,
        };
        match read_line(&mut self.input).map_err(at)? {
            None => Ok(None),
            Some(text) => match parse(&text, line)? {
                Entry::Header(_) => Err(at(Problem::SecondHeader)),
                entry => Ok(Some(entry)),
            },
        }
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Entry, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let read = self.read();
        self.failed = read.is_err();
        read.transpose()
    }
}

/// Reads a line without its end; `None` at the end of the input.
fn read_line(input: &mut impl BufRead) -> Result<Option<Vec<u8>>, Problem> {
    let mut text = Vec::new();
    let limit = MAX_LINE as u64 + 1;
    input.by_ref().take(limit).read_until(b'\n', &mut text)?;
    match text.last() {
        None => Ok(None),
        Some(b'\n') => {
            text.pop();
            Ok(Some(text))
        }
        Some(_) if text.len() > MAX_LINE => Err(Problem::TooLong),
        Some(_) => Err(Problem::Truncated),
    }
}

fn parse(text: &[u8], line: usize) -> Result<Entry, JournalError> {
    serde_json::from_slice(text).map_err(|e| {
        // Its own place is within the line.
        let place = format!(" at line {} column {}", e.line(), e.column());
        let message = e.to_string();
        JournalError {
            line,
            column: Some(e.column()),
            problem: Problem::Entry(message.strip_suffix(&place).unwrap_or(&message).to_owned()),
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::control::tests::{decision, observation};

    fn header() -> Header {
        Header {
            version: VERSION,
            program: "braid 0.1.0".to_owned(),
            role: Role::Device,
            engine: Engine::Mptcp,
            seed: 7,
        }
    }

    fn written(entries: &[Entry]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), header()).unwrap();
        entries.iter().for_each(|e| writer.write(e).unwrap());
        writer.finish().unwrap()
    }

    fn error(text: &[u8]) -> JournalError {
        let read = |reader: Reader<_>| reader.collect::<Result<Vec<_>, _>>();
        Reader::new(text).and_then(read).unwrap_err()
    }

    fn entry() -> impl Strategy<Value = Entry> {
        prop_oneof![
            observation().prop_map(Entry::Observation),
            decision().prop_map(Entry::Decision),
        ]
    }

    proptest! {
        #[test]
        fn journals_round_trip(entries in prop::collection::vec(entry(), 0..8)) {
            let text = written(&entries);
            prop_assert_eq!(text.iter().filter(|b| **b == b'\n').count(), entries.len() + 1);
            let reader = Reader::new(&text[..]).unwrap();
            prop_assert_eq!(reader.header(), &header());
            let read: Vec<Entry> = reader.map(Result::unwrap).collect();
            prop_assert_eq!(written(&read), text);
            prop_assert_eq!(read, entries);
        }

        #[test]
        fn never_panics(noise in prop::collection::vec(any::<u8>(), 0..200)) {
            let text = [written(&[]), noise.clone()].concat();
            let read = Reader::new(&text[..]).unwrap().count();
            prop_assert!(read <= noise.len());
            let _ = Reader::new(&noise[..]);
        }

        #[test]
        fn a_journal_that_was_cut_off_says_so(o in observation(), cut in 1usize..20) {
            let text = written(&[Entry::Observation(o)]);
            let cut = &text[..text.len() - cut];
            let error = error(cut);
            prop_assert_eq!(error.line, 2);
            prop_assert!(matches!(error.problem, Problem::Truncated));
        }
    }

    #[test]
    fn errors_say_where_and_what() {
        let text = written(&[]);
        let with = |line: &str| [&text[..], line.as_bytes(), b"\n"].concat();
        let kind = with(r#"{"observation":{"at_ns":1,"what":{"radio-report":{"rsrp_dbm":-90}}}}"#);
        let message = error(&kind).to_string();
        let known = "line 2, column 48: not an entry that this version of Braid knows: \
            unknown variant `radio-report`, expected one of `configuration`, ";
        assert!(message.starts_with(known), "{message}");
        assert!(!message.contains("at line"), "{message}");
        assert!(matches!(error(b"").problem, Problem::NoHeader));
        assert!(matches!(error(b"{}\n").problem, Problem::NoHeader));
        let second = [written(&[]), written(&[])].concat();
        assert_eq!(
            error(&second).to_string(),
            "line 2: a second header: replay one journal at a time"
        );
        let next = br#"{"header":{"version":2,"wall_clock":"x"}}"#;
        let next = error(&[next, &b"\n"[..]].concat()).to_string();
        assert!(
            next.contains("version 2 of the format, expected 1"),
            "{next}"
        );
        let long = with(&"x".repeat(MAX_LINE + 1));
        assert!(matches!(error(&long).problem, Problem::TooLong));
    }
}
