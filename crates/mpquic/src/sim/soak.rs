//! Many small transfers over a session that everything happens to: outages of minutes, a proxy
//! that is started again, suspended devices, NATs that forget a binding, reordering, and programs
//! that give up. A transfer ends as it was ended, and whole only with all its bytes; when
//! everything is over there is service, and nothing hangs.

use std::collections::BTreeMap;
use std::time::Duration;

use braid_core::Time;
use braid_core::sched::WrrMode;
use braid_radio::model::{JitterSpec, LossSpec};

use super::draws::{Draws, asked, asked_or};
use super::ends::{self, Read};
use super::shares::{options, radio};
use super::world::{Freeze, Radio, World};
use crate::{Connection, Lane};

/// Runs in `cargo test`.
const SEEDS: u64 = 300;
/// Seeds of the 10,000 that failed once: the end of a path was told on one that had ended, too.
const FAILED_ONCE: [u64; 8] = [887, 1468, 1560, 2264, 2538, 2570, 4881, 9404];
/// Transfers at a time.
const MAX_TRANSFERS: usize = 6;
/// Everything ends within this once nothing happens any more: the lowest rate carries what
/// [`MAX_TRANSFERS`] may be in that.
const CALM: Duration = Duration::from_secs(60);

/// A transfer in one session: `up` bytes and a FIN, and `down` bytes back and a FIN.
#[derive(Debug)]
struct Transfer {
    up: u64,
    down: u64,
    written: u64,
    got: u64,
    /// The device gives up once it has read, or written, so much.
    gives_up: Option<u64>,
    /// The device has given up.
    given_up: bool,
}

/// The proxy's side of one.
#[derive(Debug, Default)]
struct Serving {
    got: u64,
    written: u64,
    /// All has come.
    whole: bool,
    over: bool,
}

#[derive(Debug, Default)]
struct Soak {
    session: u64,
    next: u64,
    device: BTreeMap<u64, Transfer>,
    /// By the connection and the stream.
    proxy: BTreeMap<(usize, u64), Serving>,
    /// Orders of the session's transfers, bytes up and down, and whether the proxy resets: the
    /// proxy looks them up where a real one is told by the request.
    orders: BTreeMap<u64, (u64, u64, Option<u64>)>,
    /// Transfers that were whole, that were reset, and that were given up.
    whole: u64,
    reset: u64,
    given_up: u64,
    /// No transfer begins any more.
    calm: bool,
}

impl Soak {
    fn step(&mut self, world: &mut World, d: &mut Draws) -> Result<(), String> {
        if let Some(host) = &mut world.proxy {
            let handles = host.handles();
            self.proxy
                .retain(|(h, _), _| handles.iter().any(|o| o.0 == *h));
            for handle in handles {
                if let Some(c) = host.connection(handle) {
                    self.serve(handle.0, c)?;
                }
            }
        } else {
            self.proxy.clear();
        }
        if self.session != world.app.sessions {
            // What was under way in another session is lost, and said to be.
            self.session = world.app.sessions;
            self.device.clear();
            self.orders.clear();
        }
        let Some(c) = world
            .dial
            .connection()
            .and_then(|h| world.device.connection(h))
        else {
            return Ok(());
        };
        let ids: Vec<u64> = self.device.keys().copied().collect();
        for id in ids {
            if self.transfer(c, id)? {
                self.device.remove(&id);
            }
        }
        if !self.calm && self.device.len() < MAX_TRANSFERS {
            self.begin(c, d);
        }
        Ok(())
    }

    fn begin(&mut self, c: &mut Connection, d: &mut Draws) {
        // Numbers of the lane go on over sessions, so that no order is mixed up with another.
        self.next += 2;
        let Some(id) = ends::open(c, self.next) else {
            return;
        };
        let (up, down) = (d.log(1.0, 50_000.0) as u64, d.log(1.0, 150_000.0) as u64);
        let some =
            |d: &mut Draws, of: u64| (d.below(4) == 0).then(|| d.below(of as usize + 1) as u64);
        let gives_up = some(d, up + down);
        let resets = some(d, down);
        self.orders.insert(id, (up, down, resets));
        let transfer = Transfer {
            up,
            down,
            written: 0,
            got: 0,
            gives_up,
            given_up: false,
        };
        self.device.insert(id, transfer);
    }

