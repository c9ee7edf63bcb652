//! The device's end of the tunnel.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use braid_core::class::DEFAULT_NUMBER;
use braid_mpquic::Session;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio::time::timeout;

use super::interface::{Interface, Reader, Writer};
use super::{Addresses, TunnelError, packet, read, routes};
use crate::answers::Answers;
use crate::carrier::next_session;
use crate::wire::{self, Refusal};

/// Time in which the interface of a class begins to carry packets.
const PATIENCE: Duration = Duration::from_secs(2);

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
    /// Absent where the kernel makes none: packets of the class go as the default's.
    interface: Option<Arc<Interface>>,
}

/// State that the tunnel shares with those who look at it.
struct Shared {
    state: watch::Sender<State>,
    /// Interfaces of the classes, that of the default in front.
    interfaces: watch::Sender<Vec<ClassInterface>>,
    /// Classes whose interfaces carry packets, or cannot.
    settled: watch::Sender<BTreeSet<u8>>,
}

/// Interfaces of the classes of a tunnel, to which others can be added at any time.
#[derive(Clone)]
pub struct Classes(Arc<Shared>);

impl Classes {
    /// Adds the interfaces of classes that have none, in the network namespace of the calling thread,
    /// and waits until they carry packets, if the tunnel is up.
    ///
    /// # Errors
    /// The kernel's refusal of some: packets of these go as the default's.
    pub async fn add(&self, classes: &[u8]) -> Result<(), TunnelError> {
        let mut done = Ok(());
        for class in classes {
            let is_it = |c: &ClassInterface| c.class == *class;
            if self.0.interfaces.borrow().iter().any(is_it) {
                continue;
            }
            let created = create(*class).await;
            let interface = created.map_err(|e| done = Err(e)).ok();
            let class = ClassInterface {
                class: *class,
                interface,
            };
            self.0.interfaces.send_modify(|all| all.push(class));
        }
        let mut settled = self.0.settled.subscribe();
        let (mut state, is_up) = (self.0.state.subscribe(), |s: &State| {
            matches!(s, State::Up(_))
        });
        let all = settled.wait_for(|there| classes.iter().all(|c| there.contains(c)));
        let settled = async {
            tokio::select! {
                _ = all => {}
                _ = state.wait_for(|s| !is_up(s)) => {}
            }
        };
        // Who comes late goes as the default.
        let _ = timeout(PATIENCE, settled).await;
        done
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
    /// Interface of the default class, by which packets come back.
    default: Arc<Interface>,
    shared: Arc<Shared>,
    answers: Answers,
}

impl Tunnel {
    /// Creates the interface of the default class, in the network namespace of the calling thread.
    /// Packets get into it by a mark ([`super::MARK`]), once the proxy has given addresses.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub async fn create() -> Result<Self, TunnelError> {
        let default = create(DEFAULT_NUMBER).await?;
        let interface = ClassInterface {
            class: DEFAULT_NUMBER,
            interface: Some(Arc::clone(&default)),
        };
        let shared = Shared {
            state: watch::Sender::default(),
            interfaces: watch::Sender::new(vec![interface]),
            settled: watch::Sender::default(),
        };
        Ok(Self {
            default,
            shared: Arc::new(shared),
            answers: Answers::default(),
        })
    }

    /// Tells of answers of resolvers that come through it.
    #[must_use]
    pub fn with_answers(self, answers: Answers) -> Self {
        Self { answers, ..self }
    }

    /// Returns the interfaces of the classes.
    pub fn classes(&self) -> Classes {
        Classes(Arc::clone(&self.shared))
    }

    /// Returns the state, as it is from now on.
    pub fn state(&self) -> watch::Receiver<State> {
        self.shared.state.subscribe()
    }

    /// Carries packets over one session after the other, for as long as it is polled. Why a class
    /// goes as the default is told to `told`.
    pub async fn run(self, mut sessions: watch::Receiver<Option<Session>>, told: impl Fn(String)) {
        let mut before = None;
        while let Some(session) = next_session(&mut sessions, before.as_ref()).await {
            let state = match self.over(&session, &told).await {
                Ok(()) => State::Waiting,
                Err(why) => State::Down(why),
            };
            let all = self.shared.interfaces.borrow().clone();
            for interface in all.iter().filter_map(|c| c.interface.as_ref()) {
                let _ = interface.set_up(false).await;
            }
            self.shared.settled.send_replace(BTreeSet::new());
            self.shared.state.send_replace(state);
            session.ended().await;
            self.shared.state.send_replace(State::Waiting);
            before = Some(session);
        }
    }

