//! The loop: one thread that sleeps until a packet comes or is due.

use std::sync::mpsc::Receiver;

use anyhow::{Context, Result};
use braid_core::Time;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::EventFd;
use nix::sys::signalfd::SignalFd;

use super::commands::Command;
use super::config::EmulatorConfig;
use super::generation::Generation;
use super::outbox::Outbox;
use super::packet::Packet;
use super::port::{Port, Read};
use super::realtime::Granted;
use super::timer::{Alarm, monotonic_ns};
use crate::model::{LinkChange, LinkId};

/// Packets or super-packets read from a port, and written in all, before the
/// others have their turn.
const READS: usize = 16;
const WRITES: usize = 16;
/// Reads in a row that gave nothing although the port called for attention,
/// after which it is given up.
const MAX_STRIKES: u32 = 1000;

const ALARM: u64 = u64::MAX;
pub(super) const COMMANDS: u64 = u64::MAX - 1;
pub(super) const SIGNAL: u64 = u64::MAX - 2;

/// Inputs that wake the loop beside packets and time.
pub(crate) struct Inputs {
    /// SIGTERM and SIGINT.
    pub(crate) signals: SignalFd,
    /// Readable when there are commands.
    pub(crate) bell: std::sync::Arc<EventFd>,
    /// The commands.
    pub(crate) commands: Receiver<Command>,
}

/// A change of a link that waits for its time.
pub(crate) struct Scheduled {
    /// Scenario time.
    pub(crate) at: Time,
    pub(crate) link: LinkId,
    pub(crate) change: LinkChange,
}

/// The emulator at work.
pub(crate) struct Loop {
    pub(crate) config: EmulatorConfig,
    pub(crate) ports: Vec<Port>,
    pub(super) strikes: Vec<u32>,
    /// The link that each port feeds.
    pub(super) feeds: Vec<usize>,
    pub(crate) out: Outbox,
    pub(crate) models: Generation,
    /// Models of before the epoch was set, oldest first, until what is under way
    /// in them has arrived.
    pub(crate) former: Vec<Generation>,
    /// An epoch that lies ahead.
    pub(crate) next_epoch: Option<u64>,
    /// In order of time.
    pub(crate) scheduled: Vec<Scheduled>,
    pub(crate) granted: Granted,
    pub(crate) turns: u64,
    pub(crate) stop: bool,
    pub(super) epoll: Epoll,
    alarm: Alarm,
    pub(super) inputs: Inputs,
}

