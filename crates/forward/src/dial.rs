//! TCP connections to a destination that may have several addresses (RFC 8305).

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::net::{TcpStream, lookup_host};

use crate::wire::{Refusal, Target};

/// From one address to the next while none has answered (RFC 8305 5).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// Maximum addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// Returns the addresses of a destination, those of both families in turn (RFC 8305 4).
///
/// # Errors
/// [`Refusal::Unknown`] for a name that has none.
pub(crate) async fn resolve(to: &Target) -> Result<Vec<SocketAddr>, Refusal> {
    let (name, port) = match to {
        Target::Address(to) => return Ok(vec![*to]),
        Target::Name(name, port) => (name.as_str(), *port),
    };
    let found = lookup_host((name, port))
        .await
        .map_err(|_| Refusal::Unknown)?;
    let (v6, v4): (Vec<_>, Vec<_>) = found.partition(SocketAddr::is_ipv6);
    let addresses = in_turn(v6, v4);
    match addresses.is_empty() {
        true => Err(Refusal::Unknown),
        false => Ok(addresses),
    }
}

fn in_turn(v6: Vec<SocketAddr>, v4: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let (mut v6, mut v4) = (v6.into_iter(), v4.into_iter());
    let pairs = std::iter::from_fn(|| {
        let pair = [v6.next(), v4.next()];
        pair.iter().any(Option::is_some).then_some(pair)
    });
    pairs.flatten().flatten().take(MAX_ADDRESSES).collect()
}

/// Connects to the first of these addresses that answers: each is tried once those before it have
/// failed, or 250 ms after.
///
/// # Errors
/// The refusal of the last address that failed.
pub(crate) async fn connect(addresses: &[SocketAddr]) -> io::Result<TcpStream> {
    let mut waiting = addresses.iter();
    let mut attempts = FuturesUnordered::new();
    let mut error = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        let next = waiting.next();
        if let Some(to) = next {
            attempts.push(TcpStream::connect(*to));
        } else if attempts.is_empty() {
            return Err(error);
        }
        let done = match next {
            Some(_) => tokio::time::timeout(ATTEMPT_DELAY, attempts.next())
                .await
                .ok(),
            None => Some(attempts.next().await),
        };
        match done.flatten() {
            Some(Ok(tcp)) => return Ok(tcp),
            Some(Err(e)) => error = e,
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    }

    #[test]
    fn families_take_turns() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let v6 = vec![at("[2001:db8::1]:80"), at("[2001:db8::2]:80")];
        let v4 = vec![at("192.0.2.1:80")];
        let turns = in_turn(v6.clone(), v4.clone());
        assert_eq!(turns, [v6[0], v4[0], v6[1]]);
        assert_eq!(
            in_turn(vec![], vec![at("192.0.2.1:80"); 20]).len(),
            MAX_ADDRESSES
        );
    }

    #[test]
    fn the_next_address_is_tried_where_one_refuses() {
        runtime().block_on(async {
            let there = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let (there_at, gone_at) = (there.local_addr().unwrap(), gone.local_addr().unwrap());
            drop(gone);
            let tcp = connect(&[gone_at, there_at]).await.unwrap();
            assert_eq!(tcp.peer_addr().unwrap(), there_at);
            let e = connect(&[gone_at]).await.unwrap_err();
            assert_eq!(e.kind(), io::ErrorKind::ConnectionRefused);
            assert!(connect(&[]).await.is_err());
        });
    }
}
