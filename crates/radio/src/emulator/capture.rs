//! The heads of delivered packets, as a pcapng file with an interface per link.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use anyhow::{Context, Result};
use nix::time::{ClockId, clock_gettime};

use super::buffers::Held;
use super::segment::{Checksums, HeaderBuf};
use super::vnet::{ETHERNET_LEN, Framing, VNET_LEN};
use crate::emulator::packet::MAX_HEADER;
use crate::model::Span;

/// Bytes kept of each packet: enough for all headers.
const SNAP: usize = 160;
/// Records that may wait for the disk; more are left out and counted.
const WAITING: usize = 64 * 1024;

/// LINKTYPE_RAW: begins with an IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;

struct Record {
    link: u32,
    time_ns: u64,
    bytes: u32,
    head: [u8; SNAP],
    kept: u16,
}

/// A capture in progress; dropping it completes the file.
pub(crate) struct Capture {
    sender: Option<SyncSender<Record>>,
    writer: Option<JoinHandle<()>>,
    headers: Box<HeaderBuf>,
    left_out: u64,
}

impl Capture {
    /// Starts a capture of `links` into the file at `path`.
    pub(crate) fn start(path: &Path, links: &[String]) -> Result<Self> {
        let attempt = || format!("cannot write the capture to {}", path.display());
        let mut file = BufWriter::new(File::create(path).with_context(attempt)?);
        file.write_all(&preamble(links)).with_context(attempt)?;
        let (sender, receiver) = sync_channel(WAITING);
        let shown = path.display().to_string();
        let writer = std::thread::Builder::new()
            .name("capture".to_owned())
            .spawn(move || {
                if let Err(e) = write_records(file, &receiver) {
                    eprintln!("emulator: cannot write the capture to {shown}: {e}; it ends here");
                }
            })
            .context("cannot start the thread that writes the capture")?;
        Ok(Self {
            sender: Some(sender),
            writer: Some(writer),
            headers: Box::new([0; MAX_HEADER + ETHERNET_LEN]),
            left_out: 0,
        })
    }

    /// Records the packets of `span`, delivered over `link` in `ahead` nanoseconds.
    pub(crate) fn record(&mut self, link: usize, held: &Held, span: Span, ahead: u64) {
        let Some(sender) = &self.sender else { return };
        let time_ns = clock_gettime(ClockId::CLOCK_REALTIME)
            .map(|t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
            .unwrap_or(0)
            .saturating_add(ahead);
        for i in span.first..span.end {
            let (n, payload) = held.packet.headers(
                &held.buf,
                (i, i + 1),
                Framing::Ip,
                Checksums::Complete,
                &mut self.headers,
            );
            let mut head = [0; SNAP];
            let headers = &self.headers[VNET_LEN..n];
            let bytes = headers.len() + payload.len();
            let kept = headers.len().min(SNAP);
            head[..kept].copy_from_slice(&headers[..kept]);
            let more = payload.len().min(SNAP - kept);
            head[kept..kept + more].copy_from_slice(&held.buf[payload][..more]);
            let record = Record {
                link: link as u32,
                time_ns,
                bytes: bytes as u32,
                head,
                kept: (kept + more) as u16,
            };
            if sender.try_send(record).is_err() {
                self.left_out += 1;
            }
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(writer) = self.writer.take() {
            // A panic there has been reported on standard error already.
            let _ = writer.join();
        }
        if self.left_out > 0 {
            eprintln!(
                "emulator: the capture lacks {} packets: the disk was too slow",
                self.left_out
            );
        }
    }
}

fn write_records(mut file: BufWriter<File>, records: &Receiver<Record>) -> std::io::Result<()> {
    for r in records {
        file.write_all(&packet_block(&r))?;
    }
    file.flush()
}

/// A block of pcapng (draft-ietf-opsawg-pcapng 3.1); `body` is padded to 4 bytes.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let padded = body.len().next_multiple_of(4);
    let total = (12 + padded) as u32;
    let mut b = Vec::with_capacity(12 + padded);
    b.extend(kind.to_le_bytes());
    b.extend(total.to_le_bytes());
    b.extend(body);
    b.resize(8 + padded, 0);
    b.extend(total.to_le_bytes());
    b
}

/// Section header and one interface description per link, with times in nanoseconds.
fn preamble(links: &[String]) -> Vec<u8> {
    let mut section = Vec::new();
    section.extend(0x1a2b_3c4d_u32.to_le_bytes());
    section.extend([1, 0, 0, 0]);
    section.extend(u64::MAX.to_le_bytes());
    let mut out = block(0x0a0d_0d0a, &section);
    for name in links {
        let mut i = Vec::new();
        i.extend(LINKTYPE_RAW.to_le_bytes());
        i.extend([0, 0]);
        i.extend((SNAP as u32).to_le_bytes());
        option(&mut i, 2, name.as_bytes()); // if_name
        option(&mut i, 9, &[9]); // if_tsresol: 10^-9 s
        option(&mut i, 0, &[]);
        out.extend(block(1, &i));
    }
    out
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

fn packet_block(r: &Record) -> Vec<u8> {
    let kept = usize::from(r.kept);
    let mut b = Vec::with_capacity(20 + kept);
    b.extend(r.link.to_le_bytes());
    b.extend(((r.time_ns >> 32) as u32).to_le_bytes());
    b.extend((r.time_ns as u32).to_le_bytes());
    b.extend(u32::from(r.kept).to_le_bytes());
    b.extend(r.bytes.to_le_bytes());
    b.extend(&r.head[..kept]);
    block(6, &b)
}
