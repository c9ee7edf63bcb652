//! The end that has the accesses.

use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use noq_proto::{ClientConfig, EndpointConfig};
use tokio::task::JoinHandle;

use super::core::{End, Port, Shared};
use super::driver::Driver;
use super::follow::{State, Turns, Watch};
use super::session::Session;
use super::socket::Socket;
use crate::{Access, Dial, Error, Host, Options, Target};

/// Between two times that a device without a session takes new ports.
const RENEW: Duration = Duration::from_secs(10);

/// A device that connects to a proxy over its accesses.
///
/// Accesses with an [`Access::interface`] are followed: what the kernel tells of their
/// links and addresses is acted on at once. Others are as they are given, until
/// [`Device::link`] changes them.
#[derive(Clone)]
pub struct Device {
    shared: Shared,
    uplinks: Arc<Vec<Uplink>>,
    /// State of each link, and whether it may be used.
    links: Arc<Mutex<Vec<(State, bool)>>>,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device")
            .field("uplinks", &self.uplinks)
            .finish_non_exhaustive()
    }
}

/// Settings of an access that are fixed.
#[derive(Debug)]
struct Uplink {
    name: String,
    interface: Option<String>,
    address: Option<IpAddr>,
    /// The proxy.
    to: IpAddr,
}

impl Uplink {
    fn port(&self, state: State) -> io::Result<Option<Port>> {
        let address = state.address.filter(|_| state.up);
        let bind = |a| Socket::bind(SocketAddr::new(a, 0), self.interface.as_deref());
        Ok(address.map(bind).transpose()?.map(Port::new))
    }
}

impl Device {
    /// Connects, with whichever access answers first. A task of the calling runtime
    /// drives the session until it has ended; sockets belong to the network namespace of
    /// the calling thread.
    ///
    /// # Errors
    /// [`Error::NoAnswer`], [`Error::Ended`] (the proxy refused, or is another),
    /// [`Error::NoAccess`] where there is no access at all, [`Error::Io`], and what
    /// [`Host::connect`] refuses.
    pub async fn connect(
        remote: SocketAddr,
        name: &str,
        tls: ClientConfig,
        options: Options,
        accesses: Vec<Access>,
    ) -> Result<(Self, Session), Error> {
        let target = Target {
            remote,
            name: name.to_owned(),
            config: tls,
            options,
            keep: false,
        };
        let (device, left) = Self::open(target, accesses).await?;
        let session = connected(&device.shared).await?;
        drop(left);
        Ok((device, session))
    }

    /// Connects, and again whenever a session is lost or the proxy has forgotten it: see
    /// [`Keeper`].
    ///
    /// # Errors
    /// As [`Device::connect`], but for those that may be others later.
    pub async fn keep(
        remote: SocketAddr,
        name: &str,
        tls: ClientConfig,
        options: Options,
        accesses: Vec<Access>,
    ) -> Result<Keeper, Error> {
        let target = Target {
            remote,
            name: name.to_owned(),
            config: tls,
            options,
            keep: true,
        };
        let (device, leave) = Self::open(target, accesses).await?;
        let renewing = tokio::spawn(renew(device.clone()));
        Ok(Keeper {
            device,
            renewing,
            _leave: leave,
        })
    }

