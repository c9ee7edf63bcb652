//! Reads of files that a user names, up to a size that such a file never has: what is named by
//! mistake may never end, as `/dev/zero`.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes of a configuration, a scenario, a campaign, a key or certificates, at most.
pub const MAX_TEXT: u64 = 16 << 20;

/// Reads a file whole.
///
/// # Errors
/// It cannot be read, or has more than `most` bytes ([`io::ErrorKind::FileTooLarge`]).
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let what = format!("it is too large: expected at most {} MiB", most >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    Ok(bytes)
}

/// Reads a file of at most [`MAX_TEXT`] bytes whole.
///
/// # Errors
/// As [`read`]; or it is no UTF-8 ([`io::ErrorKind::InvalidData`]).
pub fn read_text(path: &Path) -> io::Result<String> {
    let not_text = |_| io::Error::new(io::ErrorKind::InvalidData, "not text: expected UTF-8");
    String::from_utf8(read(path, MAX_TEXT)?).map_err(not_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_never_end_are_refused() {
        let endless = read_text(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(endless.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(
            endless.to_string(),
            "it is too large: expected at most 16 MiB"
        );
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"\xff").unwrap();
        let kind = |r: io::Result<String>| r.map_err(|e| e.kind());
        assert_eq!(
            kind(read_text(file.path())),
            Err(io::ErrorKind::InvalidData)
        );
        std::fs::write(file.path(), b"12345").unwrap();
        assert_eq!(kind(read_text(file.path())), Ok("12345".to_owned()));
        assert!(read(file.path(), 5).is_ok() && read(file.path(), 4).is_err());
    }
}
