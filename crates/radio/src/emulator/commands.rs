//! Commands to the loop, and how it carries them out.

use anyhow::{Context, Result};
use braid_core::Time;
use nix::sys::resource::{UsageWho, getrusage};
use tokio::sync::oneshot;

use super::api::{
    Capacity, CapacityQuery, Carrier, LatenessStats, LinkReport, Mark, ProcessStats, Side, Stats,
};
use super::generation::Generation;
use super::run::{Loop, Scheduled};
use super::timer::monotonic_ns;
use crate::model::{LinkChange, LinkId};

/// Something for the loop to do; the answer goes back where it came from.
#[derive(Debug)]
pub(crate) enum Command {
    Stats(oneshot::Sender<Stats>),
    Change {
        link: String,
        change: LinkChange,
        at: Option<Time>,
        reply: oneshot::Sender<Result<()>>,
    },
    Epoch {
        epoch: Option<u64>,
        reply: oneshot::Sender<u64>,
    },
    Mark {
        link: String,
        mark: Mark,
        reply: oneshot::Sender<Result<()>>,
    },
    Capacity {
        query: CapacityQuery,
        reply: oneshot::Sender<Result<Capacity>>,
    },
    Carrier {
        path: String,
        carrier: Carrier,
        reply: oneshot::Sender<Result<()>>,
    },
    Stop(oneshot::Sender<()>),
}

impl Loop {
    /// Obeys `command`. Whoever asked may have gone: then nobody is told.
    pub(crate) fn execute(&mut self, command: Command) {
        match command {
            Command::Stats(reply) => {
                let _ = reply.send(self.stats());
            }
            Command::Change {
                link,
                change,
                at,
                reply,
            } => {
                let _ = reply.send(self.change(&link, change, at));
            }
            Command::Epoch { epoch, reply } => {
                let now = monotonic_ns();
                let epoch = epoch.unwrap_or(now);
                self.next_epoch = Some(epoch);
                let _ = reply.send(epoch);
            }
            Command::Mark { link, mark, reply } => {
                let _ = reply.send(self.mark(&link, mark));
            }
            Command::Capacity { query, reply } => {
                let _ = reply.send(self.capacity(&query));
            }
            Command::Carrier {
                path,
                carrier,
                reply,
            } => {
                let _ = reply.send(self.carrier(&path, carrier));
            }
            Command::Stop(reply) => {
                self.stop = true;
                let _ = reply.send(());
            }
        }
    }

    fn link(&self, name: &str) -> Result<LinkId> {
        let known = &self.out.links;
        let i = known.iter().position(|l| l.name == name).with_context(|| {
            let names: Vec<_> = known.iter().map(|l| l.name.as_str()).collect();
            format!(
                "there is no link \"{name}\"; there are {}",
                names.join(", ")
            )
        })?;
        self.models.id(i).context("the link has no model")
    }

    fn change(&mut self, link: &str, change: LinkChange, at: Option<Time>) -> Result<()> {
        let id = self.link(link)?;
        let now = self.models.time(monotonic_ns());
        match at.filter(|&t| t > now || self.next_epoch.is_some()) {
            Some(at) => {
                let place = self.scheduled.partition_point(|s| s.at <= at);
                let new = Scheduled {
                    at,
                    link: id,
                    change,
                };
                self.scheduled.insert(place, new);
            }
            None => self.models.apply(id, now, change, &mut self.out),
        }
        Ok(())
    }

    fn mark(&mut self, link: &str, mark: Mark) -> Result<()> {
        let id = self.link(link)?;
        self.models.network.mark(id, mark.bytes);
        Ok(())
    }

    /// Starts new models at `epoch`, with what waits in the old ones; those
    /// deliver what is under way in them.
    pub(crate) fn start_epoch(&mut self, epoch: u64, now: u64) {
        let mut fresh = match Generation::new(&self.config, epoch) {
            Ok(g) => g,
            Err(e) => {
                eprintln!("emulator: the epoch is not set: {e:#}");
                return;
            }
        };
        for link in &mut self.out.links {
            link.stats = Default::default();
        }
        fresh.succeed(&mut self.models, now, &mut self.out);
        self.former.push(std::mem::replace(&mut self.models, fresh));
    }

    fn carrier(&self, path: &str, c: Carrier) -> Result<()> {
        let paths = &self.config.paths;
        let i = paths
            .iter()
            .position(|p| p.name == path)
            .with_context(|| format!("there is no path \"{path}\""))?;
        // Ports are in the order of the paths: device, then proxy.
        let ends = match c.side {
            Side::Device => 2 * i..2 * i + 1,
            Side::Proxy => 2 * i + 1..2 * i + 2,
            Side::Both => 2 * i..2 * i + 2,
        };
        for port in &self.ports[ends] {
            port.set_carrier(c.on)
                .with_context(|| format!("cannot change the carrier of path \"{path}\""))?;
        }
        Ok(())
    }

    fn capacity(&self, q: &CapacityQuery) -> Result<Capacity> {
        let id = self.link(&q.link)?;
        let (from, to) = (Time::from_nanos(q.from_ns), Time::from_nanos(q.to_ns));
        let bits = self.models.network.capacity_bits(id, from, to);
        Ok(Capacity {
            bits: bits.is_finite().then_some(bits),
        })
    }

    fn stats(&self) -> Stats {
        let m = &self.models;
        let links = self.out.links.iter().enumerate().map(|(i, l)| {
            let model = m.id(i).map(|id| m.network.stats(id)).unwrap_or_default();
            (l.name.clone(), LinkReport { model, io: l.stats })
        });
        let usage = getrusage(UsageWho::RUSAGE_THREAD).ok();
        let seconds = |t: nix::sys::time::TimeVal| t.tv_sec() as f64 + t.tv_usec() as f64 / 1e6;
        Stats {
            run_id: self.config.run_id.clone(),
            epoch_ns: m.base(),
            now_ns: m.time(monotonic_ns()).as_nanos(),
            links: links.collect(),
            media: m.network.medium_stats().into_iter().collect(),
            lateness: LatenessStats {
                compensated_us: self.out.compensation.total() as f64 / 1e3,
                ..self.out.lateness.stats()
            },
            process: ProcessStats {
                cpu_s: usage.map_or(0.0, |u| seconds(u.user_time()) + seconds(u.system_time())),
                loops: self.turns,
                // Filled in by the control thread: it takes reading a file.
                rss_bytes: 0,
                buffered_bytes: self.out.buffers.used_bytes() as u64,
                fifo: self.granted.fifo,
                locked: self.granted.locked,
            },
        }
    }
}