    /// Carries packets over one session until it ends, or says why it does not.
    async fn over(&self, session: &Session, told: &impl Fn(String)) -> Result<(), String> {
        let given = match request(session).await {
            Ok(given) => given?.filtered(|ip| self.default.takes(ip)),
            // The session has ended.
            Err(_) => return Ok(()),
        };
        let by = self.default.index();
        let configured = configure(&self.default, given).await;
        configured.map_err(|e| e.to_string())?;
        for ip in given.iter() {
            let added = routes::add(ip.is_ipv4(), by).await;
            added.map_err(|e| e.to_string())?;
        }
        let mut interfaces = self.shared.interfaces.subscribe();
        let mut receiving = std::pin::pin!(receive(&self.default, session, given, &self.answers));
        let mut sending = FuturesUnordered::new();
        let default = Arc::clone(&self.default);
        sending.push(send(DEFAULT_NUMBER, default, session).boxed());
        let mut settled = BTreeSet::from([DEFAULT_NUMBER]);
        loop {
            let all = interfaces.borrow_and_update().clone();
            for class in all {
                if !settled.insert(class.class) {
                    continue;
                }
                let begun = begin(&class, by, given).await;
                if let Err(e) = begun {
                    told(format!("packets of a class go as the default's: {e}"));
                } else if let Some(interface) = class.interface {
                    sending.push(send(class.class, interface, session).boxed());
                }
            }
            self.shared.settled.send_replace(settled.clone());
            self.shared.state.send_if_modified(|state| {
                let before = std::mem::replace(state, State::Up(given));
                before != *state
            });
            tokio::select! {
                Some((class, e)) = sending.next() => {
                    let why = format!("read packets from {}: {e}", super::interface(class));
                    match class {
                        DEFAULT_NUMBER => return Err(why),
                        _ => told(format!("packets of a class go as the default's: {why}")),
                    }
                }
                () = &mut receiving => return Ok(()),
                Ok(()) = interfaces.changed() => {}
            }
        }
    }
}

/// Leads packets of a class into its own interface, or else into that of the default.
async fn begin(at: &ClassInterface, default: u32, given: Addresses) -> Result<(), TunnelError> {
    for ip in given.iter() {
        routes::fall_back(ip.is_ipv4(), at.class, default).await?;
    }
    let Some(interface) = &at.interface else {
        return Ok(());
    };
    configure(interface, given).await?;
    for ip in given.iter() {
        routes::add_class(ip.is_ipv4(), at.class, interface.index()).await?;
    }
    Ok(())
}

async fn configure(interface: &Interface, given: Addresses) -> Result<(), TunnelError> {
    // A route by the interface needs it up, and it forgets its routes when it goes down.
    interface.set_up(true).await?;
    let lengths = given
        .iter()
        .map(|ip| (ip, if ip.is_ipv4() { 32 } else { 128 }));
    interface.set_addresses(&lengths.collect::<Vec<_>>()).await
}

/// Sends what comes from an interface; returns its class and why no more does.
async fn send(class: u8, at: Arc<Interface>, session: &Session) -> (u8, std::io::Error) {
    let mut reader = Reader::default();
    let mut packets = Vec::new();
    loop {
        if let Err(e) = reader.read(&at, &mut packets).await {
            return (class, e);
        }
        // After its end they are lost, as on any way that has ended.
        let all = packets.drain(..);
        let _ = session.send_packets(all.map(|p| packet::queued_with_class(p, class)));
    }
}

/// Writes what comes from the session to an interface, until the session ends.
async fn receive(at: &Interface, session: &Session, given: Addresses, answers: &Answers) {
    let mut writer = Writer::default();
    let mut packets = Vec::new();
    while session.messages(&mut packets).await.is_ok() {
        let is_ours = |to| given.iter().any(|ip| ip == to);
        packets.retain(|p| packet::ends(p).is_some_and(|(_, to)| is_ours(to)));
        let resolved = packets.iter().filter_map(|p| packet::from_resolver(p));
        resolved.for_each(|message| answers.tell(message));
        writer.write(at, &packets).await;
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
