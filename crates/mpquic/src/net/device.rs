//! The end that has the accesses.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use braid_access::settings::{AccessSpec, Settings};
use braid_api::AccessState;
use noq_proto::{ClientConfig, EndpointConfig};
use tokio::task::JoinHandle;

use super::core::{End, Port, Shared};
use super::driver::Driver;
use super::follow::{Found, State, Turns, Watch};
use super::session::Session;
use super::socket::Socket;
use crate::{Access, Dial, Error, Host, Options, Target};

/// Between two times that a device without a session takes new ports.
const RENEW: Duration = Duration::from_secs(10);

/// A device that connects to a proxy over its accesses.
///
/// Accesses with an [`Access::interface`] are followed: what the kernel tells of their
/// links, addresses and routes is acted on at once. Others are as they are given, until
/// [`Device::link`] changes them.
#[derive(Clone)]
pub struct Device {
    shared: Shared,
    uplinks: Arc<Vec<Uplink>>,
    links: Arc<Mutex<Links>>,
}

/// State of the links of all accesses.
#[derive(Debug)]
struct Links {
    /// By the number of the access: its link, and whether it may be used.
    all: Vec<(State, bool)>,
    /// Interfaces and addresses of those that are followed, as they were found last.
    found: Option<Found>,
}

/// Link of an access as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Whether one of its interfaces is up and has a carrier.
    pub up: bool,
    /// The address that is used.
    pub address: Option<IpAddr>,
    /// The interface that packets leave by; none where the routes say that.
    pub interface: Option<String>,
    /// State of the access where no address of it leads out, and why; absent where one does, and
    /// where its interfaces are not followed.
    pub out: Option<(AccessState, String)>,
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
    /// Its number among those that are followed.
    followed: Option<usize>,
}

impl Uplink {
    /// Its link as it is found, where it is followed.
    fn state(&self, turns: &mut Turns, found: &Found) -> Option<State> {
        self.followed.map(|n| turns.state(found, n))
    }
}

fn port(state: &State) -> io::Result<Option<Port>> {
    let address = state.address.filter(|_| state.up);
    let bind = |a| Socket::bind(SocketAddr::new(a, 0), state.interface.as_deref());
    Ok(address.map(bind).transpose()?.map(Port::new))
}

