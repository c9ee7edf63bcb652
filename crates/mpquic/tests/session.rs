//! Sessions over real sockets, between two network namespaces.

use std::net::SocketAddr;
use std::pin::Pin as Pinned;
use std::time::{Duration, Instant};

use braid_core::sched::WrrMode;
use braid_mpquic::tls::{self, Devices, Identity, Pin, Trust};
use braid_mpquic::{Access, Device, Error, Lane, Options, PathEvent, Proxy, Session};
use braid_netns::world::{self, SERVICE, World};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

const PORT: u16 = 4433;
/// A prime: no packet or window is a multiple of it.
const PERIOD: usize = 65_521;

fn pattern() -> Vec<u8> {
    let byte = |i: usize| ((i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    (0..PERIOD).map(byte).collect()
}

fn on_both_lanes(test: impl Fn(Options)) {
    for lane in [Lane::Stream, Lane::Datagram] {
        test(Options {
            lane,
            ..Options::default()
        });
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// A proxy that answers each stream with as many bytes as it asks for, and each message
/// with itself, until the returned sender is dropped.
fn serve(w: &World, options: &Options, identity: Identity, devices: Devices) -> Served {
    let (stop, mut stopped) = mpsc::channel::<()>(1);
    let (ready, when) = std::sync::mpsc::channel();
    let options = options.clone();
    let thread = w.proxy.spawn(move || {
        runtime().block_on(async {
            let tls = tls::server(&identity, &devices, tls::alpn(options.lane)).unwrap();
            let accesses = (1..=3).map(|k| Access::new(&format!("a{k}"), world::device4(k)));
            let at = SocketAddr::from((SERVICE, PORT));
            let proxy = Proxy::listen(&[at], tls, &options, accesses.collect()).unwrap();
            ready.send(()).unwrap();
            loop {
                tokio::select! {
                    session = proxy.accept() => {
                        let session = session.unwrap();
                        tokio::spawn(answer_streams(session.clone()));
                        tokio::spawn(answer_messages(session));
                    }
                    _ = stopped.recv() => return,
                }
            }
        });
    });
    when.recv().unwrap();
    Served {
        stop: Some(stop),
        thread: Some(thread),
    }
}

struct Served {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.take();
        let _ = self.thread.take().unwrap().join();
    }
}

async fn answer_streams(session: Session) {
    while let Ok(mut stream) = session.accept().await {
        tokio::spawn(async move {
            let mut left = stream.read_u64().await.unwrap() as usize;
            let block = pattern();
            while left > 0 {
                let n = left.min(PERIOD);
                if stream.write_all(&block[..n]).await.is_err() {
                    return;
                }
                left -= n;
            }
            let _ = stream.shutdown().await;
        });
    }
}

async fn answer_messages(session: Session) {
    while let Ok(data) = session.message().await {
        if session.send_message(data, true).is_err() {
            return;
        }
    }
}

/// Fetches `bytes` and checks them; gives the longest time in which nothing came.
async fn fetch(session: &Session, bytes: usize) -> Duration {
    let (mut read, mut write) = session.open().await.unwrap().into_split();
    write.write_u64(bytes as u64).await.unwrap();
    let block = pattern();
    let (mut got, mut last, mut longest) = (0, Instant::now(), Duration::ZERO);
    loop {
        let data = read.chunk().await.unwrap();
        longest = longest.max(last.elapsed());
        last = Instant::now();
        if data.is_empty() {
            break;
        }
        let mut rest = &data[..];
        while !rest.is_empty() {
            let at = got % PERIOD;
            let n = rest.len().min(PERIOD - at);
            assert!(rest[..n] == block[at..at + n], "wrong bytes at {got}");
            (got, rest) = (got + n, &rest[n..]);
        }
    }
    assert_eq!(got, bytes);
    longest
}

fn on_interfaces(n: u8) -> Vec<Access> {
    let access = |k| Access::on(&format!("a{k}"), &format!("d{k}"));
    (1..=n).map(access).collect()
}

async fn connect(pin: Pin, options: &Options, accesses: Vec<Access>) -> Result<Session, Error> {
    let tls = tls::client(&Trust::Pins(vec![pin]), None, tls::alpn(options.lane)).unwrap();
    let at = SocketAddr::from((SERVICE, PORT));
    let made = Device::connect(at, "proxy.example", tls, options.clone(), accesses).await;
    made.map(|(_, session)| session)
}

fn identity() -> (Identity, Pin) {
    let identity = Identity::generate("proxy.example").unwrap();
    let pin = identity.pin();
    (identity, pin)
}

async fn until(what: &str, mut f: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(5);
    while !f() {
        assert!(Instant::now() < end, "it did not happen in 5 s: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn bytes_arrive_over_all_accesses() {
    on_both_lanes(|mut options| {
        options.steering.scheduler = "rr".to_owned();
        options.steering.wrr_mode = WrrMode::Strict;
        let Some(w) = World::new(3) else { return };
        let (identity, pin) = identity();
        let _served = serve(&w, &options, identity, Devices::Anyone);
        w.device.run(|| {
            runtime().block_on(async {
                let session = connect(pin, &options, on_interfaces(3)).await.unwrap();
                until("three paths", || {
                    let paths = session.paths().unwrap();
                    paths.iter().filter(|p| p.usable).count() == 3
                })
                .await;
                fetch(&session, 20_000_000).await;
                // Round robin: each carried its share.
                for p in session.paths().unwrap() {
                    assert!(p.received_bytes > 3_000_000, "{p:?}");
                }
                // Several at once, of which one is given up.
                let (a, b) = (fetch(&session, 3_000_000), fetch(&session, 2_000_000));
                let mut given_up = session.open().await.unwrap();
                given_up.write_u64(50_000_000).await.unwrap();
                drop(given_up);
                tokio::join!(a, b);
                assert_eq!(session.peer().unwrap(), Some(pin));
            });
        });
    });
}

#[test]
fn an_access_that_is_lost_is_left_and_used_again() {
    on_both_lanes(|options| {
        let Some(w) = World::new(2) else { return };
        let (identity, pin) = identity();
        let _served = serve(&w, &options, identity, Devices::Anyone);
        w.device.run(|| {
            runtime().block_on(async {
                let session = connect(pin, &options, on_interfaces(2)).await.unwrap();
                let mut events = session.events().unwrap();
                let count = |n: usize| {
                    let paths = session.paths().unwrap();
                    paths.iter().filter(|p| p.usable).count() == n
                };
                until("two paths", || count(2)).await;
                for k in [1, 2] {
                    w.set_link(k, false);
                    until("one path", || count(1)).await;
                    fetch(&session, 2_000_000).await;
                    w.set_link(k, true);
                    until("two paths again", || count(2)).await;
                }
                let mut told = Vec::new();
                while let Ok(e) = events.try_recv() {
                    if matches!(e.what, PathEvent::Up | PathEvent::Down) {
                        told.push((e.access.unwrap(), e.what == PathEvent::Up));
                    }
                }
                let ends = |name: &str| {
                    let mine = told.iter().filter(|(a, _)| a == name);
                    mine.map(|(_, up)| *up).collect::<Vec<_>>()
                };
                assert!(ends("a1").ends_with(&[false, true]), "{told:?}");
                assert!(ends("a2").ends_with(&[false, true]), "{told:?}");
            });
        });
    });
}

/// A task that waits until the peer has everything is not run over and over.
#[test]
fn who_waits_for_the_peer_rests() {
    on_both_lanes(|options| {
        let Some(w) = World::new(1) else { return };
        let (identity, pin) = identity();
        let _served = serve(&w, &options, identity, Devices::Anyone);
        w.device.run(|| {
            runtime().block_on(async {
                let session = connect(pin, &options, on_interfaces(1)).await.unwrap();
                let (_read, mut write) = session.open().await.unwrap().into_split();
                w.set_link(1, false);
                write.write_u64(1).await.unwrap();
                let mut turns = 0;
                let all_there = std::future::poll_fn(|cx| {
                    turns += 1;
                    Pinned::new(&mut write).poll_shutdown(cx)
                });
                let waited = tokio::time::timeout(Duration::from_millis(500), all_there).await;
                assert!(waited.is_err() && turns < 20, "{turns} turns");
            });
        });
    });
}

/// Time that the calling thread has run.
fn ran() -> Duration {
    let line = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanos = line.split(' ').next().unwrap().parse().unwrap();
    Duration::from_nanos(nanos)
}

/// The peer reads nothing: its window is full, and neither the writer nor the task that
/// drives the session, which are of this thread, has anything to do.
#[test]
fn who_writes_to_nobody_rests() {
    on_both_lanes(|options| {
        let Some(w) = World::new(2) else { return };
        let (identity, pin) = identity();
        let _served = serve(&w, &options, identity, Devices::Anyone);
        w.device.run(|| {
            runtime().block_on(async {
                let session = connect(pin, &options, on_interfaces(2)).await.unwrap();
                let (_read, mut write) = session.open().await.unwrap().into_split();
                // The proxy reads the number, and then writes to a reader that does not read.
                write.write_u64(1 << 40).await.unwrap();
                let (mut turns, data) = (0, vec![7; 1 << 18]);
                let mut write_on = async || {
                    loop {
                        let mut once = Box::pin(write.write(&data));
                        let all = std::future::poll_fn(|cx| {
                            turns += 1;
                            once.as_mut().poll(cx)
                        });
                        all.await.unwrap();
                    }
                };
                let second = Duration::from_secs(1);
                let _ = tokio::time::timeout(3 * second, write_on()).await;
                let before = ran();
                let _ = tokio::time::timeout(2 * second, write_on()).await;
                let busy = (ran() - before).as_secs_f64() / 2.0;
                assert!(busy < 0.02, "it ran {:.1} % of the time", 100.0 * busy);
                assert!(turns < 10_000, "{turns} turns");
            });
        });
    });
}

/// A download that is dropped: little arrives after it, and ten of them cost the next nothing.
#[test]
fn what_nobody_wants_any_more_is_not_sent() {
    on_both_lanes(|options| {
        let Some(w) = World::new(2) else { return };
        if !w.limited(2) {
            return;
        }
        let (identity, pin) = identity();
        let _served = serve(&w, &options, identity, Devices::Anyone);
        w.device.run(|| {
            runtime().block_on(async {
                let session = connect(pin, &options, on_interfaces(2)).await.unwrap();
                let received = || {
                    let paths = session.paths().unwrap();
                    paths.iter().map(|p| p.received_bytes).sum::<u64>()
                };
                for _ in 0..10 {
                    let (mut read, mut write) = session.open().await.unwrap().into_split();
                    write.write_u64(1 << 40).await.unwrap();
                    let mut got = 0;
                    while got < 2_000_000 {
                        got += read.chunk().await.unwrap().len();
                    }
                    drop((read, write));
                    // What was under way is there by then.
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    let before = received();
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    let after = received() - before;
                    assert!(after < 100_000, "{after} bytes in 300 ms");
                }
                let begun = Instant::now();
                fetch(&session, 5_000_000).await;
                assert!(begun.elapsed() < Duration::from_secs(4));
            });
        });
    });
}

#[test]
fn a_silent_access_does_not_stop_the_others() {
    let Some(w) = World::new(2) else { return };
    let options = Options {
        lane: Lane::Datagram,
        ..Options::default()
    };
    let (identity, pin) = identity();
    let _served = serve(&w, &options, identity, Devices::Anyone);
    w.device.run(|| {
        runtime().block_on(async {
            let session = connect(pin, &options, on_interfaces(2)).await.unwrap();
            until("two paths", || session.paths().unwrap().len() == 2).await;
            w.silence(1, true);
            // What it takes is judged by benchmarks; here, that it does not take for ever.
            let longest = fetch(&session, 5_000_000).await;
            assert!(longest < Duration::from_secs(3), "{longest:?}");
            w.silence(1, false);
            until("it is back", || {
                session.paths().unwrap().iter().filter(|p| p.usable).count() == 2
            })
            .await;
        });
    });
}

#[test]
fn any_access_may_be_the_first() {
    on_both_lanes(|options| {
        let Some(w) = World::new(2) else { return };
        let (identity, pin) = identity();
        let _served = serve(&w, &options, identity, Devices::Anyone);
        w.set_link(1, false);
        w.device.run(|| {
            runtime().block_on(async {
                let session = connect(pin, &options, on_interfaces(2)).await.unwrap();
                fetch(&session, 100_000).await;
                w.set_link(1, true);
                until("two paths", || session.paths().unwrap().len() == 2).await;
                fetch(&session, 100_000).await;
            });
        });
    });
}

#[test]
fn messages_are_given_once_and_in_order() {
    let Some(w) = World::new(2) else { return };
    let options = Options {
        lane: Lane::Datagram,
        ..Options::default()
    };
    let (identity, pin) = identity();
    let _served = serve(&w, &options, identity, Devices::Anyone);
    w.device.run(|| {
        runtime().block_on(async {
            let session = connect(pin, &options, on_interfaces(2)).await.unwrap();
            for i in 0..200u32 {
                let text = vec![i as u8; 1 + 100 * i as usize];
                assert!(session.send_message(text.clone().into(), true).unwrap());
                let back = tokio::time::timeout(Duration::from_secs(5), session.message());
                assert_eq!(back.await.unwrap().unwrap(), text);
            }
        });
    });
}

#[test]
fn who_is_not_trusted_is_refused_at_once() {
    let Some(w) = World::new(1) else { return };
    let options = Options {
        lane: Lane::Stream,
        ..Options::default()
    };
    let (identity, pin) = identity();
    let (device, known) = self::identity();
    let devices = Devices::Trusted(Trust::Pins(vec![known]));
    let _served = serve(&w, &options, identity, devices);
    w.device.run(|| {
        runtime().block_on(async {
            let begun = Instant::now();
            let (_, stranger) = self::identity();
            let another = connect(stranger, &options, on_interfaces(1)).await;
            let why = another.unwrap_err().to_string();
            assert!(why.contains("certificate"), "{why}");
            assert!(why.contains(&pin.to_string()), "{why}");
            assert!(why.contains("none of the pins that are trusted"), "{why}");
            assert!(why.ends_with("trusted"), "{why}");
            // The device proves nothing.
            let nobody = connect(pin, &options, on_interfaces(1)).await;
            let why = nobody.unwrap_err().to_string();
            assert!(why.contains("no certificates"), "{why}");
            let other = Options {
                lane: Lane::Datagram,
                ..Options::default()
            };
            let why = connect(pin, &other, on_interfaces(1)).await.unwrap_err();
            assert!(why.to_string().contains("lane"), "{why}");
            assert!(begun.elapsed() < Duration::from_secs(5));
            let trust = Trust::Pins(vec![pin]);
            let tls = tls::client(&trust, Some(&device), tls::alpn(options.lane)).unwrap();
            let at = SocketAddr::from((SERVICE, PORT));
            let made = Device::connect(at, "p", tls, options.clone(), on_interfaces(1)).await;
            let (_, session) = made.unwrap();
            fetch(&session, 1000).await;
            assert!(matches!(
                session.send_message(Bytes::from_static(b"x"), true),
                Err(Error::NoMessages)
            ));
            session.close();
            assert!(session.ended().await.is_closed());
            assert!(session.open().await.is_err());
        });
    });
}

#[test]
fn a_proxy_that_starts_anew_is_noticed_soon() {
    let Some(w) = World::new(2) else { return };
    let options = Options {
        reset_key: Some([7; 32]),
        ..Options::default()
    };
    let (identity, pin) = identity();
    let served = serve(&w, &options, identity, Devices::Anyone);
    w.device.run(|| {
        runtime().block_on(async {
            let session = connect(pin, &options, on_interfaces(2)).await.unwrap();
            fetch(&session, 100_000).await;
            // Without a word: its sockets are gone before it could say one.
            drop(served);
            let (identity, _) = self::identity();
            let _served = serve(&w, &options, identity, Devices::Anyone);
            let ended = tokio::time::timeout(Duration::from_secs(8), session.ended());
            let ended = ended.await.expect("it is noticed");
            assert!(!ended.is_closed(), "{ended}");
        });
    });
}

#[test]
fn a_proxy_that_stops_closes_its_sessions_and_takes_no_others_in() {
    let Some(w) = World::new(1) else { return };
    let options = Options::default();
    let (identity, pin) = identity();
    let (stop, mut stopped) = mpsc::channel::<()>(1);
    let (ready, when) = std::sync::mpsc::channel();
    let ends = options.clone();
    let proxy = w.proxy.spawn(move || {
        runtime().block_on(async {
            let tls = tls::server(&identity, &Devices::Anyone, tls::alpn(ends.lane)).unwrap();
            let at = SocketAddr::from((SERVICE, PORT));
            let proxy = Proxy::listen(&[at], tls, &ends, vec![]).unwrap();
            ready.send(()).unwrap();
            let _session = proxy.accept().await.unwrap();
            stopped.recv().await;
            proxy.stop();
            let other = tokio::time::timeout(Duration::from_secs(2), proxy.accept());
            assert!(other.await.is_err(), "a session was taken in");
        });
    });
    when.recv().unwrap();
    w.device.run(|| {
        runtime().block_on(async {
            let session = connect(pin, &options, on_interfaces(1)).await.unwrap();
            stop.send(()).await.unwrap();
            let ended = tokio::time::timeout(Duration::from_secs(2), session.ended());
            assert!(ended.await.expect("it is told").is_closed());
            let again = connect(pin, &options, on_interfaces(1));
            let again = tokio::time::timeout(Duration::from_secs(1), again);
            assert!(!matches!(again.await, Ok(Ok(_))), "it is taken in");
        });
    });
    proxy.join().unwrap();
}
