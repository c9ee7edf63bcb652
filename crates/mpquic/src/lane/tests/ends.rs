//! Channels that end in any way, over paths that lose, delay, double and reorder.

use super::*;
use crate::lane::wire::Malformed;

/// Written by end 0 in property tests, read by end 1.
const CHANNELS: [u64; 3] = [0, 2, 5];

/// Action of the two programs on a channel.
#[derive(Clone, Copy, Debug)]
enum Act {
    Write(usize),
    Finish,
    Reset(u64),
    Stop(u64),
    Read,
    Pass(u64),
}

fn act() -> impl Strategy<Value = (usize, Act)> {
    let act = prop_oneof![
        6 => (1usize..60_000).prop_map(Act::Write),
        2 => Just(Act::Finish),
        1 => (0u64..9).prop_map(Act::Reset),
        1 => (10u64..19).prop_map(Act::Stop),
        4 => Just(Act::Read),
        6 => (1u64..80).prop_map(Act::Pass),
    ];
    (0..CHANNELS.len(), act)
}

/// One channel as its two programs know it.
#[derive(Clone, Debug, Default)]
struct Known {
    written: u64,
    finished: bool,
    reset: Option<u64>,
    stopped: Option<u64>,
    read: u64,
    end: Option<End>,
}

impl Known {
    fn write(&mut self, pair: &mut Pair, channel: u64, n: usize) {
        let data: Bytes = (self.written..self.written + n as u64).map(byte).collect();
        let open = pair.ends[0].writable(channel).is_some();
        let taken = pair.ends[0].write(channel, data) as u64;
        assert!(open || taken == 0, "an ended channel took {taken} bytes");
        self.written += taken;
    }

    fn read(&mut self, pair: &mut Pair, channel: u64) -> Result<(), TestCaseError> {
        if self.stopped.is_some() || self.end.is_some() {
            return Ok(());
        }
        while let Some(data) = pair.ends[1].read(channel) {
            for b in &data {
                prop_assert_eq!(*b, byte(self.read));
                self.read += 1;
            }
        }
        self.end = pair.ends[1].end(channel);
        Ok(())
    }

    /// Checks that the data read is a prefix, and that the end is of the right kind.
    fn check(&self) -> Result<(), TestCaseError> {
        prop_assert!(self.read <= self.written, "{:?}", self);
        match self.end {
            Some(End::Finished) => {
                prop_assert!(self.finished && self.read == self.written, "{:?}", self);
            }
            Some(End::Reset(code)) => prop_assert_eq!(Some(code), self.reset),
            Some(End::Forgotten) => prop_assert!(false, "{:?}", self),
            None => prop_assert!(self.stopped.is_some(), "it never ended: {:?}", self),
        }
        Ok(())
    }
}

/// Nothing is left of any channel at either end, and all credit has come back.
fn check_rest(pair: &Pair) -> Result<(), TestCaseError> {
    let [from, to] = &pair.ends;
    prop_assert_eq!(from.sender.unacknowledged(), (0, 0), "streams and updates");
    prop_assert_eq!(to.sender.unacknowledged(), (0, 0), "streams and updates");
    prop_assert_eq!(from.flow(0).0, 0);
    let (sent, acked) = from.sender.credit_used();
    let (reached, read) = to.receiver.credit_used();
    prop_assert_eq!((acked, reached, read), (sent, sent, sent));
    prop_assert_eq!(to.receiver.channels().count(), 0);
    prop_assert_eq!(to.receiver.held(), 0);
    Ok(())
}

