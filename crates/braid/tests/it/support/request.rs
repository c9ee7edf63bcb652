//! HTTP over a daemon's Unix socket.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// First line and body of a request's answer.
pub(crate) fn request(control: &Path, method: &str, path: &str, body: &str) -> (String, String) {
    let mut stream = UnixStream::connect(control).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: braid\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}