impl Loop {
    pub(crate) fn new(
        config: EmulatorConfig,
        ports: Vec<Port>,
        out: Outbox,
        granted: Granted,
        inputs: Inputs,
    ) -> Result<Self> {
        let now = monotonic_ns();
        let ahead = config.epoch_ns.filter(|&e| e > now);
        let base = config.epoch_ns.filter(|&e| e <= now).unwrap_or(now);
        let models = Generation::new(&config, base)?;
        let mut feeds = vec![0; ports.len()];
        for (i, link) in out.links.iter().enumerate() {
            feeds[link.from] = i;
        }
        let epoll =
            Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).context("cannot create an epoll set")?;
        let alarm = Alarm::new().context("cannot create a timer")?;
        let watch = |fd: std::os::fd::BorrowedFd<'_>, flags, tag| {
            epoll
                .add(fd, EpollEvent::new(EpollFlags::EPOLLIN | flags, tag))
                .context("cannot watch a descriptor")
        };
        use std::os::fd::AsFd;
        for (i, p) in ports.iter().enumerate() {
            watch(p.as_fd(), EpollFlags::empty(), i as u64)?;
        }
        // Edge-triggered: it need not be read.
        watch(alarm.as_fd(), EpollFlags::EPOLLET, ALARM)?;
        watch(inputs.bell.as_fd(), EpollFlags::empty(), COMMANDS)?;
        watch(inputs.signals.as_fd(), EpollFlags::empty(), SIGNAL)?;
        Ok(Self {
            strikes: vec![0; ports.len()],
            config,
            ports,
            feeds,
            out,
            models,
            former: Vec::new(),
            next_epoch: ahead,
            scheduled: Vec::new(),
            granted,
            turns: 0,
            stop: false,
            epoll,
            alarm,
            inputs,
        })
    }

    /// Runs until told to stop by signal or command.
    pub(crate) fn run(&mut self) -> Result<()> {
        let mut events = [EpollEvent::empty(); 64];
        while !self.stop {
            self.turns += 1;
            let next = self.next_event(self.out.slack());
            let busy = next.is_some_and(|t| t <= monotonic_ns());
            if !busy {
                self.alarm.set(next).context("cannot set the timer")?;
            }
            let timeout = if busy {
                EpollTimeout::ZERO
            } else {
                EpollTimeout::NONE
            };
            let n = match self.epoll.wait(&mut events, timeout) {
                Ok(n) => n,
                Err(Errno::EINTR) => 0,
                Err(e) => return Err(e).context("cannot wait for packets"),
            };
            for e in &events[..n] {
                match e.data() {
                    ALARM => self.woken(busy),
                    COMMANDS => self.obey(),
                    SIGNAL => self.stop = true,
                    port => self.read(port as usize, e.events()),
                }
            }
            self.catch_up(monotonic_ns());
            self.out.write(&self.ports, WRITES);
        }
        Ok(())
    }

    /// When there is something to do if nothing comes (`CLOCK_MONOTONIC`) and
    /// the models are asked `slack` after they have something to say.
    pub(super) fn next_event(&self, slack: u64) -> Option<u64> {
        let former = self.former.iter().filter_map(Generation::next_event).min();
        [
            self.models.next_event().map(|t| t.saturating_add(slack)),
            former.map(|t| t.saturating_add(slack)),
            self.out.next(),
            self.next_change(),
            self.next_epoch,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// When the next scheduled change is due; not before a coming epoch, to
    /// which its time refers.
    fn next_change(&self) -> Option<u64> {
        let next = self
            .scheduled
            .first()
            .filter(|_| self.next_epoch.is_none())?;
        Some(self.models.monotonic(next.at))
    }

    fn woken(&mut self, busy: bool) {
        let Some(due) = self.alarm.fired().filter(|_| !busy) else {
            return;
        };
        let (epoch, now) = (self.models.base(), monotonic_ns());
        self.out.compensation.woke(now.saturating_sub(due));
        if let Some(p) = self.out.lateness.wake(due, now, epoch) {
            eprintln!(
                "emulator: host pause: woke {:.3} ms late at {:.6} s",
                p.late_ms, p.at_s
            );
        }
    }

    /// Takes in what waits at port `i`.
    fn read(&mut self, i: usize, flags: EpollFlags) {
        let Some(&link) = self.feeds.get(i) else {
            return;
        };
        for _ in 0..READS {
            let now = monotonic_ns();
            let n = match self.ports[i].read(self.out.buffers.spare()) {
                Read::Bytes(n) => n,
                Read::Empty => {
                    // An error condition that reading does not clear would wake us for ever.
                    if flags.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP) {
                        self.strikes[i] += 1;
                        if self.strikes[i] > MAX_STRIKES {
                            self.give_up(i, "it stays in error");
                        }
                    }
                    return;
                }
                Read::Gone(e) => return self.give_up(i, e.desc()),
            };
            self.strikes[i] = 0;
            self.take_in(i, link, n, now);
        }
    }

    /// Hands the `n` bytes just read from port `i` to the model of `link`.
    pub(super) fn take_in(&mut self, i: usize, link: usize, n: usize, now: u64) {
        let stats = &mut self.out.links[link].stats;
        stats.reads += 1;
        let framing = self.ports[i].framing();
        let Some(packet) = Packet::parse(&self.out.buffers.spare()[..n], framing) else {
            stats.not_ip += 1;
            return;
        };
        match self.out.buffers.keep(packet, link) {
            Some(id) => self
                .models
                .enqueue(link, now, packet.train(id), &mut self.out),
            None => stats.no_buffer += u64::from(packet.packets),
        }
    }

    pub(super) fn give_up(&self, i: usize, why: &str) {
        let name = self.feeds.get(i).map_or("?", |&l| &self.out.links[l].name);
        eprintln!(
            "emulator: {name}: the sending host's interface is gone ({why}); nothing is read from it any more"
        );
        // Failing means that it is not watched any more, which is what we want.
        let _ = self.epoll.delete(&self.ports[i]);
    }

    /// Does everything that is due by `now`.
    pub(super) fn catch_up(&mut self, now: u64) {
        if let Some(epoch) = self.next_epoch.filter(|&e| e <= now) {
            self.next_epoch = None;
            self.start_epoch(epoch, now);
        }
        while self.next_change().is_some_and(|t| t <= now) {
            let s = self.scheduled.remove(0);
            self.models.apply(s.link, s.at, s.change, &mut self.out);
        }
        for former in &mut self.former {
            former.advance(now, &mut self.out);
        }
        self.former.retain(|f| f.next_event().is_some());
        self.models.advance(now, &mut self.out);
    }

    pub(super) fn obey(&mut self) {
        // Cleared first, so that a command that comes now rings again.
        let _ = self.inputs.bell.read();
        while let Ok(command) = self.inputs.commands.try_recv() {
            self.execute(command);
        }
    }
}
