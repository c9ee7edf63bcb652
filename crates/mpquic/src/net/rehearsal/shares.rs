//! Shares of streams that all have more to write than passes.

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
