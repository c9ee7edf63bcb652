//! Floods of one kind, each until it is refused or for long: the most that is held.

use super::super::wire::Malformed;
use super::*;

const MB: usize = 1 << 20;

fn send(t: &mut Target, frames: &[Frame]) -> Result<(), LaneError> {
    let mut out = BytesMut::new();
    wire::begin(None, &mut out);
    frames.iter().for_each(|f| f.write(&mut out));
    t.lane.receive(out.freeze(), t.now)
}

fn stream(channel: u64, offset: u64, len: usize, fin: bool) -> Frame {
    let data = Bytes::from(vec![1; len]);
    Frame::Stream {
        channel,
        offset,
        fin,
        data,
    }
}

fn message(number: u64, total: u32, offset: u32, len: usize) -> Frame {
    Frame::Message {
        number,
        place: number.is_multiple_of(2).then_some(Place {
            flow: number % 7,
            sequence: number / 14,
        }),
        total,
        offset,
        data: Bytes::from(vec![1; len]),
    }
}

/// Sends until it is refused, at most so many; returns the refusal.
fn flood(t: &mut Target, most: u64, frames: impl Fn(u64) -> Vec<Frame>) -> Option<LaneError> {
    (0..most).find_map(|n| send(t, &frames(n)).err())
}

fn refused(why: Option<LaneError>) -> String {
    why.map_or("not refused".to_owned(), |e| e.to_string())
}

#[test]
fn streams_that_nobody_reads_are_bounded_together() {
    let mut t = Target::new();
    let why = flood(&mut t, 1 << 20, |n| {
        vec![stream(n % 20, n / 20 * 1300, 1300, false)]
    });
    assert!(refused(why).contains("credit for in all"));
    assert!(t.lane.cost() < 100 * MB, "{}", t.lane.cost());
    assert!(t.lane.cost() > 64 * MB);
}

#[test]
fn bytes_with_gaps_between_them_are_counted_with_what_they_cost() {
    let mut t = Target::new();
    let why = flood(&mut t, 1 << 20, |n| {
        vec![stream(n % 8, 1 + n / 8 * 2, 1, false)]
    });
    assert!(refused(why).contains("pieces that are too small"));
    assert!(t.lane.cost() < 130 * MB, "{}", t.lane.cost());
}

#[test]
fn bytes_in_order_cost_little_more_than_what_they_hold() {
    let mut t = Target::new();
    let why = flood(&mut t, 1 << 20, |n| vec![stream(1, n, 1, false)]);
    assert_eq!(why, None);
    assert!(t.lane.cost() < 2 * MB, "{}", t.lane.cost());
}

#[test]
fn channels_that_come_and_go_leave_little_behind() {
    let mut t = Target::new();
    for n in 0..200_000 {
        send(&mut t, &[stream(3 * n, 0, 1, true)]).expect("one at a time");
        assert!(t.lane.read(3 * n).is_some() && t.lane.ended(3 * n));
    }
    assert!(t.lane.cost() < MB, "{}", t.lane.cost());
}

#[test]
fn our_own_channels_leave_little_behind() {
    let mut t = Target::new();
    for n in 0..50_000 {
        assert_eq!(t.lane.write(2 * n, Bytes::from_static(b"x")), 1);
        t.lane.finish(2 * n);
        assert_eq!(
            t.lane
                .write_next((&[0], &[]), 1200, (0, Selection::All), t.now)
                .len(),
            1
        );
        let ack = Frame::Ack(Ack {
            path: 0,
            received: 0,
            delay: 0,
            ranges: vec![(n, n)],
        });
        send(&mut t, &[ack]).expect("it was sent");
        assert!(t.lane.is_done(2 * n));
        assert_eq!(t.lane.write(2 * n, Bytes::from_static(b"x")), 0);
    }
    assert!(t.lane.cost() < MB, "{}", t.lane.cost());
}

fn reset(channel: u64, size: u64) -> Frame {
    let code = 1;
    Frame::Reset {
        channel,
        code,
        size,
    }
}

