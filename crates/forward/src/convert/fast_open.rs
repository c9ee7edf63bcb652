//! TCP Fast Open (RFC 7413), with which a request travels in the first packet (RFC 8803 6).

use std::time::Duration;

use braid_mptcp::socket;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep};

/// Fast-open connections of a listener that are not established yet, at most.
const QUEUE: u32 = 256;
/// State of TCP in which the last packet of the handshake has not come (`TCP_SYN_RECV`).
const SYN_RECV: u8 = 3;
/// Pause between two looks at it.
const LOOK: Duration = Duration::from_millis(1);
/// How long it may take: SYN and ACK are sent again after 1 s, 3 s and 7 s.
const PATIENCE: Duration = Duration::from_secs(10);

/// Makes a socket connect with its first data, where the destination is known to take it.
pub(super) fn connects_with_data(socket: &socket2::Socket) {
    // A kernel without it connects before.
    let _ = socket::set_fast_open_connect(socket);
}

/// Makes a listener take data in the first packet. Whether it does is up to `net.ipv4.tcp_fastopen`.
pub(super) fn takes_data(listener: &TcpListener) {
    let _ = socket::set_fast_open(listener, QUEUE);
}

/// Waits until the handshake of an accepted connection is complete. On a connection of Multipath TCP
/// that was accepted with data, what is written before is stuck until something else is written: the
/// kernel's fault (Linux 6.18), which this goes around.
pub(super) async fn established(tcp: &TcpStream) {
    let until = Instant::now() + PATIENCE;
    let begins = || socket::tcp_info(tcp).is_ok_and(|i| i.state == SYN_RECV);
    while begins() && Instant::now() < until {
        sleep(LOOK).await;
    }
}
