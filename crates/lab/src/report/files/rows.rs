//! CSV files that grow during a run: each append is whole rows, on disk at
//! once, so that a crash keeps what was measured.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::FilesError;

/// A CSV file of rows of `T`, open for appending.
#[derive(Debug)]
pub struct Rows<T> {
    file: File,
    path: PathBuf,
    /// Length up to the last whole row.
    len: u64,
    row: PhantomData<fn(&T)>,
}

impl<T: Serialize + Default> Rows<T> {
    /// Starts the file anew with its header line.
    ///
    /// # Errors
    /// It cannot be created, or there is no room for the header.
    pub(crate) fn create(path: &Path) -> Result<Self, FilesError> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .map_err(|e| FilesError::io("creating", path, 0, e))?;
        let mut rows = Self {
            file,
            path: path.to_owned(),
            len: 0,
            row: PhantomData,
        };
        // The header comes with a first row; an empty file shall have it too.
        let mut text = encode(&[T::default()], true, path)?;
        let end = text.iter().position(|&b| b == b'\n').map_or(0, |i| i + 1);
        text.truncate(end);
        rows.put(&text)?;
        Ok(rows)
    }

    /// Appends `rows`: all of them, or, where the disk is full, none.
    ///
    /// # Errors
    /// [`FilesError::Full`] or what else the operating system said; the file
    /// then ends with the last whole row.
    pub fn append(&mut self, rows: &[T]) -> Result<(), FilesError> {
        let text = encode(rows, false, &self.path)?;
        self.put(&text)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn put(&mut self, text: &[u8]) -> Result<(), FilesError> {
        match self.file.write_all(text) {
            Ok(()) => {
                self.len += text.len() as u64;
                Ok(())
            }
            Err(e) => {
                // A torn row would make the file unreadable; if even this
                // fails, the reader leaves the torn row out.
                let _ = self.file.set_len(self.len);
                let _ = std::io::Seek::seek(&mut self.file, std::io::SeekFrom::Start(self.len));
                Err(FilesError::io("writing", &self.path, text.len() as u64, e))
            }
        }
    }
}

fn encode<T: Serialize>(rows: &[T], header: bool, path: &Path) -> Result<Vec<u8>, FilesError> {
    let mut w = csv::WriterBuilder::new()
        .has_headers(header)
        .from_writer(Vec::new());
    let bad = |what: String| FilesError::Malformed {
        file: path.to_owned(),
        line: None,
        what,
    };
    for r in rows {
        w.serialize(r).map_err(|e| bad(e.to_string()))?;
    }
    w.into_inner().map_err(|e| bad(e.to_string()))
}

/// Reads all rows; a last row cut short by a crash is left out and reported as
/// `true`. A file that does not exist has no rows.
///
/// # Errors
/// The file cannot be read, or a row other than the last is not a `T`.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<(Vec<T>, bool), FilesError> {
    let mut text = Vec::new();
    match File::open(path) {
        Ok(mut f) => f
            .read_to_end(&mut text)
            .map_err(|e| FilesError::io("reading", path, 0, e))?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok((Vec::new(), false)),
        Err(e) => return Err(FilesError::io("opening", path, 0, e)),
    };
    let unended = text.last().is_some_and(|&b| b != b'\n');
    let mut rows = Vec::new();
    let mut failed: Option<csv::Error> = None;
    for r in csv::Reader::from_reader(text.as_slice()).into_deserialize() {
        if let Some(e) = failed {
            return Err(malformed(path, &e));
        }
        match r {
            Ok(row) => {
                rows.push(row);
                failed = None;
            }
            Err(e) => failed = Some(e),
        }
    }
    let torn = match failed {
        Some(_) => true,
        // A number cut short is still a number: a row without its line end is
        // never trusted.
        None if unended => rows.pop().is_some(),
        None => false,
    };
    Ok((rows, torn))
}

fn malformed(path: &Path, e: &csv::Error) -> FilesError {
    FilesError::Malformed {
        file: path.to_owned(),
        line: e.position().map(csv::Position::line),
        what: e.to_string(),
    }
}