fn fate(fates: &[(u8, u64)], k: &mut usize) -> Vec<u64> {
    *k += 1;
    let (what, delay) = fates[*k % fates.len()];
    match what {
        0 | 1 => vec![],
        2 => vec![delay, delay + 3],
        _ => vec![delay],
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn whatever_programs_do_each_sees_a_prefix_and_the_right_end(
        acts in prop::collection::vec(act(), 1..60),
        fates in prop::collection::vec((0u8..10, 1u64..50), 50..300),
    ) {
        let mut pair = Pair::new();
        let mut known = vec![Known::default(); CHANNELS.len()];
        let mut k = 0;
        let lost = |e: LaneError| TestCaseError::fail(e.to_string());
        for (i, act) in acts {
            let (channel, one) = (CHANNELS[i], &mut known[i]);
            match act {
                Act::Write(n) => one.write(&mut pair, channel, n),
                Act::Finish => {
                    one.finished |= pair.ends[0].writable(channel).is_some();
                    pair.ends[0].finish(channel);
                }
                Act::Reset(code) => {
                    one.reset.get_or_insert(code);
                    pair.ends[0].reset(channel, code);
                }
                Act::Stop(code) if one.end.is_none() => {
                    one.stopped.get_or_insert(code);
                    pair.ends[1].stop(channel, code);
                }
                Act::Stop(_) => {}
                Act::Read => one.read(&mut pair, channel)?,
                Act::Pass(ms) => for _ in 0..ms {
                    pair.step(3, |_| fate(&fates, &mut k)).map_err(lost)?;
                },
            }
        }
        for (channel, one) in CHANNELS.iter().zip(&mut known) {
            one.finished |= pair.ends[0].writable(*channel).is_some();
            pair.ends[0].finish(*channel);
        }
        for _ in 0..30_000 {
            pair.step(3, |_| fate(&fates, &mut k)).map_err(lost)?;
            for (channel, one) in CHANNELS.iter().zip(&mut known) {
                one.read(&mut pair, *channel)?;
            }
            if check_rest(&pair).is_ok() {
                break;
            }
        }
        check_rest(&pair)?;
        for (channel, one) in CHANNELS.iter().zip(&known) {
            one.check()?;
            prop_assert!(pair.ends[0].is_done(*channel));
        }
        // The sender learnt of every stop but of what had ended before.
        for (channel, code) in pair.ends[0].take_stops() {
            let at = CHANNELS.iter().position(|c| *c == channel);
            prop_assert_eq!(at.and_then(|i| known[i].stopped), Some(code));
        }
    }
}

/// Steps without losses; returns bytes of stream data that `from` sent.
fn pass(pair: &mut Pair, ms: u64) -> usize {
    let mut bytes = 0;
    for _ in 0..ms {
        pair.step(1, |_| vec![20]).unwrap();
        let new = pair
            .air
            .iter()
            .filter(|(at, to, _)| *to == 1 && *at == pair.now + Duration::from_millis(19));
        bytes += new.map(|(.., data)| data.len()).sum::<usize>();
    }
    bytes
}

/// Data that waits when it is stopped is only sent if it leaves within a one-way delay.
#[test]
fn what_is_stopped_is_not_sent_any_more() {
    let mut pair = Pair::new();
    assert_eq!(pair.ends[0].write(0, vec![7; 2 << 20].into()), 2 << 20);
    assert!(pass(&mut pair, 100) > 200_000);
    pair.ends[1].stop(0, 33);
    let after = pass(&mut pair, 2000);
    let delay = 20 * 4 * 1200;
    assert!(after <= delay + 20_000, "{after} bytes after the stop");
    assert_eq!(pair.ends[0].take_stops().get(&0), Some(&33));
    assert_eq!(
        (pair.ends[0].writable(0), pair.ends[0].is_done(0)),
        (None, true)
    );
    check_rest(&pair).unwrap();
}

/// More than the credit of all channels together is given up in turn, and the last is as
/// fast as the first.
#[test]
fn credit_of_what_is_given_up_comes_back() {
    let mut pair = Pair::new();
    let mut took = Vec::new();
    for n in 0..40 {
        let channel = 2 * n;
        pair.ends[0].write(channel, vec![7; INITIAL_WINDOW as usize].into());
        let begun = pair.now;
        let mut got = 0;
        while got < 300_000 {
            pass(&mut pair, 1);
            while let Some(data) = pair.ends[1].read(channel) {
                got += data.len();
            }
        }
        took.push(pair.now - begun);
        // By turns without a word, and by a reset of the sender.
        match n % 2 {
            0 => pair.ends[1].stop(channel, 1),
            _ => pair.ends[0].reset(channel, 1),
        }
        pass(&mut pair, 200);
        while pair.ends[1].read(channel).is_some() {}
        let end = pair.ends[1].end(channel);
        let wanted = if n % 2 == 0 {
            End::Forgotten
        } else {
            End::Reset(1)
        };
        assert_eq!(end, Some(wanted));
    }
    let (first, last) = (took[0], took[took.len() - 1]);
    assert!(last <= first + Duration::from_millis(5), "{took:?}");
    check_rest(&pair).unwrap();
}

/// Data that has come before a reset may be read, and nothing behind a gap.
#[test]
fn a_reset_is_read_after_what_was_there() {
    let (mut l, now) = lane();
    let part = |offset, len| Frame::Stream {
        channel: 4,
        offset,
        fin: false,
        data: Bytes::from(vec![7; len]),
    };
    let reset = Frame::Reset {
        channel: 4,
        code: 77,
        size: 9000,
    };
    l.receive(
        datagram(&[part(0, 3000), part(5000, 1000), reset.clone()]),
        now,
    )
    .unwrap();
    // Late, and once more.
    l.receive(datagram(&[part(3000, 2000), reset]), now)
        .unwrap();
    assert!(l.is_readable(4));
    assert_eq!(l.end(4), None);
    assert_eq!(l.read(4).map(|d| d.len()), Some(3000));
    assert!(l.is_readable(4));
    assert_eq!((l.read(4), l.end(4)), (None, Some(End::Reset(77))));
    assert_eq!(l.receiver.credit_used(), (9000, 9000));
}

/// All of it is there: how it ends does not change any more (RFC 9000 3.2).
#[test]
fn a_reset_after_all_has_come_changes_nothing() {
    let (mut l, now) = lane();
    let all = Frame::Stream {
        channel: 4,
        offset: 0,
        fin: true,
        data: Bytes::from_static(b"whole"),
    };
    let reset = Frame::Reset {
        channel: 4,
        code: 77,
        size: 5,
    };
    l.receive(datagram(&[all, reset]), now).unwrap();
    assert_eq!(l.read(4).as_deref(), Some(&b"whole"[..]));
    assert_eq!(l.end(4), Some(End::Finished));
}

#[test]
fn a_peer_may_not_change_how_long_a_channel_is() {
    let part = |offset, len, fin| Frame::Stream {
        channel: 1,
        offset,
        fin,
        data: Bytes::from(vec![0; len]),
    };
    let reset = |size| Frame::Reset {
        channel: 1,
        code: 0,
        size,
    };
    for (wrong, why) in [
        (vec![reset(5), reset(6)], "final size"),
        (vec![reset(5), part(5, 1, false)], "beyond the end"),
        (vec![reset(5), part(0, 4, true)], "beyond the end"),
        (vec![part(0, 9, false), reset(8)], "final size"),
        (vec![part(0, 9, true), reset(10)], "final size"),
        (vec![part(3, 6, true), reset(8)], "final size"),
        (
            vec![reset(INITIAL_WINDOW + 1)],
            "more than it was given credit for",
        ),
    ] {
        for stopped in [false, true] {
            let (mut l, now) = lane();
            if stopped {
                l.stop(1, 1);
            }
            let refused = l.receive(datagram(&wrong), now).map_err(|e| e.to_string());
            // Once a stopped one has ended nothing is known of it.
            let forgotten = stopped && matches!(wrong[0], Frame::Reset { .. }) && wrong.len() > 1;
            let forgotten =
                forgotten || (stopped && matches!(wrong[0], Frame::Stream { fin: true, .. }));
            match refused {
                Ok(()) => assert!(forgotten, "{wrong:?}"),
                Err(e) => assert!(e.contains(why) && !forgotten, "{e}: {wrong:?}"),
            }
        }
    }
    let (mut l, now) = lane();
    let last = (0..16).map(|channel| Frame::Stream {
        channel,
        offset: INITIAL_WINDOW - 1,
        fin: false,
        data: Bytes::from_static(b"x"),
    });
    l.receive(datagram(&last.collect::<Vec<_>>()), now).unwrap();
    let one_more = Frame::Reset {
        channel: 16,
        code: 0,
        size: 1,
    };
    let refused = l.receive(datagram(&[one_more]), now);
    assert!(refused.unwrap_err().to_string().contains("in all"));
    let cut = datagram(&[reset(1 << 40)]);
    let refused = l.receive(cut.slice(..cut.len() - 3), now);
    assert!(matches!(
        refused,
        Err(LaneError::Malformed(Malformed { .. }))
    ));
}

/// A reset or a stop that is lost is sent again; one of a channel that the peer has not
/// heard of opens it.
#[test]
fn resets_and_stops_are_sent_until_they_are_known() {
    let mut pair = Pair::new();
    pair.ends[0].reset(6, 5);
    pair.ends[0].stop(6, 8);
    let mut first = 3;
    for _ in 0..1000 {
        pair.step(1, |_| {
            first -= i32::from(first > 0);
            if first > 0 { vec![] } else { vec![10] }
        })
        .unwrap();
    }
    assert_eq!(pair.ends[1].channels().collect::<Vec<_>>(), [6]);
    assert_eq!(
        (pair.ends[1].read(6), pair.ends[1].end(6)),
        (None, Some(End::Reset(5)))
    );
    assert_eq!(
        pair.ends[1].take_stops().into_iter().collect::<Vec<_>>(),
        [(6, 8)]
    );
    assert_eq!(pair.ends[1].write(6, Bytes::from_static(b"x")), 0);
    check_rest(&pair).unwrap();
}
