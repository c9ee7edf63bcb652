//! Rest of tasks that wait: none runs again before what it waits for is there.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

/// Writes for good; tells how much was taken.
pub(super) async fn write(session: Session, moved: Moved) {
    let mut stream = session.open().await.unwrap();
    let data = vec![7; 200_000];
    loop {
        match stream.write(&data).await {
            Ok(n) => moved.add(n),
            Err(_) => return,
        }
    }
}

/// Reads the streams that are opened, for good.
pub(super) async fn read(session: Session, moved: Moved) {
    let mut stream = session.accept().await.unwrap();
    let mut data = vec![0; 200_000];
    while let Ok(n @ 1..) = stream.read(&mut data).await {
        moved.add(n);
    }
}

/// Accepts a stream and lets it lie.
async fn hold(session: Session) {
    let _stream = session.accept().await.unwrap();
    std::future::pending::<()>().await;
}

/// A slow access holds up what the fast one has carried, until the peer's window is full.
#[test]
fn a_writer_rests_while_the_window_is_full() {
    for lane in [Lane::Datagram, Lane::Stream] {
        let fast = [Link::new(20.0, 10, 60), Link::new(100.0, 10, 60)];
        let slow = [Link::new(0.05, 150, 1000), Link::new(1.0, 150, 1000)];
        let (mut it, device, proxy) = Rehearsal::new(lane, &[fast, slow]);
        let moved = it.moved.clone();
        it.program(write(proxy, moved.clone()));
        it.program(read(device, moved));
        it.run(6000);
        let mbps = it.sent[1] as f64 * 8.0 / 6e6;
        assert!(mbps > 50.0, "{lane:?}: {mbps} Mbit/s");
    }
}

/// Nobody reads: what is written stops at the window and little more, and so do the tasks.
#[test]
fn a_writer_rests_while_nobody_reads() {
    for lane in [Lane::Datagram, Lane::Stream] {
        let link = [Link::new(300.0, 5, 50), Link::new(300.0, 5, 50)];
        let (mut it, device, proxy) = Rehearsal::new(lane, &[link]);
        let moved = it.moved.clone();
        it.program(write(proxy, moved));
        it.program(hold(device));
        it.run(3000);
        let held = it.moved.0.load(Ordering::Relaxed);
        assert!(held <= 18 << 20, "{lane:?}: {held} bytes were taken");
        let runs = it.runs;
        it.run(10_000);
        assert!(it.runs - runs < 200, "{lane:?}: {} runs", it.runs - runs);
    }
}

/// A message that nobody takes, a stream that nobody accepts, and who waits for others.
#[test]
fn what_nobody_takes_wakes_nobody_else() {
    let link = [Link::new(50.0, 5, 50), Link::new(50.0, 5, 50)];
    let (mut it, device, proxy) = Rehearsal::new(Lane::Datagram, &[link]);
    let moved = it.moved.clone();
    it.program(write(device.clone(), moved));
    device
        .send_message(bytes::Bytes::from_static(b"x"), true)
        .unwrap();
    let waiting = proxy.clone();
    it.program(async move { drop(waiting.ended().await) });
    it.run(2000);
    it.program(hold(proxy.clone()));
    let waiting = proxy.clone();
    it.program(async move { drop(waiting.accept().await) });
    it.run(2000);
    let runs = it.runs;
    it.run(10_000);
    assert!(it.runs - runs < 200, "{} runs", it.runs - runs);
    // And who waits for it is woken.
    let moved = it.moved.clone();
    it.program(async move { moved.add(proxy.message().await.unwrap().len()) });
    let before = it.moved.0.load(Ordering::Relaxed);
    it.run(100);
    assert_eq!(it.moved.0.load(Ordering::Relaxed), before + 1);
}

/// Nothing passes: who writes, reads, and waits for the peer, rests, and the end comes.
#[test]
fn everybody_rests_while_nothing_passes() {
    for lane in [Lane::Datagram, Lane::Stream] {
        let link = [Link::new(50.0, 5, 50), Link::new(50.0, 5, 50)];
        let (mut it, device, proxy) = Rehearsal::new(lane, &[link]);
        let moved = it.moved.clone();
        it.program(write(device.clone(), moved.clone()));
        it.program(read(proxy, moved.clone()));
        it.run(500);
        let mut stream = device.open();
        let _ = &mut stream;
        let waits = device.clone();
        it.program(async move {
            let mut stream = waits.open().await.unwrap();
            assert!(stream.shutdown().await.is_err());
        });
        it.links[0].iter_mut().for_each(|l| l.rate = 0.0);
        it.run(1000);
        let runs = it.runs;
        it.run(20_000);
        assert!(it.runs - runs < 3000, "{lane:?}: {} runs", it.runs - runs);
        it.run(100_000);
        assert!(it.programs.is_empty(), "{lane:?}: {}", it.programs.len());
    }
}