/// Returns the settings by which the interfaces of the accesses are found that are followed.
fn settings(accesses: &[Access], options: &Options, proxy: IpAddr) -> Result<Settings, Error> {
    let followed = accesses.iter().filter_map(|a| {
        let interface = a.interface.as_ref()?;
        Some(match interface.parse() {
            Ok(pattern) => Ok(AccessSpec {
                address: a.address.map(|n| n.addr()),
                ..AccessSpec::new(&*a.name, pattern)
            }),
            Err(why) => Err(Error::BadInterface {
                access: a.name.clone(),
                why,
            }),
        })
    });
    Ok(Settings {
        accesses: followed.collect::<Result<_, _>>()?,
        ignore: options.ignore.clone(),
        proxy: vec![proxy],
        ..Settings::default()
    })
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
        let settings = settings(&accesses, &target.options, remote.ip())?;
        let mut numbers = 0..;
        let uplink = |a: &Access| Uplink {
            name: a.name.clone(),
            followed: a.interface.as_ref().and_then(|_| numbers.next()),
        };
        let uplinks: Vec<Uplink> = accesses.iter().map(uplink).collect();
        if uplinks.is_empty() {
            return Err(Error::NoAccess {
                remote,
                accesses: String::new(),
            });
        }
        let watch = match settings.accesses.is_empty() {
            true => None,
            false => Some(Watch::open()?),
        };
        let found = match &watch {
            Some(watch) => Some(watch.found(&settings).await?),
            None => None,
        };
        let mut ports = Vec::new();
        let mut states = Vec::new();
        for (a, u) in accesses.iter_mut().zip(&uplinks) {
            let followed = found
                .as_ref()
                .and_then(|f| u.state(&mut Turns::default(), f));
            let now = followed.unwrap_or(State {
                up: a.up,
                address: a.address.map(|n| n.addr()),
                interface: None,
            });
            (a.up, a.address) = (now.up, now.address.map(Into::into));
            ports.push(port(&now).map_err(|e| bind_failed(&u.name, e))?);
            states.push((now, true));
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
            links: Arc::new(Mutex::new(Links { all: states, found })),
        };
        // Ends the task also where the caller stops waiting.
        let left = Leave(shared.clone());
        let driving = tokio::spawn(driver);
        if let Some(watch) = watch {
            let following = tokio::spawn(follow(watch, settings, device.clone()));
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
        self.change(i, |link| (link.0.up, link.0.address) = (up, address))
    }

    /// Uses an access, or leaves it out whatever its link is.
    ///
    /// # Errors
    /// As [`Device::link`].
    pub fn enable(&self, access: &str, enabled: bool) -> Result<(), Error> {
        let i = self.find(access)?;
        self.change(i, |link| link.1 = enabled)
    }

    /// Returns the link of an access.
    ///
    /// # Errors
    /// [`Error::UnknownAccess`].
    pub fn link_of(&self, access: &str) -> Result<Link, Error> {
        let i = self.find(access)?;
        let links = self.links();
        let state = links.all[i].0.clone();
        let found = self.uplinks[i].followed.zip(links.found.as_ref());
        Ok(Link {
            up: state.up,
            address: state.address,
            interface: state.interface,
            out: found.and_then(|(n, f)| f.plan.out[n].clone()),
        })
    }

    /// Returns the interfaces that packets leave by.
    pub fn interfaces(&self) -> BTreeSet<String> {
        let links = self.links();
        let all = links.all.iter();
        all.filter_map(|(state, _)| state.interface.clone())
            .collect()
    }

    /// Returns the interfaces that serve no access, each with the reason.
    pub fn ignored(&self) -> Vec<(String, String)> {
        let links = self.links();
        let found = links.found.as_ref();
        found.map_or_else(Vec::new, |f| f.plan.ignored.clone())
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
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
            let mut links = self.links();
            let link = &mut links.all[i];
            let used = |(state, enabled): &(State, bool)| State {
                up: state.up && *enabled,
                ..state.clone()
            };
            let before = used(link);
            change(link);
            let now = used(link);
            if now == before {
                return Ok(());
            }
            now
        };
        let (port, result) = match port(&now) {
            Ok(port) => (port, Ok(())),
            Err(e) => (None, Err(bind_failed(&self.uplinks[i].name, e))),
        };
        let up = port.is_some();
        self.shared.lock().link(i, up, now.address, port);
        result
    }

    /// Makes all accesses send from new ports: what a middlebox remembers of the old ones may be
    /// wrong by now, and each packet would keep that alive.
    fn renew(&self) {
        for i in 0..self.uplinks.len() {
            let (state, enabled) = self.links().all[i].clone();
            // Where that fails, the old one is as good.
            if enabled && let Ok(Some(port)) = port(&state) {
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
        core.wake_driver();
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
async fn follow(mut watch: Watch, settings: Settings, device: Device) {
    let mut turns: Vec<Turns> = device.uplinks.iter().map(|_| Turns::default()).collect();
    loop {
        let Ok(found) = watch.found(&settings).await else {
            return;
        };
        for (i, (u, turns)) in device.uplinks.iter().zip(&mut turns).enumerate() {
            if let Some(now) = u.state(turns, &found) {
                // An address that is gone again is followed by the event that tells so.
                let _ = device.change(i, |link| link.0 = now);
            }
        }
        device.links().found = Some(found);
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
                    let used = |(state, enabled): &(State, bool)| state.up && *enabled;
                    let used: Vec<bool> = device.links().all.iter().map(used).collect();
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
