//! How connections of programs end over Multipath QUIC: at one end as at the other, whatever
//! carries them and whoever ends them. Both daemons are processes of their own.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::support::daemon::Daemon;
use crate::support::quic::configs;
use braid_api::{AccessState, Status};
use braid_netns::world::{SERVICE, SERVICE6, World, eventually, eventually_within};
use nix::sys::signal::Signal;
use socket2::SockRef;

const LANES: [&str; 2] = ["", "lane = \"stream\"\n"];

/// Both ends, and what listens behind the proxy.
struct Ends {
    world: World,
    directory: tempfile::TempDir,
    device: Daemon,
    proxy: Daemon,
    listeners: [TcpListener; 2],
}

impl Ends {
    fn new(lane: &str) -> Option<Self> {
        let world = World::new(2)?;
        let directory = tempfile::tempdir().unwrap();
        let _ = configs(directory.path(), lane);
        // Until an address of IPv6 can be used.
        let listen = |at: SocketAddr| {
            let bind = || world.proxy.run(|| TcpListener::bind(at).ok());
            eventually("the server listens", bind)
        };
        let listeners = [(SERVICE, 5001).into(), (SERVICE6, 5001).into()].map(listen);
        let text = |end: &str| {
            let path = directory.path().join(format!("{end}.toml"));
            std::fs::read_to_string(path).unwrap()
        };
        let proxy = Daemon::start(&world.proxy, directory.path(), "proxy", &text("p"));
        let device = Daemon::start(&world.device, directory.path(), "up", &text("d"));
        let ends = Self {
            world,
            directory,
            device,
            proxy,
            listeners,
        };
        ends.wait_for_session(Duration::from_secs(10));
        Some(ends)
    }

    fn wait_for_session(&self, limit: Duration) {
        eventually_within(limit, "both accesses are active", || {
            let status: Status = self.device.get("/v1/status");
            let active = |s: AccessState| s == AccessState::Active;
            (status.accesses.iter().filter(|a| active(a.state)).count() == 2).then_some(())
        });
    }

    /// A program's connection, and what the server has of it; over IPv4, or IPv6.
    fn connect(&self, family: usize) -> [TcpStream; 2] {
        let at: [SocketAddr; 2] = [
            "127.0.0.1:5001".parse().unwrap(),
            "[::1]:5001".parse().unwrap(),
        ];
        let program = self
            .world
            .device
            .run(|| TcpStream::connect(at[family]).unwrap());
        let (server, _) = self.listeners[family].accept().unwrap();
        [program, server].map(|tcp| {
            tcp.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            tcp.set_write_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            tcp
        })
    }
}

/// Reads to the end: how much, and how it ends.
fn read_all(tcp: &mut TcpStream) -> (usize, Result<(), ErrorKind>) {
    let (mut all, mut block) = (0, vec![0; 1 << 16]);
    loop {
        match tcp.read(&mut block) {
            Ok(0) => return (all, Ok(())),
            Ok(n) => all += n,
            Err(e) => return (all, Err(e.kind())),
        }
    }
}

fn read(tcp: &mut TcpStream, bytes: usize) {
    tcp.read_exact(&mut vec![0; bytes]).unwrap();
}

/// Writes until that fails.
fn write_on(tcp: &mut TcpStream) -> ErrorKind {
    loop {
        if let Err(e) = tcp.write_all(&[7; 1 << 16]) {
            return e.kind();
        }
    }
}

fn reset(tcp: TcpStream) {
    SockRef::from(&tcp)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
}

const RESET: Result<(), ErrorKind> = Err(ErrorKind::ConnectionReset);

fn is_broken(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}

/// Each direction in its turn ends well while the other goes on.
fn ends_well([mut a, mut b]: [TcpStream; 2]) {
    a.write_all(&[1; 100_000]).unwrap();
    a.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(read_all(&mut b), (100_000, Ok(())));
    b.write_all(&[2; 700_000]).unwrap();
    drop(b);
    assert_eq!(read_all(&mut a), (700_000, Ok(())));
}

