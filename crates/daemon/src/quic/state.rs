//! All that this daemon knows, and how requests change it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use braid_api::{EventKind, Role, SchedulerChange};
use braid_mpquic::{Access, AccessChange, Device, Options, Proxy, Session, Steering};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::DaemonError;
use crate::config::quic::{self, Quic, Who};
use crate::config::{self, Config};
use crate::log::Log;
use crate::meter::Meter;
use crate::state::{lock, now};

/// How the sessions are steered: as configured, and as changed by requests since.
#[derive(Clone, Debug)]
pub(super) struct Steered {
    pub(super) steering: Steering,
    pub(super) accesses: Vec<Access>,
    /// Left out by a request, by name.
    pub(super) disabled: Vec<String>,
}

pub(super) struct State {
    pub(super) role: Role,
    file: PathBuf,
    pub(super) config: Mutex<Config>,
    pub(super) quic: Quic,
    pub(super) steered: Mutex<Steered>,
    /// By the number that requests call them by.
    pub(super) sessions: Mutex<BTreeMap<u32, Session>>,
    /// Weights of single sessions.
    pub(super) own: Mutex<BTreeMap<u32, BTreeMap<String, f64>>>,
    numbers: Mutex<u32>,
    /// The session that new connections of programs take, at the device.
    pub(super) current: watch::Sender<Option<Session>>,
    pub(super) device: Mutex<Option<Device>>,
    pub(super) proxy: Mutex<Option<Arc<Proxy>>>,
    pub(super) config_error: Mutex<Option<String>>,
    /// Why the device has no session, where that is not for a moment only.
    pub(super) trouble: Mutex<Option<String>>,
    /// Notes for the user, each in a sentence.
    pub(super) notes: Mutex<Vec<String>>,
    pub(super) log: Mutex<Log>,
    /// By the numbers of session and path.
    pub(super) meter: Mutex<Meter<(u32, u32)>>,
}

fn access(a: &config::Access, role: Role) -> Access {
    Access {
        name: a.name.clone(),
        interface: a.interface.as_ref().map(ToString::to_string),
        address: a.address,
        up: true,
        weight: a.weight.unwrap_or(1.0),
        priority: a.priority.unwrap_or(0).into(),
        backup: a.backup && role == Role::Device,
        expected: a.expected,
    }
}

fn steered(config: &Config, quic: &Quic, role: Role) -> Result<Steered, DaemonError> {
    let default = quic::default_steering(quic.reinject);
    let change = config.scheduler.clone().unwrap_or_default();
    let steering = quic::steering(&change, &default, quic.lane).map_err(DaemonError::Config)?;
    Ok(Steered {
        steering,
        accesses: config.accesses.iter().map(|a| access(a, role)).collect(),
        disabled: Vec::new(),
    })
}

impl State {
    pub(super) fn new(role: Role, file: &Path, config: Config) -> Result<Self, DaemonError> {
        let Some(quic) = config.quic.clone() else {
            return Err(DaemonError::Config(format!(
                "{}: [mpquic] is missing",
                file.display()
            )));
        };
        Ok(Self {
            role,
            file: file.to_owned(),
            steered: Mutex::new(steered(&config, &quic, role)?),
            config: Mutex::new(config),
            quic,
            sessions: Mutex::new(BTreeMap::new()),
            own: Mutex::default(),
            numbers: Mutex::new(0),
            current: watch::channel(None).0,
            device: Mutex::new(None),
            proxy: Mutex::new(None),
            config_error: Mutex::new(None),
            trouble: Mutex::new(None),
            notes: Mutex::new(Vec::new()),
            log: Mutex::new(Log::default()),
            meter: Mutex::default(),
        })
    }

    pub(super) fn options(&self) -> Options {
        Options {
            lane: self.quic.lane,
            steering: lock(&self.steered).steering.clone(),
            congestion_control: self.quic.cc.clone(),
            resume: self.quic.resume,
            acks: self.quic.acks,
            send_window: self.quic.send_window,
            heed: self.quic.trust != Who::Anyone,
            reset_key: None,
        }
    }

    pub(super) fn note(&self, what: String) {
        eprintln!("braid: {what}");
        let mut notes = lock(&self.notes);
        if !notes.contains(&what) {
            notes.push(what);
        }
    }

    pub(super) fn log(&self, access: Option<String>, what: EventKind) {
        lock(&self.log).add(now(), access, what);
    }

