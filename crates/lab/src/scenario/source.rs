//! A scenario's text and where its traces are, before it is read.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::build;
use super::diagnostic::Diagnostic;
use super::files::Files;
use super::{Overrides, Scenario, shipped};

/// A shipped scenario, or a file.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its text.
    pub text: String,
    /// Its path, or the shipped name.
    pub origin: PathBuf,
    /// Where relative trace paths start; `None`: among the shipped ones.
    dir: Option<PathBuf>,
}

impl Source {
    /// Finds a shipped scenario by name, or reads a file by path.
    ///
    /// # Errors
    /// No such scenario, or the file cannot be read.
    pub fn open(name_or_path: &str) -> Result<Self, Diagnostic> {
        let path = Path::new(name_or_path);
        let looks_like_a_path =
            name_or_path.contains('/') || path.extension().is_some_and(|e| e == "toml");
        if !looks_like_a_path && let Some(s) = shipped::find(name_or_path) {
            return Ok(Self {
                text: s.text.to_owned(),
                origin: PathBuf::from(format!("{name_or_path}.toml")),
                dir: None,
            });
        }
        let text = braid_api::bounded::read_text(path).map_err(|e| Diagnostic {
            file: path.to_owned(),
            at: None,
            message: match e.kind() {
                ErrorKind::NotFound if !looks_like_a_path => shipped::no_such(name_or_path),
                _ => format!("cannot read the scenario: {e}"),
            },
        })?;
        Ok(Self {
            text,
            origin: path.to_owned(),
            dir: Some(path.parent().unwrap_or(Path::new(".")).to_owned()),
        })
    }

    /// Reads `text`, this scenario or a changed form of it; `origin` names it
    /// in errors.
    ///
    /// # Errors
    /// Anything wrong in it: where, what, and what was expected.
    pub fn parse(
        &self,
        text: &str,
        origin: &Path,
        overrides: &Overrides,
    ) -> Result<Scenario, Diagnostic> {
        let files = match &self.dir {
            Some(dir) => Files::In(dir),
            None => Files::Shipped,
        };
        build::parse(text, origin, &files, overrides)
    }

    /// The bytes of a trace that the scenario names; `None` if it cannot be read.
    pub fn trace(&self, name: &str) -> Option<Vec<u8>> {
        match &self.dir {
            Some(dir) => braid_traces::read_bytes(&dir.join(name)).ok(),
            None => shipped::find_trace(name).map(<[u8]>::to_vec),
        }
    }
}
