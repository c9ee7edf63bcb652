//! Device's side of a transfer: asks the proxy over one access, opens the flows, measures or
//! receives.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use braid_access::dial::dial;
use braid_core::Rate;
use braid_core::control::Direction;
use braid_core::estimate::ProbeOrder;
use braid_mptcp::socket::{self, OnTheWire};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::transfer::{Received, receive, reset_at_end, send};
use super::wire::{Bounds, LEN, Message};

/// Longest wait for a handshake, an answer or a report.
pub(super) const PATIENCE: Duration = Duration::from_secs(3);

/// Highest rate that is believed, 1 Tbit/s: no radio carries it.
const HIGHEST: Rate = Rate::from_bps(1_000_000_000_000);

/// Place to probe from, and the proxy's port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Address of the access.
    pub(crate) address: IpAddr,
    /// Interface of the access.
    pub(crate) interface: String,
    /// Port of the proxy that serves transfers.
    pub(crate) to: SocketAddr,
}

/// Outcome of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Bytes that it moved over the access.
    pub(super) bytes: u64,
    /// Rate, or the reason why there is none.
    pub(super) rate: Result<Rate, String>,
}

/// Runs one probe. It ends within its length and five times `patience`, whatever the proxy does.
pub(super) async fn probe(origin: &Origin, order: &ProbeOrder, patience: Duration) -> Outcome {
    let moved = Arc::new(AtomicU64::new(0));
    let length = Duration::from_millis(order.duration_ms);
    let whole = timeout(
        length + 5 * patience,
        transfer(origin, order, patience, &moved),
    );
    let rate = whole
        .await
        .unwrap_or_else(|_| Err("the transfer did not end in time".to_owned()));
    Outcome {
        bytes: moved.load(Ordering::Relaxed),
        rate,
    }
}

async fn transfer(
    origin: &Origin,
    order: &ProbeOrder,
    patience: Duration,
    moved: &Arc<AtomicU64>,
) -> Result<Rate, String> {
    let asked = Bounds {
        flows: u8::try_from(order.flows).unwrap_or(u8::MAX),
        duration_ms: order.duration_ms,
        max_bytes: order.max_bytes,
    };
    let mut control = connect(origin, patience).await?;
    say(&mut control, Message::Request(order.direction, asked)).await?;
    let (token, granted) = match hear(&mut control, patience).await? {
        Message::Grant(token, granted) => (token, granted),
        Message::Refusal(why) => return Err(why.why().to_owned()),
        _ => return Err(not_understood(origin)),
    };
    let wider = granted.flows > asked.flows
        || granted.duration_ms > asked.duration_ms
        || granted.max_bytes > asked.max_bytes;
    if wider || granted.flows == 0 {
        return Err(not_understood(origin));
    }
    let flows = open(origin, token, granted.flows, patience).await?;
    let length = Duration::from_millis(granted.duration_ms);
    let rate = match order.direction {
        Direction::Down => {
            // The proxy waits for the flows, and then for the end of its time.
            let within = length + 2 * patience;
            match receive(flows, within, granted.max_bytes, moved).await {
                Received::Ended => {}
                Received::TooMuch => return Err("the proxy sent more than it granted".to_owned()),
                Received::TooLong => return Err("the proxy did not end its flows".to_owned()),
            }
            match hear(&mut control, patience).await? {
                Message::Report { rate, .. } if rate.is_none_or(|r| r <= HIGHEST) => rate,
                _ => return Err(not_understood(origin)),
            }
        }
        Direction::Up => send(flows, length, granted.max_bytes, moved).await.rate,
    };
    rate.ok_or_else(|| {
        "too little was acknowledged to tell a rate: raise probe_bytes or duration in \
         [control.probe]"
            .to_owned()
    })
}

