//! Proxy's side of transfers: admits them, serves them, and observes what downlinks carry.
//!
//! An address is one that can be answered to (the TCP handshake), that `[access.NAME]` names, and
//! from which a connection or session of Braid comes now. [`super::gate`] bounds what it gets.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use braid_api::config::Transfers;
use braid_core::Time;
use braid_core::control::{Direction, ProbeResult};
use braid_mptcp::socket::{self, OnTheWire};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::Asked;
use super::gate::Gate;
use super::transfer::{Received, Sent, receive, reset_at_end, send};
use super::wire::{Bounds, Message, Refusal};
use crate::state::{lock, now};

/// Transfers that wait for their flows, by token, with the address that may bring them.
type Waiting = BTreeMap<u64, (IpAddr, mpsc::Sender<TcpStream>)>;

/// Transfers of one proxy.
pub(super) struct Server {
    gate: Mutex<Gate>,
    waiting: Mutex<Waiting>,
    patience: Duration,
    tokens: RandomState,
    count: AtomicU64,
}

/// Proxy as its transfers need it.
pub(super) trait Owner: Send + Sync {
    /// Returns the bounds in force.
    fn transfers(&self) -> Transfers;
    /// Returns the access of an address; `None` where it is none's.
    fn access(&self, address: IpAddr) -> Option<String>;
    /// Whether a connection or session of Braid uses an address now.
    fn is_connected(&self, address: IpAddr) -> bool;
    /// Whether decisions go by the result for an access.
    fn wants(&self, access: &str, direction: Direction) -> bool;
    /// Whether traffic fills an access now.
    fn is_full(&self, access: &str) -> bool;
    /// Takes in a result.
    fn probed(&self, result: ProbeResult) -> impl Future<Output = ()> + Send;
}

/// Rest of what is to be done for a connection.
pub(super) enum Work {
    /// Transfer that was admitted.
    Transfer(Transfer),
    /// Transfer that was not.
    Refusal(Told),
}

/// Transfer that begins with its flows.
pub(super) struct Transfer {
    control: TcpStream,
    direction: Direction,
    access: String,
    opened: mpsc::Receiver<TcpStream>,
    admitted: Admitted,
}

/// Admission of a transfer. Its end is noted however it ends.
struct Admitted {
    server: Arc<Server>,
    from: IpAddr,
    token: u64,
    granted: Bounds,
    moved: Arc<AtomicU64>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        lock(&self.server.waiting).remove(&self.token);
        let moved = self.moved.load(Ordering::Relaxed);
        let at = Time::from_nanos(now());
        lock(&self.server.gate).end(at, self.from, self.granted, moved);
    }
}

impl Server {
    /// Serves none yet. Whoever is waited for longer than `patience` is left.
    pub(super) fn new(patience: Duration) -> Self {
        Self {
            gate: Mutex::default(),
            waiting: Mutex::default(),
            patience,
            tokens: RandomState::new(),
            count: AtomicU64::new(0),
        }
    }

    /// Takes in a connection. It waits for no one.
    pub(super) fn take<O: Owner>(self: &Arc<Self>, asked: Asked, owner: &O) -> Option<Work> {
        let Asked {
            stream,
            from,
            message,
        } = asked;
        reset_at_end(&stream);
        // Several accesses may carry MPTCP, and its counters are those of one.
        if !matches!(socket::on_the_wire(&stream), Ok(OnTheWire::Fallback)) {
            return None;
        }
        let from = from.to_canonical();
        match Message::parse(&message)? {
            Message::Request(direction, asked) => {
                Some(match self.admit(from, (direction, asked), owner) {
                    Ok((access, granted)) => {
                        Work::Transfer(self.begin(stream, from, direction, access, granted))
                    }
                    Err(why) => Work::Refusal(Told {
                        control: stream,
                        message: Message::Refusal(why),
                        patience: self.patience,
                    }),
                })
            }
            Message::Flow(token) => {
                let waiting = lock(&self.waiting);
                let (_, flows) = waiting.get(&token).filter(|(of, _)| *of == from)?;
                let _ = flows.try_send(stream);
                None
            }
            _ => None,
        }
    }

