//! The first words over UDP, which may be lost: the client repeats them.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use braid_core::Time;
use nix::errno::Errno;
use nix::poll::PollFlags;
use socket2::Socket;

use super::clock;
use super::error::{Result, TrafficError};
use super::hello::{HELLO_BYTES, Hello};
use super::session::Env;
use super::socket::{Conn, nobody_came};
use super::spec::{TrafficSpec, Transport};

/// Time between repetitions.
const AGAIN: Duration = Duration::from_millis(100);

/// The client's part; returns the start that the server chose.
pub(crate) fn greet(conn: &Conn, digest: u64, deadline: Time, env: &Env<'_>) -> Result<Time> {
    let start = Time::ZERO;
    let hello = Hello { digest, start }.to_bytes();
    let mut buf = [0; HELLO_BYTES];
    let mut last_error = None;
    while clock::now() < deadline {
        // The path may be down for a while: what counts is the deadline.
        if let Err(e) = conn.write(&hello) {
            last_error = Some(e);
        }
        let again = deadline.min(clock::now() + AGAIN);
        while clock::now() < again {
            env.wait(Some(conn.as_fd()), PollFlags::POLLIN, again)?;
            match conn.read(&mut buf) {
                Ok(Some(n)) => {
                    if let Some(answer) = Hello::from_bytes(&buf[..n]) {
                        answer.agrees(digest)?;
                        return Ok(answer.start);
                    }
                }
                Ok(None) => {}
                Err(e) => last_error = Some(e),
            }
        }
    }
    let attempt = format!("reach {} over udp", conn.peer);
    Err(match last_error {
        Some(e) if e.raw_os_error() == Some(Errno::ECONNREFUSED as i32) => TrafficError::io_advice(
            attempt,
            e,
            "; nothing listens there: start the server first and check address and port",
        ),
        Some(e) => TrafficError::io(attempt, e),
        None => TrafficError::io_advice(
            attempt,
            Errno::ETIMEDOUT,
            "; nothing answers: check that the server runs and that the path is up in both \
             directions",
        ),
    })
}

/// The server's part: answers the first client and talks to it only.
pub(crate) fn answer(
    socket: Socket,
    at: SocketAddr,
    spec: &TrafficSpec,
    deadline: Time,
    env: &Env<'_>,
) -> Result<(Conn, Time)> {
    let socket = UdpSocket::from(socket);
    let mut buf = [0; HELLO_BYTES];
    let (hello, peer) = loop {
        let ready = env.wait(Some(socket.as_fd()), PollFlags::POLLIN, deadline)?;
        if ready.is_empty() {
            if clock::now() >= deadline {
                return Err(nobody_came(spec, at));
            }
            continue;
        }
        // An error here is about an earlier datagram to somebody else.
        if let Ok((n, peer)) = socket.recv_from(&mut buf)
            && let Some(hello) = Hello::from_bytes(&buf[..n])
        {
            break (hello, peer);
        }
    };
    socket
        .connect(peer)
        .map_err(|e| TrafficError::io(format!("connect {at} to {peer} over udp"), e))?;
    let conn = Conn::new(socket.into(), Transport::Udp, peer, None)?;
    let start = spec.start_ns.unwrap_or_else(clock::now);
    let digest = spec.digest();
    // A lost answer is asked for again.
    let _ = conn.write(&Hello { digest, start }.to_bytes());
    hello.agrees(digest)?;
    Ok((conn, start))
}
