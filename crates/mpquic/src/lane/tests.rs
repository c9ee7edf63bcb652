//! Two lanes over paths that lose, delay, double and reorder.

use std::time::Duration;

use proptest::prelude::*;

use super::flow_control::{INITIAL_WINDOW, SESSION_WINDOW};
use super::*;

mod ends;

fn byte(place: u64) -> u8 {
    (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// A pair of ends, and what is between them.
struct Pair {
    now: Instant,
    ends: [Lane; 2],
    /// Arrival, to which end, what.
    air: Vec<(Instant, usize, Bytes)>,
}

impl Pair {
    fn new() -> Self {
        let now = Instant::now();
        let ends = [Lane::new(now), Lane::new(now)];
        let air = Vec::new();
        Self { now, ends, air }
    }

    /// Sends what waits and delivers what is due, a millisecond later; `fate` says when
    /// a datagram arrives, in ms from now: not at all, once or twice.
    fn step(&mut self, paths: u32, mut fate: impl FnMut(u32) -> Vec<u64>) -> Result<(), LaneError> {
        for from in 0..2 {
            let end = &mut self.ends[from];
            if end.due().is_some_and(|t| t <= self.now) {
                end.tick(self.now, |_| false);
            }
            end.prepare(self.now);
            let mut out = Vec::new();
            for path in 0..paths {
                let long = |t| self.now > t + Duration::from_millis(200);
                if end.paths().suspect_since(path).is_some_and(long) {
                    end.paths_mut().clear_suspicion(path, self.now);
                }
                if end.paths().suspect_since(path).is_none()
                    || (0..paths).all(|p| end.paths().suspect_since(p).is_some())
                {
                    for _ in 0..4 {
                        out.extend(end.write_next(
                            (&[path], &[]),
                            1200,
                            (0, Selection::All),
                            self.now,
                        ));
                    }
                }
            }
            if end.ack_due(self.now) {
                out.extend(end.write_ack(1200, self.now).map(|d| (0, d)));
            }
            for (path, data) in out {
                assert!(data.len() <= 1200, "{}", data.len());
                for ms in fate(path) {
                    let at = self.now + Duration::from_millis(ms);
                    self.air.push((at, 1 - from, data.clone()));
                }
            }
        }
        self.now += Duration::from_millis(1);
        let now = self.now;
        let mut due: Vec<_> = self.air.extract_if(.., |(at, ..)| *at <= now).collect();
        due.sort_by_key(|(at, ..)| *at);
        for (_, to, data) in due {
            self.ends[to].receive(data, now)?;
        }
        Ok(())
    }
}

#[test]
fn datagrams_are_full() {
    let now = Instant::now();
    let mut lane = Lane::new(now);
    lane.write(7, vec![0; 100_000].into());
    // The first says that full ones pass.
    let first = lane.write_next((&[0, 1], &[]), 1414, (0, Selection::All), now);
    let acked = first.iter().map(|(path, _)| Ack {
        path: *path,
        ranges: vec![(0, 0)],
        received: 0,
        delay: 0,
    });
    acked.for_each(|ack| lane.on_ack(&ack, now).unwrap());
    for room in [1414, 1374, 1162] {
        let next = lane.write_next((&[0, 1], &[]), room, (0, Selection::All), now);
        let left = next.iter().map(|(_, data)| room - data.len());
        // Numbers that may grow.
        assert!(left.into_iter().all(|n| n <= 4), "{room}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_stream_arrives_once_and_in_order(
        total in 0u64..300_000,
        fates in prop::collection::vec((0u8..10, 1u64..50), 50..500),
        dead_from in 0u64..400,
    ) {
        let mut pair = Pair::new();
        let (mut written, mut read) = (0u64, 0u64);
        let mut k = 0;
        for ms in 0..60_000u64 {
            while written < total {
                let n = (total - written).min(5000);
                let data: Bytes = (written..written + n).map(byte).collect();
                let taken = pair.ends[0].write(7, data) as u64;
                written += taken;
                if taken < n { break }
            }
            if written == total {
                pair.ends[0].finish(7);
            }
            pair.step(3, |path| {
                k += 1;
                let (what, delay) = fates[k % fates.len()];
                match what {
                    // One path goes silent.
                    _ if path == 1 && ms > dead_from => vec![],
                    0 => vec![],
                    1 => vec![delay, delay + 3],
                    _ => vec![delay],
                }
            }).map_err(|e| TestCaseError::fail(e.to_string()))?;
            while let Some(data) = pair.ends[1].read(7) {
                for b in &data {
                    prop_assert_eq!(*b, byte(read));
                    read += 1;
                }
            }
            if pair.ends[1].ended(7) && pair.ends[0].is_done(7) {
                prop_assert_eq!(read, total);
                return Ok(());
            }
        }
        Err(TestCaseError::fail(format!("{read} of {total} in a minute")))?;
    }

    #[test]
    fn messages_come_once_whole_and_those_in_order_in_order(
        sizes in prop::collection::vec((1usize..4000, any::<bool>()), 1..60),
        fates in prop::collection::vec((0u8..10, 1u64..50), 50..200),
    ) {
        let mut pair = Pair::new();
        let mut k = 0;
        for (n, (size, ordered)) in sizes.iter().enumerate() {
            let mut data = vec![*ordered as u8; *size + 4];
            data[..4].copy_from_slice(&(n as u32).to_be_bytes());
            prop_assert!(pair.ends[0].send_message(data.into(), *ordered));
        }
        let mut seen = std::collections::BTreeSet::new();
        let mut last = None;
        for _ in 0..400 {
            pair.step(2, |_| {
                k += 1;
                match fates[k % fates.len()] {
                    (0, _) => vec![],
                    (1, delay) => vec![delay, delay + 9],
                    (_, delay) => vec![delay],
                }
            }).map_err(|e| TestCaseError::fail(e.to_string()))?;
            while let Some(data) = pair.ends[1].next_message() {
                let n = u32::from_be_bytes([data[0], data[1], data[2], data[3]]);
                let (size, ordered) = sizes[n as usize];
                prop_assert_eq!(data.len(), size + 4);
                prop_assert!(data[4..].iter().all(|b| *b == u8::from(ordered)));
                prop_assert!(seen.insert(n), "{} came twice", n);
                if ordered {
                    prop_assert!(last < Some(n));
                    last = Some(n);
                }
            }
        }
        if fates.iter().all(|(what, _)| *what != 0) && fates.iter().all(|(_, d)| *d == fates[0].1) {
            prop_assert_eq!(seen.len(), sizes.len());
        }
    }
}

/// More than all channels together have credit for, and nobody reads for a while.
#[test]
fn what_the_credit_of_all_holds_back_goes_on_once_it_is_read() {
    const CHANNELS: u64 = 1500;
    const EACH: u64 = 100_000;
    let mut pair = Pair::new();
    let data = Bytes::from(vec![7; EACH as usize]);
    for channel in 0..CHANNELS {
        assert_eq!(pair.ends[0].write(channel, data.clone()), data.len());
        pair.ends[0].finish(channel);
    }
    let mut k = 0;
    let mut fate = |_| {
        k += 1;
        if k % 50 == 0 { vec![] } else { vec![5] }
    };
    let mut steps = 0;
    while pair.ends[0].flow(0).0 > 0 || !pair.air.is_empty() {
        steps += 1;
        assert!(steps < 100_000, "it does not come to rest");
        pair.step(8, &mut fate).unwrap();
    }
    let held = pair.ends[1].cost() as u64;
    let window = SESSION_WINDOW;
    assert!((window..window * 3 / 2).contains(&held), "{held}");
    let mut read = 0;
    while !(0..CHANNELS).all(|c| pair.ends[0].is_done(c) && pair.ends[1].ended(c)) {
        steps += 1;
        assert!(steps < 100_000, "{read} were read");
        for channel in 0..CHANNELS {
            while let Some(data) = pair.ends[1].read(channel) {
                read += data.len() as u64;
            }
        }
        pair.step(8, &mut fate).unwrap();
    }
    assert_eq!(read, CHANNELS * EACH);
}

fn lane() -> (Lane, Instant) {
    let now = Instant::now();
    (Lane::new(now), now)
}

fn datagram(frames: &[Frame]) -> Bytes {
    let mut out = BytesMut::new();
    wire::begin(None, &mut out);
    frames.iter().for_each(|f| f.write(&mut out));
    out.freeze()
}

#[test]
fn what_a_peer_may_not_is_refused() {
    let stream = |channel, offset, len, fin| Frame::Stream {
        channel,
        offset,
        fin,
        data: Bytes::from(vec![0; len]),
    };
    let ack = Frame::Ack(Ack {
        path: 0,
        received: 0,
        delay: 0,
        ranges: vec![(0, 5)],
    });
    let (mut l, now) = lane();
    l.write(1, Bytes::from_static(b"x"));
    l.write_next((&[0], &[]), 1200, (0, Selection::All), now);
    assert_eq!(l.receive(datagram(&[ack]), now), Err(LaneError::NeverSent));
    for wrong in [
        vec![stream(1, INITIAL_WINDOW, 1, false)],
        vec![stream(1, 0, 10, true), stream(1, 10, 1, false)],
        vec![stream(1, 5, 5, false), stream(1, 0, 3, true)],
        vec![stream(1, 0, 3, true), stream(1, 0, 4, true)],
        (0..17_000).map(|c| stream(c, 0, 1, false)).collect(),
    ] {
        let (mut l, now) = lane();
        assert!(l.receive(datagram(&wrong), now).is_err());
    }
    let (mut l, now) = lane();
    let many = (0..300u32).map(|path| {
        let mut out = BytesMut::new();
        wire::begin(
            Some(Number {
                path,
                sequence: 0,
                sent: 0,
            }),
            &mut out,
        );
        l.receive(out.freeze(), now)
    });
    assert_eq!(many.last(), Some(Err(LaneError::ManyPaths)));
}

#[test]
fn messages_that_nobody_takes_are_bounded() {
    let (mut l, now) = lane();
    for number in 0..2000 {
        let frame = Frame::Message {
            number,
            place: (number % 2 == 0).then_some(message_order::Place {
                flow: 0,
                sequence: number / 2,
            }),
            total: MAX_MESSAGE,
            offset: 0,
            data: Bytes::from(vec![1; MAX_MESSAGE as usize]),
        };
        assert_eq!(l.receive(datagram(&[frame]), now), Ok(()));
    }
    let mut bytes = 0;
    l.receiver.messages.release(now + Duration::from_secs(1));
    while let Some(m) = l.next_message() {
        bytes += m.len();
    }
    assert!(bytes <= 16 << 20 && bytes > 15 << 20, "{bytes}");
}

#[test]
fn streams_take_turns() {
    let (mut lane, now) = lane();
    for channel in [0, 2, 4] {
        let data = Bytes::from(vec![1; 100_000]);
        assert_eq!(lane.write(channel, data), 100_000);
    }
    let mut sent = BTreeMap::<u64, usize>::new();
    for _ in 0..30 {
        for (_, data) in lane.write_next((&[0], &[]), 1200, (0, Selection::All), now) {
            for frame in wire::read(data).unwrap().1 {
                if let Frame::Stream { channel, data, .. } = frame {
                    *sent.entry(channel).or_default() += data.len();
                }
            }
        }
    }
    // Each a third, to within a datagram.
    let (least, most) = (sent.values().min().unwrap(), sent.values().max().unwrap());
    assert!(sent.len() == 3 && most - least <= 1200, "{sent:?}");
}
