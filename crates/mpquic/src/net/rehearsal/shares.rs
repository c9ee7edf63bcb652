//! Shares of streams that all have more to write than passes.

use tokio::io::AsyncReadExt;

use super::rest::{read, write};
use super::*;

/// Whoever began first, each that always has more to write gets its share.
#[test]
fn writers_that_begin_later_get_their_share() {
    for lane in [Lane::Datagram, Lane::Stream] {
        let link = [Link::new(50.0, 10, 50), Link::new(50.0, 10, 50)];
        let (mut it, device, proxy) = Rehearsal::new(lane, &[link]);
        let written = it.moved.clone();
        let begin = |it: &mut Rehearsal| {
            let read_bytes = Moved::default();
            it.program(write(proxy.clone(), written.clone()));
            it.program(read(device.clone(), read_bytes.clone()));
            read_bytes
        };
        let first = begin(&mut it);
        it.run(3000);
        let later = [begin(&mut it), begin(&mut it), begin(&mut it)];
        let total = |m: &Moved| m.0.load(Ordering::Relaxed);
        let alone = total(&first);
        assert!(alone > 10_000_000, "{lane:?}: {alone}");
        it.run(8000);
        let all = [total(&first) - alone]
            .into_iter()
            .chain(later.iter().map(total));
        let all: Vec<u64> = all.collect();
        let fair = all.iter().sum::<u64>() as f64 / 4.0;
        // Four of 50 Mbit/s in 8 s.
        assert!(fair > 10_000_000.0, "{lane:?}: {all:?}");
        let off = |n: &u64| (*n as f64 / fair - 1.0).abs();
        assert!(all.iter().all(|n| off(n) < 0.25), "{lane:?}: {all:?}");
    }
}

/// Reads the next stream that is opened until it is to rest, and then lets it lie.
async fn read_until(session: Session, moved: Moved, rest: Arc<AtomicBool>) {
    let mut stream = session.accept().await.unwrap();
    let mut data = vec![0; 200_000];
    while !rest.load(Ordering::Relaxed) {
        match stream.read(&mut data).await {
            Ok(n @ 1..) => moved.add(n),
            _ => return,
        }
    }
    std::future::pending().await
}

/// Whether `resting` readers, who were fast before or never read, leave a later stream the path
/// to itself.
fn rest(lane: Lane, resting: usize, were_fast: bool) {
    let link = [Link::new(200.0, 15, 50), Link::new(200.0, 15, 50)];
    let (mut it, device, proxy) = Rehearsal::new(lane, &[link]);
    let (written, rested) = (it.moved.clone(), Moved::default());
    let flag = Arc::new(AtomicBool::new(!were_fast));
    for _ in 0..resting {
        it.program(write(proxy.clone(), written.clone()));
        it.program(read_until(device.clone(), rested.clone(), flag.clone()));
    }
    let total = |m: &Moved| m.0.load(Ordering::Relaxed);
    it.run(5000);
    if were_fast {
        assert!(total(&rested) > 100_000_000, "{lane:?}: {}", total(&rested));
    }
    flag.store(true, Ordering::Relaxed);
    it.run(5000);
    let read_bytes = Moved::default();
    it.program(write(proxy, written.clone()));
    it.program(read(device, read_bytes.clone()));
    it.run(4000);
    let mbps = total(&read_bytes) as f64 * 8.0 / 4e6;
    assert!(mbps > 160.0, "{lane:?}, {resting} {were_fast}: {mbps}");
}

#[test]
fn readers_that_rest_hold_nobody_up() {
    for were_fast in [true, false] {
        rest(Lane::Datagram, 12, were_fast);
        rest(Lane::Stream, 12, were_fast);
    }
    rest(Lane::Datagram, 60, false);
}
