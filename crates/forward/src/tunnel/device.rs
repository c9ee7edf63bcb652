//! The device's end of the tunnel.

use std::sync::Arc;

use braid_mpquic::Session;
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

/// Tunnel of a device over the session that there is.
pub struct Tunnel {
    interface: Arc<Interface>,
    state: watch::Sender<State>,
}

impl Tunnel {
    /// Creates the interface, in the network namespace of the calling thread. Packets get into it
    /// by a mark ([`super::MARK`]), once the proxy has given addresses.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub async fn create() -> Result<Self, TunnelError> {
        let interface = Arc::new(Interface::create().await?);
        interface.set_up(false).await?;
        // What comes back has sources that this machine reaches by its accesses (RFC 3704 2.3).
        let loose = format!("/proc/sys/net/ipv4/conf/{}/rp_filter", super::INTERFACE);
        let set = std::fs::write(&loose, "2");
        set.map_err(|e| TunnelError::new(format!("write 2 to {loose}"), e))?;
        Ok(Self {
            interface,
            state: watch::Sender::default(),
        })
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
            let _ = self.interface.set_up(false).await;
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
        self.configure(given).await.map_err(|e| e.to_string())?;
        self.state.send_replace(State::Up(given));
        tokio::select! {
            e = self.send(session) => Err(format!("read packets from {}: {e}", super::INTERFACE)),
            () = self.receive(session, given) => Ok(()),
        }
    }

    async fn configure(&self, given: Addresses) -> Result<(), TunnelError> {
        // A route by the interface needs it up, and it forgets its routes when it goes down.
        self.interface.set_up(true).await?;
        let lengths = given
            .iter()
            .map(|ip| (ip, if ip.is_ipv4() { 32 } else { 128 }));
        self.interface
            .set_addresses(&lengths.collect::<Vec<_>>())
            .await?;
        for ip in given.iter() {
            routes::add(ip.is_ipv4(), self.interface.index()).await?;
        }
        Ok(())
    }

    /// Sends what comes from the interface; returns why no more does.
    async fn send(&self, session: &Session) -> std::io::Error {
        let mut reader = Reader::default();
        let mut packets = Vec::new();
        loop {
            if let Err(e) = reader.read(&self.interface, &mut packets).await {
                return e;
            }
            // After its end they are lost, as on any way that has ended.
            let all = packets.drain(..).map(packet::queued);
            let _ = session.send_packets(all);
        }
    }

    /// Writes what comes from the session to the interface, until the session ends.
    async fn receive(&self, session: &Session, given: Addresses) {
        let mut writer = Writer::default();
        let mut packets = Vec::new();
        while session.messages(&mut packets).await.is_ok() {
            let is_ours = |to| given.iter().any(|ip| ip == to);
            packets.retain(|p| packet::ends(p).is_some_and(|(_, to)| is_ours(to)));
            writer.write(&self.interface, &packets).await;
            packets.clear();
        }
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