    async fn open(target: Target, mut accesses: Vec<Access>) -> Result<(Self, Leave), Error> {
        let remote = target.remote;
        let uplinks: Vec<Uplink> = accesses
            .iter()
            .map(|a| Uplink {
                name: a.name.clone(),
                interface: a.interface.clone(),
                address: a.address.map(|n| n.addr()),
                to: remote.ip(),
            })
            .collect();
        if uplinks.is_empty() {
            return Err(Error::NoAccess {
                remote,
                accesses: String::new(),
            });
        }
        let follows = uplinks.iter().any(|u| u.interface.is_some());
        let watch = match follows {
            true => Some(Watch::open()?),
            false => None,
        };
        if let Some(watch) = &watch {
            let links = watch.links().await?;
            for (a, u) in accesses.iter_mut().zip(&uplinks) {
                if let Some(interface) = &u.interface {
                    let now = Turns::default().state(&links, interface, u.to, u.address);
                    (a.up, a.address) = (now.up, now.address.map(Into::into));
                }
            }
        }
        let mut ports = Vec::new();
        let mut states = Vec::new();
        for (a, u) in accesses.iter().zip(&uplinks) {
            let now = State {
                up: a.up,
                address: a.address.map(|n| n.addr()),
            };
            ports.push(u.port(now).map_err(|e| bind_failed(&u.name, e))?);
            states.push(now);
        }
        let mut host = Host::new(EndpointConfig::default());
        let now = Instant::now();
        let dial = Dial::begin(&mut host, target, accesses, now)?;
        let shared = Shared::new(
            host,
            End::Device {
                dial: Some(Box::new(dial)),
            },
            ports,
        );
        let driver = Driver::new(shared.clone()).map_err(|source| Error::Io {
            attempted: "make a timer".to_owned(),
            source,
        })?;
        let device = Self {
            shared: shared.clone(),
            uplinks: Arc::new(uplinks),
            links: Arc::new(Mutex::new(states.into_iter().map(|s| (s, true)).collect())),
        };
        // Ends the task also where the caller stops waiting.
        let left = Leave(shared.clone());
        let driving = tokio::spawn(driver);
        if let Some(watch) = watch {
            let following = tokio::spawn(follow(watch, device.clone()));
            tokio::spawn(async move {
                let _ = driving.await;
                following.abort();
            });
        }
        Ok((device, left))
    }

    /// For how long there has been no session, or none on which anything comes back; none where
    /// there is one.
    pub fn lost_for(&self) -> Option<Duration> {
        self.shared.lock().lost_for(Instant::now())
    }

    fn is_without_session(&self) -> bool {
        self.shared.lock().is_without_session()
    }

    /// Waits until no connection is left: a program that ends sooner after a session was
    /// closed leaves the other end to find out by itself.
    pub async fn wait_idle(&self) {
        poll_fn(|cx| self.shared.lock().poll_idle(cx)).await;
    }

    /// The link of an access that is not followed has changed: whether it is up, and
    /// its address. What is as before changes nothing.
    ///
    /// # Errors
    /// [`Error::UnknownAccess`], and [`Error::Io`] where no socket can be had at that
    /// address: the access is down then.
    pub fn link(&self, access: &str, up: bool, address: Option<IpAddr>) -> Result<(), Error> {
        let i = self.find(access)?;
        self.change(i, |link| link.0 = State { up, address })
    }

    /// Uses an access, or leaves it out whatever its link is.
    ///
    /// # Errors
    /// As [`Device::link`].
    pub fn enable(&self, access: &str, enabled: bool) -> Result<(), Error> {
        let i = self.find(access)?;
        self.change(i, |link| link.1 = enabled)
    }

    /// Whether the link of an access is up, and its address there.
    ///
    /// # Errors
    /// [`Error::UnknownAccess`].
    pub fn link_of(&self, access: &str) -> Result<(bool, Option<IpAddr>), Error> {
        let i = self.find(access)?;
        let (state, _) = self.links.lock().unwrap_or_else(PoisonError::into_inner)[i];
        Ok((state.up, state.address))
    }

    fn find(&self, access: &str) -> Result<usize, Error> {
        let found = self.uplinks.iter().position(|u| u.name == access);
        found.ok_or_else(|| {
            let known: Vec<&str> = self.uplinks.iter().map(|u| u.name.as_str()).collect();
            Error::UnknownAccess {
                name: access.to_owned(),
                known: known.join(", "),
            }
        })
    }

    /// Changes what is known of a link; its socket is another if that makes a difference.
    fn change(&self, i: usize, change: impl FnOnce(&mut (State, bool))) -> Result<(), Error> {
        let now = {
            let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
            let used = |(state, enabled): (State, bool)| State {
                up: state.up && enabled,
                ..state
            };
            let before = used(links[i]);
            change(&mut links[i]);
            let now = used(links[i]);
            if now == before {
                return Ok(());
            }
            now
        };
        let uplink = &self.uplinks[i];
        let (port, result) = match uplink.port(now) {
            Ok(port) => (port, Ok(())),
            Err(e) => (None, Err(bind_failed(&uplink.name, e))),
        };
        let up = port.is_some();
        self.shared.lock().link(i, up, now.address, port);
        result
    }

