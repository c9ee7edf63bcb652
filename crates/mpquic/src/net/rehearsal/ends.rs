//! How streams end, for the programs at both ends.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

use super::*;
use crate::Aborted;

/// Words that programs tell the test.
type Told = Rc<RefCell<Vec<String>>>;

fn say(told: &Told, what: &str) {
    told.borrow_mut().push(what.to_owned());
}

fn kind(e: io::Error) -> String {
    let kind = e.kind();
    match e.downcast::<Aborted>() {
        Ok(a) => format!("{a:?}"),
        Err(_) => format!("{kind:?}"),
    }
}

/// Runs `at_device` on a stream that it opens, and `at_proxy` on that; returns what each
/// says in the end.
fn both<D, P>(
    lane: Lane,
    at_device: impl FnOnce(crate::Stream) -> D + 'static,
    at_proxy: impl FnOnce(crate::Stream) -> P + 'static,
) -> (String, String)
where
    D: Future<Output = String>,
    P: Future<Output = String>,
{
    let link = [Link::new(20.0, 10, 50), Link::new(20.0, 10, 50)];
    let (mut it, device, proxy) = Rehearsal::new(lane, &[link, link]);
    let told = Told::default();
    let (d, p) = (Rc::clone(&told), Rc::clone(&told));
    let (keep_device, keep_proxy) = (device.clone(), proxy.clone());
    it.program(async move {
        let stream = device.open().await.unwrap();
        say(&d, &format!("device: {}", at_device(stream).await));
    });
    it.program(async move {
        let stream = proxy.accept().await.unwrap();
        say(&p, &format!("proxy: {}", at_proxy(stream).await));
    });
    it.run(20_000);
    let of = |who: &str| {
        let told = told.borrow();
        let mine = told.iter().find_map(|t| t.strip_prefix(who));
        mine.unwrap_or("still runs").to_owned()
    };
    // Nothing is left of the stream.
    for session in [keep_device, keep_proxy] {
        let left = session.0.ask(|live, c| {
            let writing = live.writing.len() + live.leaving.len() + live.readers.len();
            let lane = c.lane().map_or(0, |l| l.channels().count());
            (writing + live.writers.len() + live.finishers.len(), lane)
        });
        assert_eq!(left.unwrap(), (0, 0), "{lane:?} {:?}", told.borrow());
    }
    (of("device: "), of("proxy: "))
}

async fn read_all(stream: &mut crate::Stream) -> String {
    let mut data = Vec::new();
    match stream.read_to_end(&mut data).await {
        Ok(n) => format!("{n}, whole"),
        Err(e) => {
            let first = kind(e);
            // And so again: no clean end comes after it.
            let again = stream.read(&mut [0]).await.map_err(kind);
            assert_eq!(again, Err(first.clone()));
            format!("{}, {first}", data.len())
        }
    }
}

async fn write_on(stream: &mut crate::Stream) -> String {
    loop {
        if let Err(e) = stream.write(&[7; 50_000]).await {
            let first = kind(e);
            assert_eq!(stream.write(&[7]).await.map_err(kind), Err(first.clone()));
            assert_eq!(stream.shutdown().await.map_err(kind), Err(first.clone()));
            return first;
        }
    }
}

