//! The device's end of the tunnel.

use std::sync::Arc;

use braid_core::class::DEFAULT_NUMBER;
use braid_mpquic::Session;
use futures_util::FutureExt;
use futures_util::future::select_all;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;

use super::interface::{Interface, Reader, Writer};
use super::{Addresses, TunnelError, packet, read, routes};
use crate::carrier::next_session;
use crate::wire::{self, Refusal};

/// State of the tunnel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// There is no session with the proxy.
    #[default]
    Waiting,
    /// The proxy carries packets from these addresses.
    Up(Addresses),
    /// There is a session, and no tunnel: why not.
    Down(String),
}

/// Interface of one class.
#[derive(Clone)]
struct ClassInterface {
    class: u8,
    interface: Arc<Interface>,
}

/// Interfaces of the classes, that of the default in front.
#[derive(Clone)]
pub struct Classes(Arc<watch::Sender<Vec<ClassInterface>>>);

impl Classes {
    /// Adds the interfaces of classes that have none, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub async fn add(&self, classes: &[u8]) -> Result<(), TunnelError> {
        for class in classes {
            if self.0.borrow().iter().any(|c| c.class == *class) {
                continue;
            }
            let interface = create(*class).await?;
            self.0.send_modify(|all| {
                all.push(ClassInterface {
                    class: *class,
                    interface,
                });
            });
        }
        Ok(())
    }
}

async fn create(class: u8) -> Result<Arc<Interface>, TunnelError> {
    let interface = Interface::create(super::interface(class)).await?;
    interface.set_up(false).await?;
    // What comes back has sources that this machine reaches by its accesses (RFC 3704 2.3).
    let loose = format!("/proc/sys/net/ipv4/conf/{}/rp_filter", interface.name());
    let set = std::fs::write(&loose, "2");
    set.map_err(|e| TunnelError::new(format!("write 2 to {loose}"), e))?;
    Ok(Arc::new(interface))
}

/// Tunnel of a device over the session that there is.
pub struct Tunnel {
    classes: Classes,
    state: watch::Sender<State>,
}

impl Tunnel {
    /// Creates the interface of the default class, in the network namespace of the calling thread.
    /// Packets get into it by a mark ([`super::MARK`]), once the proxy has given addresses.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub async fn create() -> Result<Self, TunnelError> {
        let classes = Classes(Arc::new(watch::Sender::new(Vec::new())));
        classes.add(&[DEFAULT_NUMBER]).await?;
        Ok(Self {
            classes,
            state: watch::Sender::default(),
        })
    }

    /// Returns the interfaces of the classes, to which others can be added at any time.
    pub fn classes(&self) -> Classes {
        self.classes.clone()
    }

    /// Returns the state, as it is from now on.
    pub fn state(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Carries packets over one session after the other, for as long as it is polled.
    pub async fn run(self, mut sessions: watch::Receiver<Option<Session>>) {
        let mut before = None;
        while let Some(session) = next_session(&mut sessions, before.as_ref()).await {
            let state = match self.over(&session).await {
                Ok(()) => State::Waiting,
                Err(why) => State::Down(why),
            };
            let all = self.classes.0.borrow().clone();
            for class in all {
                let _ = class.interface.set_up(false).await;
            }
            self.state.send_replace(state);
            session.ended().await;
            self.state.send_replace(State::Waiting);
            before = Some(session);
        }
    }

    /// Carries packets over one session until it ends, or says why it does not.
    async fn over(&self, session: &Session) -> Result<(), String> {
        let given = match request(session).await {
            Ok(given) => given?,
            // The session has ended.
            Err(_) => return Ok(()),
        };
        let mut changed = self.classes.0.subscribe();
        loop {
            let all = changed.borrow_and_update().clone();
            for class in &all {
                configure(class, given).await.map_err(|e| e.to_string())?;
            }
            self.state.send_replace(State::Up(given));
            let sending = all.iter().map(|class| send(class, session).boxed());
            tokio::select! {
                (e, i, _) = select_all(sending) => {
                    let name = all[i].interface.name();
                    return Err(format!("read packets from {name}: {e}"));
                }
                () = receive(&all[0], session, given) => return Ok(()),
                Ok(()) = changed.changed() => {}
            }
        }
    }
}

async fn configure(at: &ClassInterface, given: Addresses) -> Result<(), TunnelError> {
    // A route by the interface needs it up, and it forgets its routes when it goes down.
    at.interface.set_up(true).await?;
    let lengths = given
        .iter()
        .map(|ip| (ip, if ip.is_ipv4() { 32 } else { 128 }));
    at.interface
        .set_addresses(&lengths.collect::<Vec<_>>())
        .await?;
    for ip in given.iter() {
        routes::add(ip.is_ipv4(), at.class, at.interface.index()).await?;
    }
    Ok(())
}

/// Sends what comes from an interface; returns why no more does.
async fn send(at: &ClassInterface, session: &Session) -> std::io::Error {
    let mut reader = Reader::default();
    let mut packets = Vec::new();
    loop {
        if let Err(e) = reader.read(&at.interface, &mut packets).await {
            return e;
        }
        // After its end they are lost, as on any way that has ended.
        let all = packets.drain(..);
        let _ = session.send_packets(all.map(|p| packet::queued_with_class(p, at.class)));
    }
}

/// Writes what comes from the session to an interface, until the session ends.
async fn receive(at: &ClassInterface, session: &Session, given: Addresses) {
    let mut writer = Writer::default();
    let mut packets = Vec::new();
    while session.messages(&mut packets).await.is_ok() {
        let is_ours = |to| given.iter().any(|ip| ip == to);
        packets.retain(|p| packet::ends(p).is_some_and(|(_, to)| is_ours(to)));
        writer.write(&at.interface, &packets).await;
        packets.clear();
    }
}

/// Asks the proxy for addresses: `Err` where the session has ended, else these or why there are
/// none.
async fn request(session: &Session) -> std::io::Result<Result<Addresses, String>> {
    if !session.has_messages() {
        return Ok(Err(
            "packets go on the datagram lane alone ([mpquic] lane)".to_owned()
        ));
    }
    let mut stream = session.open().await?;
    wire::request_tunnel(&mut stream).await?;
    match wire::read_reply(stream.read_u8().await?)? {
        Ok(()) => Ok(Ok(read(&mut stream).await?)),
        Err(Refusal::Forbidden) => Ok(Err(
            "the proxy carries no packets: it has no [gateway]".to_owned()
        )),
        Err(_) => Ok(Err(
            "the proxy has no address left for this device".to_owned()
        )),
    }
}