    /// Makes all accesses send from new ports: what a middlebox remembers of the old ones may be
    /// wrong by now, and each packet would keep that alive.
    fn renew(&self) {
        for i in 0..self.uplinks.len() {
            let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
            let (state, enabled) = links[i];
            drop(links);
            // Where that fails, the old one is as good.
            if enabled && let Ok(Some(port)) = self.uplinks[i].port(state) {
                self.shared.lock().renew(i, port);
            }
        }
    }
}

fn bind_failed(access: &str, source: io::Error) -> Error {
    Error::Io {
        attempted: format!("open a UDP socket on access \"{access}\""),
        source,
    }
}

impl std::fmt::Debug for Leave {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leave").finish_non_exhaustive()
    }
}

/// The task ends with the session; or at once, where nobody waits for that any more.
struct Leave(Shared);

impl Drop for Leave {
    fn drop(&mut self) {
        let mut core = self.0.lock();
        core.left = true;
        core.stop_dialling();
        // Nobody takes these any more.
        for id in std::mem::take(&mut core.taken_in) {
            core.leave(id);
        }
        core.stir();
    }
}

/// Keeps a device connected: gives one session after the other, as long as it is held.
///
/// While nothing comes back on any path of a session, connections are tried beside it, on each
/// access once a second (every five after a quarter of an hour), with a packet of 1228 bytes
/// each. The session ends where one of these gets through and it does not answer itself within
/// some round trips, or after 30 s; the next one is there then as soon as any access works.
#[derive(Debug)]
pub struct Keeper {
    device: Device,
    renewing: JoinHandle<()>,
    _leave: Leave,
}

impl Keeper {
    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// The next session.
    ///
    /// # Errors
    /// Why there is none yet, now and then, as [`Device::connect`]: it is tried on. After
    /// [`Error::Io`] alone it is not.
    pub async fn session(&self) -> Result<Session, Error> {
        connected(&self.device.shared).await
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.renewing.abort();
    }
}

/// Renews the ports of a device that finds no proxy, as long as that lasts.
async fn renew(device: Device) {
    loop {
        tokio::time::sleep(RENEW).await;
        let lost = device.lost_for();
        if lost.is_some_and(|t| t >= RENEW) && device.is_without_session() {
            device.renew();
        }
    }
}

async fn connected(shared: &Shared) -> Result<Session, Error> {
    let id = poll_fn(|cx| shared.lock().poll_session(cx)).await?;
    Ok(Session::new(shared.clone(), id))
}

/// How often it is looked whether paths work.
const LOOK: Duration = Duration::from_secs(1);

/// Follows the interfaces for as long as it is let, and has the next address of one tried from
/// whose first nothing gets through.
async fn follow(mut watch: Watch, device: Device) {
    let mut turns: Vec<Turns> = device.uplinks.iter().map(|_| Turns::default()).collect();
    loop {
        let Ok(links) = watch.links().await else {
            return;
        };
        for (i, (u, turns)) in device.uplinks.iter().zip(&mut turns).enumerate() {
            if let Some(interface) = &u.interface {
                let now = turns.state(&links, interface, u.to, u.address);
                // An address that is gone again is followed by the event that tells so.
                let _ = device.change(i, |link| link.0 = now);
            }
        }
        loop {
            tokio::select! {
                changed = watch.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                () = tokio::time::sleep(LOOK) => {
                    let works = device.shared.lock().accesses_that_work(Instant::now());
                    let now = Instant::now();
                    let mut turn = false;
                    let used: Vec<bool> = {
                        let links = device.links.lock().unwrap_or_else(PoisonError::into_inner);
                        links.iter().map(|(state, enabled)| state.up && *enabled).collect()
                    };
                    for ((u, turns), used) in device.uplinks.iter().zip(&mut turns).zip(used) {
                        let mine = works.contains(&u.name) || !used;
                        let other = works.iter().any(|w| *w != u.name);
                        turn |= turns.look(mine, other, now);
                    }
                    if turn {
                        break;
                    }
                }
            }
        }
    }
}