    /// Admits a transfer, or tells why there is none.
    fn admit<O: Owner>(
        &self,
        from: IpAddr,
        asked: (Direction, Bounds),
        owner: &O,
    ) -> Result<(String, Bounds), Refusal> {
        let transfers = owner.transfers();
        if !transfers.serve {
            return Err(Refusal::Off);
        }
        let access = owner.access(from).ok_or(Refusal::Stranger)?;
        if !owner.is_connected(from) {
            return Err(Refusal::Unconnected);
        }
        if !owner.wants(&access, asked.0) {
            return Err(Refusal::Unwanted);
        }
        if owner.is_full(&access) {
            return Err(Refusal::Full);
        }
        let at = Time::from_nanos(now());
        let granted = lock(&self.gate).admit(at, from, asked, &transfers)?;
        Ok((access, granted))
    }

    fn begin(
        self: &Arc<Self>,
        control: TcpStream,
        from: IpAddr,
        direction: Direction,
        access: String,
        granted: Bounds,
    ) -> Transfer {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let token = self.tokens.hash_one(count);
        let (open, opened) = mpsc::channel(granted.flows.into());
        lock(&self.waiting).insert(token, (from, open));
        Transfer {
            control,
            direction,
            access,
            opened,
            admitted: Admitted {
                server: Arc::clone(self),
                from,
                token,
                granted,
                moved: Arc::default(),
            },
        }
    }
}

impl Transfer {
    /// Runs it, from its flows to its result. It keeps its place among those that run at one time
    /// until the other end has read the result.
    ///
    /// # Errors
    /// The other end has gone, is too slow, or sends too much. Nothing more is to be done.
    pub(super) async fn run<O: Owner>(mut self, owner: &O) -> io::Result<()> {
        let Admitted {
            server,
            token,
            granted,
            moved,
            ..
        } = &self.admitted;
        let grant = Message::Grant(*token, *granted).emit();
        self.control.write_all(&grant).await?;
        let limit = Instant::now() + server.patience;
        let mut flows = Vec::with_capacity(granted.flows.into());
        while flows.len() < usize::from(granted.flows) {
            let flow = timeout_at(limit, self.opened.recv()).await?;
            flows.push(flow.ok_or(io::ErrorKind::BrokenPipe)?);
        }
        // Those that come now are none of its flows.
        self.opened.close();
        let length = Duration::from_millis(granted.duration_ms);
        match self.direction {
            Direction::Down => {
                let Sent { bytes, rate } = send(flows, length, granted.max_bytes, moved).await;
                let result = ProbeResult {
                    access: self.access,
                    direction: Direction::Down,
                    bytes,
                    rate,
                };
                owner.probed(result).await;
                let told = Told {
                    control: self.control,
                    message: Message::Report { bytes, rate },
                    patience: server.patience,
                };
                told.tell().await;
                Ok(())
            }
            Direction::Up => {
                let within = length + server.patience;
                match receive(flows, within, granted.max_bytes, moved).await {
                    Received::Ended => Ok(()),
                    Received::TooMuch | Received::TooLong => Err(io::ErrorKind::InvalidData.into()),
                }
            }
        }
    }
}

/// Last message of a connection.
pub(super) struct Told {
    control: TcpStream,
    message: Message,
    patience: Duration,
}

impl Told {
    /// Tells it, and waits until the other end has read and closed: a reset would overtake what
    /// was said.
    pub(super) async fn tell(mut self) {
        let limit = Instant::now() + self.patience;
        if self.control.write_all(&self.message.emit()).await.is_ok() {
            let _ = timeout_at(limit, self.control.read(&mut [0])).await;
        }
    }
}

#[cfg(test)]
mod tests;