    /// Goes on with a transfer; true when it has ended.
    fn transfer(&mut self, c: &mut Connection, id: u64) -> Result<bool, String> {
        let Some(t) = self.device.get_mut(&id) else {
            return Ok(true);
        };
        if t.written < t.up {
            t.written += ends::write(c, id, t.written, t.up);
            if t.written == t.up {
                ends::finish(c, id);
            }
        }
        match ends::read(c, id, &mut t.got)? {
            Read::Finished if t.got == t.down => {
                self.whole += 1;
                return Ok(true);
            }
            Read::Finished => {
                return Err(format!(
                    "stream {id} looks whole with {} of {} bytes",
                    t.got, t.down
                ));
            }
            Read::Reset => {
                self.reset += 1;
                ends::reset(c, id);
                let ordered = self.orders.get(&id).is_some_and(|o| o.2.is_some());
                return match ordered {
                    true => Ok(true),
                    false => Err(format!("stream {id} was reset, and the proxy did not")),
                };
            }
            Read::Open => {}
        }
        if !t.given_up && t.gives_up.is_some_and(|n| t.written + t.got >= n) {
            t.given_up = true;
            self.given_up += 1;
            ends::stop(c, id);
            ends::reset(c, id);
            return Ok(true);
        }
        Ok(false)
    }

    fn serve(&mut self, handle: usize, c: &mut Connection) -> Result<(), String> {
        for id in ends::opened(c) {
            self.proxy.entry((handle, id)).or_default();
        }
        let mine = self.proxy.range_mut((handle, 0)..=(handle, u64::MAX));
        for ((_, id), s) in mine.filter(|(_, s)| !s.over) {
            // Of a session that the device has left.
            let Some((up, down, resets)) = self.orders.get(id).copied() else {
                s.over = true;
                ends::stop(c, *id);
                ends::reset(c, *id);
                continue;
            };
            if !s.whole {
                match ends::read(c, *id, &mut s.got)? {
                    Read::Finished if s.got == up => s.whole = true,
                    Read::Finished => {
                        return Err(format!(
                            "the proxy takes stream {id} for whole with {} of {up} bytes",
                            s.got
                        ));
                    }
                    Read::Reset => {
                        s.over = true;
                        ends::reset(c, *id);
                        continue;
                    }
                    Read::Open => continue,
                }
            }
            let end = resets.map_or(down, |n| n.min(down));
            s.written += ends::write(c, *id, s.written, end);
            if s.written == end {
                s.over = true;
                match resets {
                    Some(_) => ends::reset(c, *id),
                    None => ends::finish(c, *id),
                }
            }
        }
        Ok(())
    }
}

/// One that may reorder and lose packets.
fn some_radio(d: &mut Draws) -> Radio {
    let mut r = radio(d.log(1.0, 60.0), d.log(1.0, 120.0), 60);
    for link in [&mut r.down, &mut r.up] {
        link.jitter = (d.below(2) == 0).then(|| JitterSpec {
            deviation: Duration::from_secs_f64(d.log(1e-4, 0.02)),
            reorder: d.below(2) == 0,
        });
        if d.below(3) == 0 {
            link.loss = LossSpec::Bernoulli(d.log(1e-4, 0.03));
        }
    }
    r
}

struct Run<'a> {
    world: World,
    soak: Soak,
    d: &'a mut Draws,
}