    /// Follows a session until it has ended; returns why it has.
    pub(super) async fn follow(&self, session: &Session) -> String {
        let token = {
            let mut numbers = lock(&self.numbers);
            *numbers += 1;
            *numbers
        };
        lock(&self.sessions).insert(token, session.clone());
        self.log(None, EventKind::Created { token });
        // Requests that came while it was made.
        if let Err(e) = self.steer(token, session) {
            self.note(e.to_string());
        }
        let mut events = session.events().ok();
        let why = loop {
            let change = async {
                match &mut events {
                    Some(events) => events.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ended = session.ended() => break ended.to_string(),
                change = change => match change {
                    Ok(change) => super::told::log(self, &change),
                    Err(tokio::sync::broadcast::error::RecvError::Lagged(_)) => {
                        lock(&self.log).lost();
                    }
                    Err(_) => events = None,
                },
            }
        };
        lock(&self.sessions).remove(&token);
        lock(&self.own).remove(&token);
        self.log(None, EventKind::Closed { token });
        why
    }

    /// Steers a session as all are.
    fn steer(&self, token: u32, session: &Session) -> Result<(), DaemonError> {
        let steered = lock(&self.steered).clone();
        let refused = |e: braid_mpquic::Error| DaemonError::Refused(e.to_string());
        session.set_steering(&steered.steering).map_err(refused)?;
        let weights = self.weights_of(token);
        if !weights.is_empty() {
            session.set_weights(&weights).map_err(refused)?;
        }
        for a in &steered.accesses {
            let change = AccessChange {
                priority: Some(a.priority),
                backup: Some(a.backup),
                expected: Some(a.expected),
            };
            session.set_access(&a.name, change).map_err(refused)?;
        }
        Ok(())
    }

    /// Steers all sessions anew, those to come included; what an earlier check has let pass does
    /// not fail.
    pub(super) fn steer_all(&self) -> Result<(), DaemonError> {
        if let Some(proxy) = &*lock(&self.proxy) {
            let accesses = lock(&self.steered).accesses.clone();
            proxy
                .set_options(&self.options(), accesses)
                .map_err(|e| DaemonError::Refused(e.to_string()))?;
        }
        let sessions = lock(&self.sessions).clone();
        for (token, session) in sessions {
            match self.steer(token, &session) {
                // It has ended meanwhile.
                Err(_) if session.paths().is_err() => {}
                done => done?,
            }
        }
        Ok(())
    }

    pub(super) fn schedule(
        &self,
        change: &SchedulerChange,
    ) -> Result<SchedulerChange, DaemonError> {
        let new = {
            let mut steered = lock(&self.steered);
            let new = quic::steering(change, &steered.steering, self.quic.lane);
            steered.steering = new.map_err(DaemonError::Config)?;
            steered.steering.clone()
        };
        self.steer_all()?;
        Ok(SchedulerChange {
            name: Some(new.scheduler),
            wrr_mode: Some(new.wrr_mode),
            ..SchedulerChange::default()
        })
    }

    /// Reads the configuration again: how accesses are steered is taken over, what
    /// else has changed needs another start.
    fn reload(&self) {
        let done = self.read_again();
        let error = done.err().map(|e| e.to_string());
        if let Some(e) = &error {
            eprintln!("braid: {e}");
        }
        lock(&self.config_error).clone_from(&error);
        self.log(None, EventKind::Configured { error });
    }

    fn read_again(&self) -> Result<(), DaemonError> {
        let config = Config::load(&self.file, self.role)?;
        let fixed = |c: &Config| {
            let of = |a: &config::Access| (a.name.clone(), a.interface.clone(), a.address);
            let accesses: Vec<_> = c.accesses.iter().map(of).collect();
            (
                c.engine,
                c.metrics,
                c.proxy.clone(),
                c.quic.clone(),
                accesses,
            )
        };
        if fixed(&config) != fixed(&lock(&self.config)) {
            return Err(DaemonError::Config(format!(
                "{}: engine, proxy, [metrics], [mpquic] and the accesses' interfaces and addresses cannot \
                 change while it runs: restart the daemon",
                self.file.display()
            )));
        }
        let new = steered(&config, &self.quic, self.role)?;
        *lock(&self.steered) = new;
        *lock(&self.config) = config;
        self.steer_all()
    }

    /// Ends all sessions, so that the other ends know.
    pub(super) async fn close(&self) {
        self.current.send_replace(None);
        let sessions = std::mem::take(&mut *lock(&self.sessions));
        sessions.values().for_each(Session::close);
        drop(sessions);
        let (device, proxy) = (lock(&self.device).take(), lock(&self.proxy).take());
        let idle = async {
            if let Some(device) = &device {
                device.wait_idle().await;
            }
            if let Some(proxy) = &proxy {
                proxy.wait_idle().await;
            }
        };
        // Who does not answer is not waited for.
        let _ = tokio::time::timeout(std::time::Duration::from_millis(500), idle).await;
    }
}

pub(super) fn reload_on_hangup(state: Arc<State>) -> Result<(), DaemonError> {
    let mut hangup = signal(SignalKind::hangup())
        .map_err(|e| DaemonError::Failed(format!("listen to SIGHUP: {e}")))?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            state.reload();
        }
    });
    Ok(())
}