/// Connects by plain TCP over the access alone.
async fn connect(origin: &Origin, patience: Duration) -> Result<TcpStream, String> {
    let socket = socket::stream(&origin.to, false).map_err(|e| e.to_string())?;
    let dialed = dial(socket, origin.address, &origin.interface, origin.to);
    let failed = |e: io::Error| {
        format!(
            "connect to {} by TCP from {} on {}: {e}: the proxy needs serve = true in \
             [control.probe], and its firewall this port open",
            origin.to, origin.address, origin.interface
        )
    };
    let late = |_| failed(io::ErrorKind::TimedOut.into());
    let stream = timeout(patience, dialed).await.map_err(late)?;
    let stream = stream.map_err(failed)?;
    if matches!(socket::on_the_wire(&stream), Ok(OnTheWire::Mptcp)) {
        return Err(
            "sockets of the daemon are made MPTCP, so that no access can be probed alone: start \
             it without mptcpize or braid run"
                .to_owned(),
        );
    }
    reset_at_end(&stream);
    Ok(stream)
}

/// Opens the flows of a transfer; all of them, since fewer measure something else.
async fn open(
    origin: &Origin,
    token: u64,
    flows: u8,
    patience: Duration,
) -> Result<Vec<TcpStream>, String> {
    let mut opening = JoinSet::new();
    for _ in 0..flows {
        let origin = origin.clone();
        opening.spawn(async move {
            let mut flow = connect(&origin, patience).await?;
            say(&mut flow, Message::Flow(token)).await?;
            Ok::<_, String>(flow)
        });
    }
    let mut all = Vec::with_capacity(flows.into());
    while let Some(flow) = opening.join_next().await {
        all.push(flow.map_err(|e| e.to_string())??);
    }
    Ok(all)
}

async fn say(to: &mut TcpStream, message: Message) -> Result<(), String> {
    let sent = to.write_all(&message.emit()).await;
    sent.map_err(|e| format!("speak to the proxy about a transfer: {e}"))
}

async fn hear(from: &mut TcpStream, patience: Duration) -> Result<Message, String> {
    let mut b = [0; LEN];
    match timeout(patience, from.read_exact(&mut b)).await {
        Ok(Ok(_)) => Message::parse(&b).ok_or_else(|| {
            "the proxy's answer is none of this version: it needs the same version of Braid"
                .to_owned()
        }),
        Ok(Err(e)) => Err(format!("the proxy ended the transfer: {e}")),
        Err(_) => Err("the proxy does not answer".to_owned()),
    }
}

fn not_understood(origin: &Origin) -> String {
    format!(
        "{} answers something else than was asked for: it needs the same version of Braid",
        origin.to
    )
}

#[cfg(test)]
mod tests {
    use super::super::wire::Refusal;
    use super::*;
    use tokio::net::TcpListener;
    use tokio::time::Instant;

    const SHORT: Duration = Duration::from_millis(200);