#[test]
fn each_end_of_a_stream_is_told_as_what_it_is() {
    for lane in [Lane::Datagram, Lane::Stream] {
        // Each direction ends by itself.
        let (d, p) = both(
            lane,
            |mut s| async move {
                s.write_all(&[1; 70_000]).await.unwrap();
                s.shutdown().await.unwrap();
                read_all(&mut s).await
            },
            |mut s| async move {
                let got = read_all(&mut s).await;
                s.write_all(&[1; 300_000]).await.unwrap();
                s.shutdown().await.unwrap();
                got
            },
        );
        assert_eq!((&*d, &*p), ("300000, whole", "70000, whole"), "{lane:?}");
        // A reset, with its code, after what came before.
        let (_, p) = both(
            lane,
            |s| async move {
                let (_read, mut write) = s.into_split();
                write.write_all(&[1; 30_000]).await.unwrap();
                write.reset(77);
                assert_eq!(kind(write.write(&[1]).await.unwrap_err()), "Here");
                String::new()
            },
            |mut s| async move { read_all(&mut s).await },
        );
        assert!(p.ends_with(", Reset(77)"), "{lane:?}: {p}");
        // A stop, with its code.
        let (d, _) = both(
            lane,
            |mut s| async move { write_on(&mut s).await },
            |s| async move {
                let (mut read, _write) = s.into_split();
                assert!(!read.chunk().await.unwrap().is_empty());
                read.stop(33);
                assert_eq!(kind(read.chunk().await.unwrap_err()), "Here");
                String::new()
            },
        );
        assert_eq!(d, "Stopped(33)", "{lane:?}");
        // Dropped without a word: neither side takes it for whole.
        let (_, p) = both(
            lane,
            |mut s| async move {
                s.write_all(&[1; 30_000]).await.unwrap();
                String::new()
            },
            |mut s| async move {
                let got = read_all(&mut s).await;
                format!("{got} {}", write_on(&mut s).await)
            },
        );
        assert!(p.ends_with(", Reset(1) Stopped(1)"), "{lane:?}: {p}");
    }
}

/// A shutdown that waits for the peer, or that nobody waits for, ends with a stop.
#[test]
fn a_stop_ends_a_shutdown() {
    for lane in [Lane::Datagram, Lane::Stream] {
        for waits in [true, false] {
            let (d, _) = both(
                lane,
                move |mut s| async move {
                    s.write_all(&[1; 900_000]).await.unwrap();
                    if waits {
                        return s.shutdown().await.map_err(kind).unwrap_err();
                    }
                    let mut shutdown = Box::pin(s.shutdown());
                    let once = std::future::poll_fn(|cx| {
                        Poll::Ready(shutdown.as_mut().poll(cx).is_ready())
                    });
                    assert!(!once.await);
                    "dropped".to_owned()
                },
                |s| async move {
                    let (mut read, write) = s.into_split();
                    assert!(!read.chunk().await.unwrap().is_empty());
                    read.stop(9);
                    drop(write);
                    String::new()
                },
            );
            assert_eq!(d, if waits { "Stopped(9)" } else { "dropped" }, "{lane:?}");
        }
    }
}

/// A download that is given up: at most what was under way is sent, and the eleventh program
/// has what the first had.
#[test]
fn what_was_given_up_is_not_sent_any_more() {
    for lane in [Lane::Datagram, Lane::Stream] {
        let link = [Link::new(5.0, 10, 60), Link::new(20.0, 10, 60)];
        let (mut it, device, proxy) = Rehearsal::new(lane, &[link, link]);
        let moved = it.moved.clone();
        let serving = proxy.clone();
        let stopped = Rc::new(RefCell::new(0));
        let count = Rc::clone(&stopped);
        it.program(async move {
            loop {
                let mut stream = serving.accept().await.unwrap();
                assert_eq!(stream.read_u8().await.unwrap(), b'd');
                let why = write_on(&mut stream).await;
                assert_eq!(why, "Stopped(1)");
                *count.borrow_mut() += 1;
            }
        });
        let mut got = Vec::new();
        for n in 0..11 {
            let (device, moved) = (device.clone(), moved.clone());
            let bytes = Rc::new(RefCell::new(0));
            let counted = Rc::clone(&bytes);
            let give_up = Rc::new(Notify::new());
            let asked = Rc::clone(&give_up);
            it.program(async move {
                let mut stream = device.open().await.unwrap();
                stream.write_all(b"d").await.unwrap();
                let mut data = vec![0; 100_000];
                loop {
                    let n = tokio::select! {
                        n = stream.read(&mut data) => n.unwrap(),
                        () = asked.notified() => return,
                    };
                    moved.add(n);
                    *counted.borrow_mut() += n;
                }
            });
            it.run(1000);
            give_up.notify_one();
            it.run(10);
            assert_eq!((it.programs.len(), *stopped.borrow()), (1, n), "{lane:?}");
            let before = it.sent[1];
            it.run(3000);
            let after = it.sent[1] - before;
            // What two links of 20 Mbit/s hold, with their queues, and a round trip.
            assert!(
                after < 450_000,
                "{lane:?}: {after} bytes after it was given up"
            );
            assert_eq!(*stopped.borrow(), n + 1);
            got.push(*bytes.borrow());
        }
        // The first has the slow start.
        let first = got[1] as f64;
        assert!(
            got.iter().all(|n| *n as f64 > 0.9 * first),
            "{lane:?}: {got:?}"
        );
    }
}