#[test]
fn resets_that_nobody_reads_are_few_and_those_that_are_leave_little_behind() {
    let mut t = Target::new();
    let why = flood(&mut t, 20_000, |n| vec![reset(n, INITIAL_WINDOW)]);
    assert!(refused(why).contains("more channels than it may"));
    let mut t = Target::new();
    for n in 0..200_000 {
        send(&mut t, &[reset(3 * n, n % INITIAL_WINDOW)]).expect("one at a time");
        assert_eq!(t.lane.end(3 * n), Some(End::Reset(1)));
    }
    assert!(t.lane.cost() < MB, "{}", t.lane.cost());
}

/// Each is answered with a reset, which the peer acknowledges or does not.
#[test]
fn stops_of_channels_that_were_never_opened_are_bounded() {
    let stop = |channel| vec![Frame::Stop { channel, code: 1 }];
    let mut t = Target::new();
    let why = flood(&mut t, 100_000, |n| stop(3 * n));
    assert!(refused(why).contains("unacknowledged"));
    // As a LAN's connections leave that all end at once: a stream, its reset and its stop each.
    assert!(t.lane.cost() < 7 * MB, "{}", t.lane.cost());
    let mut t = Target::new();
    for n in 0..50_000 {
        send(&mut t, &stop(3 * n)).expect("they are acknowledged");
        send(&mut t, &stop(3 * n)).expect("once more changes nothing");
        assert_eq!(
            t.lane
                .write_next((&[0], &[]), 1200, (0, Selection::All), t.now)
                .len(),
            1
        );
        let ack = Frame::Ack(Ack {
            path: 0,
            received: 0,
            delay: 0,
            ranges: vec![(n, n)],
        });
        send(&mut t, &[ack]).expect("it was sent");
        assert!(t.lane.is_done(3 * n) && t.lane.writable(3 * n).is_none());
    }
    assert!(t.lane.cost() < MB, "{}", t.lane.cost());
}

/// This end wants nothing of what the peer opens, which goes on, or opens others.
#[test]
fn channels_that_were_stopped_keep_nothing_and_are_few() {
    let mut t = Target::new();
    t.lane.stop(1, 1);
    let why = flood(&mut t, 1 << 20, |n| vec![stream(1, n * 1300, 1300, false)]);
    assert!(refused(why).contains("more than it was given credit for"));
    assert!(t.lane.cost() < MB, "{}", t.lane.cost());
    let mut t = Target::new();
    let why = (0..30_000).find_map(|n| {
        let refused = send(&mut t, &[stream(2 * n, 5, 1300, false)]).err();
        t.lane.stop(2 * n, 1);
        refused
    });
    assert!(refused(why).contains("that were stopped"));
    // As many as a LAN may have open at a time, 400 bytes each.
    assert!(t.lane.cost() < 7 * MB, "{}", t.lane.cost());
}

#[test]
fn messages_that_never_complete_are_given_up() {
    for total in [2, 60_000] {
        let mut t = Target::new();
        let why = flood(&mut t, 300_000, |n| vec![message(3 * n, total, 1, 1)]);
        assert_eq!(why, None);
        assert!(t.lane.cost() < 18 * MB, "{}", t.lane.cost());
    }
}

#[test]
fn small_messages_that_nobody_takes_are_counted_with_what_they_cost() {
    let mut t = Target::new();
    let why = flood(&mut t, 300_000, |n| vec![message(n, 1, 0, 1)]);
    assert_eq!(why, None);
    assert!(t.lane.cost() < 18 * MB, "{}", t.lane.cost());
}

#[test]
fn messages_of_nothing_or_of_crumbs_are_refused() {
    for empty in [message(1, 0, 0, 0), message(1, 5, 2, 0)] {
        let mut t = Target::new();
        let why = send(&mut t, &[empty]).err();
        assert!(refused(why).contains("without anything in it"));
    }
    let mut t = Target::new();
    let why = flood(&mut t, 30_000, |n| {
        vec![message(1, MAX_MESSAGE, 1 + 2 * n as u32, 1)]
    });
    assert!(refused(why).contains("pieces that are too small"));
}