/// A reset in the middle, and one of a direction that had ended well.
fn is_reset([mut a, mut b]: [TcpStream; 2], ended: bool) {
    a.write_all(&[1; 300_000]).unwrap();
    read(&mut b, 300_000);
    if !ended {
        reset(a);
        assert_eq!(read_all(&mut b), (0, RESET));
        return;
    }
    a.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(read_all(&mut b), (0, Ok(())));
    reset(a);
    // Nobody reads or writes: the kernel knows of it.
    eventually("it is reset", || b.take_error().unwrap());
}

/// The reader leaves in the middle: the writer learns of it.
fn loses_its_reader([mut a, mut b]: [TcpStream; 2]) {
    let writing = std::thread::spawn(move || write_on(&mut b));
    read(&mut a, 3_000_000);
    drop(a);
    let begun = Instant::now();
    let why = writing.join().unwrap();
    assert!(is_broken(why), "{why}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_connection_ends_at_one_end_as_at_the_other() {
    for lane in LANES {
        let Some(ends) = Ends::new(lane) else { return };
        for family in [0, 1] {
            for swapped in [false, true] {
                let connect = || {
                    let mut both = ends.connect(family);
                    if swapped {
                        both.reverse();
                    }
                    both
                };
                ends_well(connect());
                is_reset(connect(), false);
                is_reset(connect(), true);
                loses_its_reader(connect());
            }
        }
        // What nobody serves.
        let mut program = ends
            .world
            .device
            .run(|| TcpStream::connect("[::1]:5002").unwrap());
        program
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        assert_eq!(read_all(&mut program), (0, RESET));
        // Ten downloads that are given up do not hold up the next.
        for _ in 0..10 {
            loses_its_reader(ends.connect(0));
        }
        ends_well(ends.connect(1));
    }
}

/// A download that runs when a daemon ends.
fn running(ends: &Ends) -> (TcpStream, std::thread::JoinHandle<ErrorKind>) {
    let [mut program, mut server] = ends.connect(0);
    let writing = std::thread::spawn(move || write_on(&mut server));
    read(&mut program, 1_000_000);
    (program, writing)
}

#[test]
fn what_runs_when_a_daemon_ends_is_reset() {
    for lane in LANES {
        let Some(mut ends) = Ends::new(lane) else {
            return;
        };
        // Killed: the kernel resets what it was joined with at once, and the device what was
        // at the other end once it knows.
        let (mut program, writing) = running(&ends);
        ends.proxy.end(Signal::SIGKILL);
        assert!(is_broken(writing.join().unwrap()));
        let text = std::fs::read_to_string(&ends.proxy.config).unwrap();
        ends.proxy = Daemon::start(&ends.world.proxy, ends.directory.path(), "proxy", &text);
        program
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        assert_eq!(read_all(&mut program).1, RESET);
        std::thread::sleep(Duration::from_millis(1500));
        ends.wait_for_session(Duration::from_secs(20));
        // Stopped: both at once.
        let (mut program, writing) = running(&ends);
        assert_eq!(ends.device.end(Signal::SIGTERM), Some(0));
        assert_eq!(read_all(&mut program).1, RESET);
        assert!(is_broken(writing.join().unwrap()));
    }
}

#[test]
fn what_runs_when_the_device_is_killed_is_reset() {
    for lane in LANES {
        let Some(mut ends) = Ends::new(lane) else {
            return;
        };
        let (mut program, writing) = running(&ends);
        ends.device.end(Signal::SIGKILL);
        assert_eq!(read_all(&mut program).1, RESET);
        // The proxy writes to nobody until it takes the session for lost.
        assert_eq!(ends.proxy.end(Signal::SIGTERM), Some(0));
        assert!(is_broken(writing.join().unwrap()));
    }
}