/// The session ends: nobody sees a clean end.
#[test]
fn the_end_of_a_session_is_no_end_of_its_streams() {
    for lane in [Lane::Datagram, Lane::Stream] {
        let link = [Link::new(20.0, 10, 50), Link::new(20.0, 10, 50)];
        let (mut it, device, proxy) = Rehearsal::new(lane, &[link]);
        let told = Told::default();
        let (d, p) = (Rc::clone(&told), Rc::clone(&told));
        let closing = device.clone();
        it.program(async move {
            let mut stream = device.open().await.unwrap();
            stream.write_all(b"x").await.unwrap();
            say(&d, &read_all(&mut stream).await);
        });
        it.program(async move {
            let mut stream = proxy.accept().await.unwrap();
            stream.write_all(&[1; 10_000]).await.unwrap();
            say(&p, &read_all(&mut stream).await);
        });
        it.run(500);
        it.ends[0].lock().close(closing.0.id, it.now);
        it.run(5000);
        let mut told = told.borrow().clone();
        told.sort();
        let wanted = ["1, ConnectionReset", "10000, NotConnected"];
        assert_eq!(told, wanted, "{lane:?}");
    }
}

/// More than may be open at a time: they wait, and the session lasts.
#[test]
fn streams_beyond_what_the_peer_allows_wait() {
    // As many as a LAN may have open, and those that the library allows.
    for (lane, most, all) in [(Lane::Datagram, 12_000, 12_300), (Lane::Stream, 100, 400)] {
        let link = [Link::new(50.0, 5, 50), Link::new(50.0, 5, 50)];
        let (mut it, device, proxy) = Rehearsal::new(lane, &[link]);
        let (told, go_on) = (Told::default(), Arc::new(AtomicBool::new(false)));
        let counted = Rc::clone(&told);
        let accepting = Arc::clone(&go_on);
        let held = Rc::new(RefCell::new(Vec::new()));
        let holding = Rc::clone(&held);
        it.program(async move {
            loop {
                let stream = proxy.accept().await.unwrap();
                match accepting.load(Ordering::Relaxed) {
                    false => holding.borrow_mut().push(stream),
                    true => drop(stream),
                }
            }
        });
        for n in 0..all {
            let (device, told) = (device.clone(), Rc::clone(&counted));
            it.program(async move {
                let mut stream = device.open().await.unwrap();
                stream.write_all(&[n as u8]).await.unwrap();
                say(&told, &read_all(&mut stream).await);
            });
        }
        it.run(2000);
        let open = held.borrow().len();
        assert_eq!((open, told.borrow().len()), (most, 0), "{lane:?}");
        go_on.store(true, Ordering::Relaxed);
        held.borrow_mut().clear();
        it.run(5000);
        let all = vec!["0, Reset(1)".to_owned(); all];
        assert!(*told.borrow() == all, "{lane:?}");
    }
}

/// A stop is told to who writes nothing.
#[test]
fn a_stop_is_told_while_nothing_is_written() {
    for lane in [Lane::Datagram, Lane::Stream] {
        let (d, _) = both(
            lane,
            |mut s| async move {
                s.write_all(b"x").await.unwrap();
                kind(s.stopped().await)
            },
            |s| async move {
                let (mut read, _write) = s.into_split();
                assert!(!read.chunk().await.unwrap().is_empty());
                read.stop(5);
                String::new()
            },
        );
        assert_eq!(d, "Stopped(5)", "{lane:?}");
    }
}
