//! The proxy's end of the tunnels of all devices.
//!
//! Packets of a device have the addresses that it was given, or are dropped. The kernel forwards
//! them to where the proxy may connect, and gives them an address of its own (NAT44, NAT66); what
//! comes back goes to the device that it is for. Devices do not reach each other, nor the proxy
//! itself.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use braid_core::class::DEFAULT_NUMBER;
use braid_mpquic::{Session, Stream};
use bytes::Bytes;
use tokio::io::AsyncWriteExt;

use super::flow_classes::FlowClasses;
use super::interface::{Interface, Reader, Writer};
pub use super::pool::Pools;
use super::pool::{Holder, Pool};
use super::{Addresses, INTERFACE, TunnelError, packet, rules, write};
use crate::egress::Allowed;
use crate::nft::Nftables;
use crate::wire::{self, Refusal};

/// Packets that a device's end has room for while none come.
const AT_REST: usize = 16;

/// End of the tunnels of all devices.
pub struct Gateway {
    interface: Interface,
    /// One for all devices: it holds megabytes.
    writer: tokio::sync::Mutex<Writer>,
    devices: Mutex<Devices>,
    // Its table goes with this socket.
    _nftables: Nftables,
}

struct Devices {
    pool: Pool,
    /// Device of each address.
    at: HashMap<IpAddr, Device>,
    /// Number of the next session.
    next: u64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Device that has an address.
#[derive(Clone)]
struct Device {
    /// Number of its session.
    number: u64,
    session: Session,
    classes: Arc<Mutex<FlowClasses>>,
}

/// Addresses of one session, which are given back when this is dropped.
struct Lease<'a> {
    gateway: &'a Gateway,
    session: u64,
    number: u32,
    given: Addresses,
    classes: Arc<Mutex<FlowClasses>>,
}

impl Lease<'_> {
    /// Takes the packets out of messages, of whose flows the classes are learned. Those whose source
    /// is not the device's are dropped.
    fn unwrap(&self, messages: &mut Vec<Bytes>) {
        let mut classes = lock(&self.classes);
        messages.retain_mut(|message| {
            let (class, packet) = packet::of_message(std::mem::take(message));
            let its_own = |from| self.given.iter().any(|ip| ip == from);
            let is_its_own = packet::ends(&packet).is_some_and(|(from, _)| its_own(from));
            if is_its_own {
                classes.learn(|| packet::flow(&packet), class);
            }
            *message = packet;
            is_its_own
        });
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut devices = self.gateway.devices();
        for ip in self.given.iter() {
            // Unless a later session of the device has them.
            if devices
                .at
                .get(&ip)
                .is_some_and(|d| d.number == self.session)
            {
                devices.at.remove(&ip);
            }
        }
        devices.pool.give_back(self.number);
    }
}

impl Gateway {
    /// Creates the interface, and the rules about its packets, in the network namespace of the
    /// calling thread.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub async fn create(pools: Pools, allowed: &Allowed) -> Result<Self, TunnelError> {
        let interface = Interface::create(INTERFACE.to_owned()).await?;
        let own = pools.own();
        let mut addresses = vec![(IpAddr::from(own.v4), pools.v4.prefix_len())];
        if let (Some(own), Some(net)) = (own.v6, pools.v6) {
            addresses.push((own.into(), net.prefix_len()));
        }
        interface.set_addresses(&addresses).await?;
        let mut nftables = Nftables::open()?;
        nftables.replace(&rules::gateway(pools, allowed))?;
        Ok(Self {
            interface,
            writer: tokio::sync::Mutex::default(),
            devices: Mutex::new(Devices {
                pool: Pool::new(pools),
                at: HashMap::new(),
                next: 0,
            }),
            _nftables: nftables,
        })
    }

    fn devices(&self) -> MutexGuard<'_, Devices> {
        lock(&self.devices)
    }

    /// Sends packets to devices for as long as it is polled; returns why no more come.
    pub async fn run(&self) -> io::Error {
        let mut reader = Reader::default();
        let mut packets = Vec::new();
        loop {
            if let Err(e) = reader.read(&self.interface, &mut packets).await {
                return e;
            }
            let mut rest = packets.drain(..).peekable();
            while let Some(first) = rest.next() {
                let Some((_, to)) = packet::ends(&first) else {
                    continue;
                };
                let device = self.devices().at.get(&to).cloned();
                let Some(Device {
                    session, classes, ..
                }) = device
                else {
                    continue;
                };
                // What one flow has sent comes together.
                let same = |p: &Bytes| packet::ends(p).is_some_and(|(_, other)| other == to);
                let all = std::iter::once(first).chain(std::iter::from_fn(|| rest.next_if(same)));
                let classes = lock(&classes);
                let queued = |p: Bytes| {
                    let mut queued = packet::queued(p, DEFAULT_NUMBER);
                    queued.class = classes.class(queued.flow);
                    queued
                };
                let _ = session.send_packets(all.map(queued));
            }
        }
    }

    /// Gives a session addresses, and takes its packets until it ends.
    pub(crate) async fn serve(&self, session: &Session, mut stream: Stream) {
        let lease = match session.has_messages() {
            true => self.lease(session),
            false => None,
        };
        let Some(lease) = lease else {
            let _ = wire::reply(&mut stream, Err(Refusal::Unreachable)).await;
            let _ = stream.shutdown().await;
            return;
        };
        if wire::reply(&mut stream, Ok(())).await.is_err()
            || write(&mut stream, lease.given).await.is_err()
            || stream.shutdown().await.is_err()
        {
            return;
        }
        let mut packets = Vec::new();
        while session.messages(&mut packets).await.is_ok() {
            lease.unwrap(&mut packets);
            let mut writer = self.writer.lock().await;
            writer.write(&self.interface, &packets).await;
            drop(writer);
            packets.clear();
            packets.shrink_to(AT_REST);
        }
    }

    /// Takes addresses for a session; none where none are left, or it has some.
    fn lease(&self, session: &Session) -> Option<Lease<'_>> {
        let mut devices = self.devices();
        if devices.at.values().any(|d| d.session.is(session)) {
            return None;
        }
        let number_of_session = devices.next;
        devices.next += 1;
        let mut holder = Holder::default();
        match session.peer() {
            Ok(Some(key)) => holder.copy_from_slice(key.as_bytes()),
            _ => holder[..8].copy_from_slice(&number_of_session.to_be_bytes()),
        }
        let (number, given) = devices.pool.take(holder)?;
        let classes = Arc::default();
        for ip in given.iter() {
            let device = Device {
                number: number_of_session,
                session: session.clone(),
                classes: Arc::clone(&classes),
            };
            devices.at.insert(ip, device);
        }
        drop(devices);
        Some(Lease {
            gateway: self,
            session: number_of_session,
            number,
            given,
            classes,
        })
    }
}