impl Run<'_> {
    fn go(&mut self, seconds: f64, every: u64) -> Result<(), String> {
        let end = self.world.now() + Duration::from_secs_f64(seconds);
        while self.world.now() < end {
            let next = self.world.now() + Duration::from_millis(every);
            self.world.rest(next.min(end));
            self.soak.step(&mut self.world, self.d)?;
        }
        Ok(())
    }

    /// Something happens, and is over.
    fn incident(&mut self, n: usize) -> Result<(), String> {
        let lasts = self.d.log(0.3, 200.0);
        // Coarse steps where nothing can be transferred anyway.
        let every = if lasts > 20.0 { 1000 } else { 100 };
        match self.d.below(7) {
            0 | 1 => {
                let told = self.d.below(2) == 0;
                let all = self.d.below(3) == 0;
                let (n, d) = (n, &mut *self.d);
                let some: Vec<usize> = (0..n).filter(|_| all || d.below(2) == 0).collect();
                self.links(&some, false, told);
                self.go(lasts, every)?;
                self.links(&some, true, told);
            }
            2 => {
                let (again, key) = (self.d.next() % 1000, self.d.below(2) as u64);
                self.world.proxy = None;
                self.go(lasts, every)?;
                self.world.proxy = Some(self.world.start.host(again, key));
            }
            3 => {
                let how = match self.d.below(2) {
                    0 => Freeze::Stopped,
                    _ => Freeze::Suspended(self.world.now()),
                };
                self.world.freeze(how);
                self.go(lasts, every)?;
                self.world.thaw();
            }
            4 | 5 => {
                for _ in 0..1 + self.d.below(5) {
                    let access = self.d.below(n);
                    self.world.rebind(access);
                    let pause = self.d.log(0.05, 5.0);
                    self.go(pause, 50)?;
                }
            }
            _ => {
                let access = self.d.below(n);
                self.world.renumber(access);
            }
        }
        Ok(())
    }

    fn links(&mut self, some: &[usize], up: bool, told: bool) {
        for i in some {
            self.world.pass(*i, up);
            if told {
                self.world.tell(*i, up);
            }
        }
    }
}

fn soak(seed: u64) -> Result<Soak, String> {
    let d = &mut Draws::new(seed, "soak");
    let n = 1 + d.below(3);
    let radios: Vec<Radio> = (0..n).map(|_| some_radio(d)).collect();
    let lane = [Lane::Stream, Lane::Datagram, Lane::Datagram][d.below(3)];
    let options = options(lane, "minrtt", WrrMode::WorkConserving, "cubic");
    let mut run = Run {
        world: World::kept(seed, &radios, &options),
        soak: Soak::default(),
        d,
    };
    let about = format!("seed {seed}, {n} accesses, {lane:?} lane");
    let told = |e: String, run: &Run<'_>| {
        let at = run.world.now().as_secs_f64();
        format!("{about}: {e} at {at:.3} s")
    };
    for _ in 0..4 {
        let quiet = run.d.log(0.5, 8.0);
        run.go(quiet, 50).map_err(|e| told(e, &run))?;
        run.incident(n).map_err(|e| told(e, &run))?;
    }
    run.soak.calm = true;
    let end: Time = run.world.now() + CALM;
    while run.world.now() < end && !run.soak.device.is_empty() {
        run.go(0.5, 100).map_err(|e| told(e, &run))?;
    }
    if !run.soak.device.is_empty() {
        let stuck = format!("{:?} hang", run.soak.device);
        return Err(told(stuck, &run));
    }
    // There is service, whatever happened.
    run.soak.calm = false;
    let before = run.soak.whole + run.soak.reset + run.soak.given_up;
    run.go(20.0, 100).map_err(|e| told(e, &run))?;
    if run.soak.whole + run.soak.reset + run.soak.given_up == before {
        return Err(told("there is no service".to_owned(), &run));
    }
    match &run.world.app.wrong {
        Some(wrong) => Err(told(wrong.clone(), &run)),
        None => Ok(run.soak),
    }
}

fn all(seeds: impl IntoIterator<Item = u64>) {
    let (mut whole, mut reset, mut given_up) = (0, 0, 0);
    let mut failed = Vec::new();
    for seed in asked_or(seeds) {
        match soak(seed) {
            Ok(s) => {
                whole += s.whole;
                reset += s.reset;
                given_up += s.given_up;
            }
            Err(what) => failed.push(what),
        }
    }
    println!("{whole} transfers were whole, {reset} reset, {given_up} given up");
    assert!(
        failed.is_empty(),
        "{} failed; BRAID_SEEDS=N runs one again:\n{}",
        failed.len(),
        failed.join("\n")
    );
    assert!(asked().is_some() || (whole > 0 && reset > 0 && given_up > 0));
}

#[test]
fn transfers_end_as_they_were_ended_whatever_happens_to_the_session() {
    all((0..SEEDS).chain(FAILED_ONCE));
}

#[test]
#[ignore = "takes an hour: make soak"]
fn transfers_end_as_they_were_ended_over_10000_sessions() {
    all(0..10_000);
}
