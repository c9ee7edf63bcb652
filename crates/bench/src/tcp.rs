//! TCP streams, every byte of which is checked.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use socket2::Socket;

use crate::pattern::{BLOCK, Pattern, StreamCheck};

/// Result of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stream {
    /// Bytes received.
    pub(crate) bytes: u64,
    /// Pieces that were wrong; 1 more if the stream ended early.
    pub(crate) bad: u64,
    /// Payload per second from 1 s after the start.
    pub(crate) mbps: f64,
}

/// Sends from `from` to `to` (listening) until `enough`, asked every 20 ms, says
/// so of the bytes received so far.
pub(crate) fn stream(
    from: &Socket,
    to: &Socket,
    mut enough: impl FnMut(u64) -> Result<bool>,
) -> Result<Stream> {
    let (stop, received) = (AtomicBool::new(false), AtomicU64::new(0));
    let address = to.local_addr()?;
    std::thread::scope(|s| {
        let sender = s.spawn(|| send(from, &address, &stop));
        let receiver = s.spawn(|| receive(to, &received));
        let mut asked = Ok(false);
        while !receiver.is_finished() && !sender.is_finished() {
            asked = enough(received.load(Ordering::Relaxed));
            if !matches!(asked, Ok(false)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
        let sent = sender.join().map_err(|_| anyhow!("a sender panicked"))??;
        let mut got = receiver
            .join()
            .map_err(|_| anyhow!("a receiver panicked"))??;
        got.bad += u64::from(got.bytes != sent);
        asked.map(|_| got)
    })
}

fn send(socket: &Socket, to: &socket2::SockAddr, stop: &AtomicBool) -> Result<u64> {
    socket.connect(to).context("cannot connect")?;
    let pattern = Pattern::new();
    let mut block = vec![0; BLOCK];
    let mut number = 0;
    let mut socket = socket;
    while !stop.load(Ordering::Relaxed) {
        pattern.fill(number, &mut block);
        socket.write_all(&block).context("cannot send TCP")?;
        number += 1;
    }
    socket.shutdown(Shutdown::Write)?;
    Ok(number * BLOCK as u64)
}

fn receive(listener: &Socket, received: &AtomicU64) -> Result<Stream> {
    let (connection, _) = listener.accept().context("cannot accept a connection")?;
    connection.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut check = StreamCheck::new();
    let mut buf = vec![0; 512 * 1024];
    let start = Instant::now();
    let (mut from, mut last) = (None, (start, 0));
    loop {
        let n = match (&connection).read(&mut buf) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) => return Err(e).context("cannot receive TCP"),
        };
        check.add(&buf[..n]);
        let now = Instant::now();
        if now - start > Duration::from_secs(1) {
            from.get_or_insert((now, check.bytes()));
        }
        last = (now, check.bytes());
        received.store(check.bytes(), Ordering::Relaxed);
    }
    let mbps = from.map_or(0.0, |(at, bytes)| {
        (last.1 - bytes) as f64 * 8.0 / 1e6 / (last.0 - at).as_secs_f64().max(1e-9)
    });
    Ok(Stream {
        bytes: check.bytes(),
        bad: check.bad,
        mbps,
    })
}