    /// Proxy at the loopback that does `f` with its first connection, and the port's place.
    async fn proxy<F, T>(f: F) -> Origin
    where
        F: FnOnce(TcpListener, TcpStream) -> T + Send + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let local = IpAddr::from([127, 0, 0, 1]);
        let listener = TcpListener::bind((local, 0)).await.unwrap();
        let to = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            f(listener, stream).await;
        });
        Origin {
            address: local,
            interface: "lo".to_owned(),
            to,
        }
    }

    /// Grants so many flows of 300 ms, and 1 MB.
    async fn grant(stream: &mut TcpStream, flows: u8) {
        let granted = Bounds {
            flows,
            duration_ms: 300,
            max_bytes: 1_000_000,
        };
        let grant = Message::Grant(9, granted).emit();
        stream.write_all(&grant).await.unwrap();
    }

    fn order(direction: Direction) -> ProbeOrder {
        ProbeOrder {
            access: "nr".to_owned(),
            direction,
            flows: 2,
            duration_ms: 300,
            max_bytes: 2_000_000,
        }
    }

    async fn outcome(origin: &Origin, direction: Direction) -> Outcome {
        let begun = Instant::now();
        let outcome = probe(origin, &order(direction), SHORT).await;
        assert!(begun.elapsed() < Duration::from_secs(3), "{outcome:?}");
        outcome
    }

    /// Answers the request with `answer`, and does nothing more.
    async fn answers(answer: [u8; LEN]) -> Origin {
        proxy(move |_listener, mut stream| async move {
            stream.read_exact(&mut [0; LEN]).await.unwrap();
            stream.write_all(&answer).await.unwrap();
            std::future::pending::<()>().await;
        })
        .await
    }

    fn why(outcome: Outcome) -> String {
        assert_eq!(outcome.bytes, 0);
        outcome.rate.unwrap_err()
    }

    #[tokio::test]
    async fn a_proxy_that_answers_nothing_or_garbage_is_an_error() {
        let silent = proxy(|_listener, stream| async move {
            let _open = stream;
            std::future::pending::<()>().await;
        });
        let e = why(outcome(&silent.await, Direction::Down).await);
        assert_eq!(e, "the proxy does not answer");
        let e = why(outcome(&answers([7; LEN]).await, Direction::Down).await);
        assert!(e.contains("same version"), "{e}");
        let other = answers(Message::Flow(1).emit()).await;
        let e = why(outcome(&other, Direction::Up).await);
        assert!(e.contains("something else"), "{e}");
        let refused = answers(Message::Refusal(Refusal::Soon).emit()).await;
        let e = why(outcome(&refused, Direction::Up).await);
        assert_eq!(e, Refusal::Soon.why());
        let gone = proxy(|listener, stream| async move { drop((listener, stream)) }).await;
        assert!(why(outcome(&gone, Direction::Up).await).contains("proxy"));
        let e = why(outcome(&gone, Direction::Up).await);
        assert!(e.contains("serve = true"), "{e}");
    }

    #[tokio::test]
    async fn a_proxy_that_grants_more_than_was_asked_for_is_refused() {
        let asked = Bounds {
            flows: 2,
            duration_ms: 300,
            max_bytes: 2_000_000,
        };
        for wider in [
            Bounds { flows: 3, ..asked },
            Bounds { flows: 0, ..asked },
            Bounds {
                duration_ms: 301,
                ..asked
            },
            Bounds {
                max_bytes: 2_000_001,
                ..asked
            },
        ] {
            let origin = answers(Message::Grant(1, wider).emit()).await;
            let e = why(outcome(&origin, Direction::Down).await);
            assert!(e.contains("something else"), "{wider:?}: {e}");
        }
    }

    #[tokio::test]
    async fn a_rate_that_no_access_has_is_not_believed() {
        let report = |rate| async move {
            let origin = proxy(move |listener, mut stream| async move {
                stream.read_exact(&mut [0; LEN]).await.unwrap();
                grant(&mut stream, 1).await;
                let (flow, _) = listener.accept().await.unwrap();
                drop(flow);
                let rate = Some(rate);
                let report = Message::Report { bytes: 0, rate }.emit();
                stream.write_all(&report).await.unwrap();
                std::future::pending::<()>().await;
            });
            outcome(&origin.await, Direction::Down).await.rate
        };
        assert_eq!(report(HIGHEST).await, Ok(HIGHEST));
        let e = report(Rate::from_bps(u64::MAX)).await.unwrap_err();
        assert!(e.contains("something else"), "{e}");
    }

    #[tokio::test]
    async fn a_proxy_that_sends_for_ever_is_cut_off() {
        let origin = proxy(|listener, mut stream| async move {
            stream.read_exact(&mut [0; LEN]).await.unwrap();
            grant(&mut stream, 2).await;
            let mut flows = JoinSet::new();
            loop {
                let (mut flow, _) = listener.accept().await.unwrap();
                flows.spawn(async move { while flow.write_all(&[0; 65_536]).await.is_ok() {} });
            }
        });
        let outcome = outcome(&origin.await, Direction::Down).await;
        assert_eq!(
            outcome.rate.unwrap_err(),
            "the proxy sent more than it granted"
        );
        assert!(outcome.bytes < 1_300_000, "{}", outcome.bytes);
    }

    #[tokio::test]
    async fn a_proxy_that_never_ends_is_left() {
        let origin = proxy(|listener, mut stream| async move {
            stream.read_exact(&mut [0; LEN]).await.unwrap();
            grant(&mut stream, 1).await;
            let (mut flow, _) = listener.accept().await.unwrap();
            flow.write_all(&[0; 1000]).await.unwrap();
            std::future::pending::<()>().await;
        });
        let outcome = outcome(&origin.await, Direction::Down).await;
        assert_eq!(outcome.rate.unwrap_err(), "the proxy did not end its flows");
        assert_eq!(outcome.bytes, 1000);
    }
}