#[test]
fn paths_come_and_go_and_are_few_at_a_time() {
    let number = |path, t: &mut Target| {
        let mut out = BytesMut::new();
        let (sequence, sent) = (1 << 40, 0);
        wire::begin(
            Some(Number {
                path,
                sequence,
                sent,
            }),
            &mut out,
        );
        t.lane.receive(out.freeze(), t.now)
    };
    let mut t = Target::new();
    for path in 0..5000 {
        t.now += Duration::from_secs(1);
        assert_eq!(number(path, &mut t), Ok(()), "{path}");
    }
    assert!(t.lane.cost() < MB, "{}", t.lane.cost());
    let at_once = (5000..6000).find_map(|path| number(path, &mut t).err());
    assert_eq!(at_once, Some(LaneError::ManyPaths));
}

#[test]
fn what_is_never_acknowledged_is_given_up() {
    let mut t = Target::new();
    for n in 0..300_000u64 {
        assert!(t.lane.send_message(vec![1; 1000].into(), false));
        let path = (n % 2) as u32;
        assert_eq!(
            t.lane
                .write_next((&[path], &[]), 1200, (0, Selection::All), t.now)
                .len(),
            1
        );
    }
    assert!(t.lane.cost() < 10 * MB, "{}", t.lane.cost());
}

#[test]
fn acknowledgements_of_what_was_never_sent_are_refused() {
    let ack = |path, first, last| {
        Frame::Ack(Ack {
            path,
            received: 0,
            delay: 1 << 61,
            ranges: vec![(first, last)],
        })
    };
    for (path, first, last, wrong) in [
        (3, 0, 9, false),
        (3, 0, 10, true),
        (3, 10, 10, true),
        (3, 0, (1 << 62) - 1, true),
        (4, 0, 0, true),
        // Of a path that may have ended.
        (2, 0, 0, false),
    ] {
        let mut t = Target::new();
        t.lane.write(1, vec![1; 20_000].into());
        for _ in 0..10 {
            t.lane
                .write_next((&[3], &[]), 1200, (0, Selection::All), t.now);
        }
        let outcome = send(&mut t, &[ack(path, first, last)]);
        let wanted = wrong.then_some(LaneError::NeverSent);
        assert_eq!(outcome.err(), wanted, "{path} {first}..={last}");
    }
    // None before anything was sent.
    let outcome = send(&mut Target::new(), &[ack(0, 0, 0)]);
    assert_eq!(outcome, Err(LaneError::NeverSent));
}

#[test]
fn ranges_that_overlap_are_malformed() {
    let mut t = Target::new();
    // Path 0, largest 10, then a range that begins above its end, or a gap below 0.
    for tail in [[0, 11, 0, 0], [1, 3, 8, 0], [1, 3, 2, 9], [65, 0, 0, 0]] {
        let numbers = [0, 10, 0, 0].into_iter().chain(tail).collect();
        let why = t.apply(Op::RawAck(numbers)).err();
        let malformed = matches!(why, Some(LaneError::Malformed(Malformed { .. })));
        assert!(malformed, "{tail:?}: {why:?}");
    }
}

/// Credit that shrinks is none that was taken back, and all that there is can be given.
#[test]
fn credit_only_grows() {
    let mut t = Target::new();
    t.lane.write(1, vec![1; 1000].into());
    let most = (1 << 62) - 1;
    // The first ends the initial window.
    for (channel, all) in [(INITIAL_WINDOW, 0), (5, 5), (most, most), (0, 1)] {
        let frames = [
            Frame::Credit {
                channel: 1,
                max: channel,
            },
            Frame::CreditOfAll { max: all },
        ];
        assert_eq!(send(&mut t, &frames), Ok(()));
        let (waiting, window) = t.lane.flow(0);
        assert!(
            waiting == 1000 && window >= INITIAL_WINDOW,
            "{waiting} {window}"
        );
    }
    assert_eq!(t.lane.flow(0).1, most);
}
