//! A peer that lies, floods and repeats itself: the lane ends in an error or goes on, and
//! holds no more memory than it says, whatever comes.
//!
//! `PROPTEST_CASES=100000 cargo test -p braid-mpquic hostile` runs for longer.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;

use super::flow_control::INITIAL_WINDOW;
use super::message_order::Place;
use super::wire::put;
use super::*;

mod floods;

/// Bytes that a lane holds beside what it was sent: the state of its channels and paths.
const BASE: usize = 1 << 20;
/// Maximum bytes of memory for each byte that was sent: a frame with one byte of data has six.
const PER_BYTE: usize = 200;

/// Next action of the peer or of this end.
#[derive(Clone, Debug)]
enum Op {
    Frames(Option<(u32, u64)>, Vec<Frame>),
    /// Numbers of an acknowledgement as they come, lawful or not.
    RawAck(Vec<u64>),
    Garbage(Vec<u8>),
    /// A datagram of before, with a byte changed or cut off, or as it was.
    Again(Index, Option<(Index, u8)>, Option<Index>),
    Write(u64, usize),
    Finish(u64),
    Reset(u64),
    Stop(u64),
    Message(usize, bool),
    /// Path, one on which it is to leave later, and class.
    Send(u32, Option<u32>, u8),
    PendingCopy(u32, u8),
    SetClass(u64, u8),
    Packet(u8, u32, usize),
    Acknowledge,
    Copy(u32),
    Read(u64),
    Take,
    Pass(u64),
    Forget(u32),
}

/// Small numbers, those about an edge, and any.
fn near(edge: u64) -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0u64..6,
        2 => 0..edge + 6,
        1 => edge.saturating_sub(3)..edge + 4,
        1 => 0..1u64 << 62,
    ]
}

fn channel() -> impl Strategy<Value = u64> {
    near(300)
}

fn path() -> impl Strategy<Value = u32> {
    near(260).prop_map(|n| n as u32)
}

fn data() -> impl Strategy<Value = Bytes> {
    let len = prop_oneof![3 => 0usize..4, 1 => 0usize..1200];
    len.prop_map(|n| Bytes::from(vec![7; n]))
}

fn ack() -> impl Strategy<Value = Ack> {
    let steps = prop::collection::vec((near(20), near(20)), 0..wire::MAX_RANGES);
    (path(), near(40), near(1 << 40), steps).prop_map(|(path, largest, delay, steps)| {
        let mut ranges = Vec::new();
        let mut next = Some(largest);
        for (len, gap) in steps {
            let Some(last) = next else { break };
            let first = last.saturating_sub(len);
            ranges.push((first, last));
            next = first.checked_sub(gap.saturating_add(2));
        }
        Ack {
            path,
            received: delay as u32,
            delay,
            ranges,
        }
    })
}

fn frame() -> impl Strategy<Value = Frame> {
    let offset = near(INITIAL_WINDOW).prop_map(|o| o.min((1 << 62) - 2000));
    let stream = (channel(), offset, any::<bool>(), data());
    let total = prop_oneof![near(70_000), Just(u64::from(MAX_MESSAGE))];
    let place = (near(8), near(100)).prop_map(|(flow, sequence)| Place { flow, sequence });
    let place = prop::option::of(place);
    let message = (near(20_000), total, near(70_000), place, data());
    prop_oneof![
        4 => stream.prop_map(|(channel, offset, fin, data)| Frame::Stream {
            channel,
            offset,
            fin,
            data
        }),
        4 => message.prop_map(|(number, total, offset, place, data)| Frame::Message {
            number,
            place,
            total: total as u32,
            offset: offset as u32,
            data,
        }),
        2 => ack().prop_map(Frame::Ack),
        1 => (channel(), near(INITIAL_WINDOW)).prop_map(|(channel, max)| Frame::Credit { channel, max }),
        1 => near(INITIAL_WINDOW).prop_map(|max| Frame::CreditOfAll { max }),
        1 => (any::<u32>(), near(1 << 30), near(9)).prop_map(|(path, rate, number)| Frame::Expected {
            path: PathId::from(path),
            rate,
            number,
        }),
        1 => any::<u32>().prop_map(|path| Frame::Closed { path: PathId::from(path) }),
        2 => (channel(), near(INITIAL_WINDOW)).prop_map(|(channel, size)| Frame::Reset { channel, code: 1, size }),
        2 => channel().prop_map(|channel| Frame::Stop { channel, code: 1 }),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let number = prop::option::of((path(), near(100)));
    let frames = prop::collection::vec(frame(), 0..8);
    let change = prop::option::of((any::<Index>(), any::<u8>()));
    let garbage = prop::collection::vec(any::<u8>(), 0..200);
    prop_oneof![
        8 => (number, frames).prop_map(|(n, f)| Op::Frames(n, f)),
        2 => prop::collection::vec(near(64), 0..12).prop_map(Op::RawAck),
        1 => garbage.prop_map(Op::Garbage),
        2 => (any::<Index>(), change, prop::option::of(any::<Index>()))
            .prop_map(|(which, change, cut)| Op::Again(which, change, cut)),
        2 => (channel(), 0usize..5000).prop_map(|(c, n)| Op::Write(c, n)),
        1 => channel().prop_map(Op::Finish),
        1 => channel().prop_map(Op::Reset),
        1 => channel().prop_map(Op::Stop),
        1 => (0usize..70_000, any::<bool>()).prop_map(|(n, ordered)| Op::Message(n, ordered)),
        4 => (path(), prop::option::of(path()), 0u8..9).prop_map(|(p, l, c)| Op::Send(p, l, c)),
        1 => (path(), 0u8..9).prop_map(|(p, c)| Op::PendingCopy(p, c)),
        1 => (channel(), 0u8..9).prop_map(|(channel, c)| Op::SetClass(channel, c)),
        1 => (0u8..9, near(9), 1usize..1500).prop_map(|(c, flow, n)| Op::Packet(c, flow as u32, n)),
        1 => Just(Op::Acknowledge),
        1 => path().prop_map(Op::Copy),
        2 => channel().prop_map(Op::Read),
        1 => Just(Op::Take),
        2 => near(40_000).prop_map(|ms| Op::Pass(ms.min(100_000))),
        1 => path().prop_map(Op::Forget),
    ]
}

/// The lane under attack.
struct Target {
    lane: Lane,
    now: Instant,
    before: Vec<Bytes>,
    /// Bytes that came, and that this end wrote.
    received: usize,
    written: usize,
}

impl Target {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            lane: Lane::new(now),
            now,
            before: Vec::new(),
            received: 0,
            written: 0,
        }
    }

    fn receive(&mut self, data: Bytes) -> Result<(), LaneError> {
        self.received += data.len();
        self.before.push(data.clone());
        self.lane.receive(data, self.now)
    }

    fn apply(&mut self, op: Op) -> Result<(), LaneError> {
        let (lane, now) = (&mut self.lane, self.now);
        match op {
            Op::Frames(number, frames) => {
                let mut out = BytesMut::new();
                let number = number.map(|(path, sequence)| Number {
                    path,
                    sequence,
                    sent: 0,
                });
                wire::begin(number, &mut out);
                frames.iter().for_each(|f| f.write(&mut out));
                return self.receive(out.freeze());
            }
            Op::RawAck(numbers) => {
                let mut out = BytesMut::new();
                wire::begin(None, &mut out);
                out.extend_from_slice(&[5]);
                for (i, n) in numbers.iter().enumerate() {
                    match i {
                        2 => out.extend_from_slice(&(*n as u32).to_be_bytes()),
                        _ => put(&mut out, *n),
                    }
                }
                return self.receive(out.freeze());
            }
            Op::Garbage(data) => return self.receive(data.into()),
            Op::Again(which, change, cut) => {
                if self.before.is_empty() {
                    return Ok(());
                }
                let mut data = BytesMut::from(&which.get(&self.before)[..]);
                if let Some((at, byte)) = change.filter(|_| !data.is_empty()) {
                    let at = at.index(data.len());
                    data[at] = byte;
                }
                if let Some(cut) = cut.filter(|_| !data.is_empty()) {
                    data.truncate(cut.index(data.len()));
                }
                return self.receive(data.freeze());
            }
            Op::Write(channel, n) => {
                self.written += lane.write(channel, vec![1; n].into()) + 1000;
            }
            Op::Finish(channel) => {
                lane.finish(channel);
                self.written += 1000;
            }
            Op::Reset(channel) => {
                lane.reset(channel, 1);
                self.written += 1000;
            }
            Op::Stop(channel) => {
                lane.stop(channel, 1);
                self.written += 1000;
            }
            Op::Message(n, ordered) => {
                lane.send_message(vec![1; n].into(), ordered);
                self.written += n + 1000;
            }
            Op::Send(path, later, class) => {
                lane.prepare(now);
                let paths = (&[path][..], later.as_slice());
                let sent = lane.write_next(paths, 1200, (class, Selection::All), now);
                self.written += 3000 * sent.len();
            }
            Op::PendingCopy(path, class) => {
                lane.prepare(now);
                if lane.write_pending_copy(class, path, 1200, now).is_some() {
                    self.written += 1500;
                }
            }
            Op::SetClass(channel, class) => {
                lane.set_class(channel, class);
                self.written += 1000;
            }
            Op::Packet(class, flow, n) => {
                let packet = Packet {
                    class,
                    flow,
                    ordered: true,
                    data: vec![1; n].into(),
                    mark: |_| None,
                };
                lane.send_packet(packet, now);
                self.written += n + 2000;
            }
            Op::Acknowledge => {
                lane.write_ack(1200, now);
            }
            Op::Copy(path) => {
                if let Some((.., pieces)) = lane.oldest([true; 8]) {
                    lane.write_copy(path, &pieces, 1200, now);
                    self.written += 1000;
                }
            }
            Op::Read(channel) => {
                while lane.read(channel).is_some() {}
                lane.ended(channel);
            }
            Op::Take => while lane.next_message().is_some() {},
            Op::Pass(ms) => {
                self.now += Duration::from_millis(ms);
                if lane.due().is_some_and(|t| t <= self.now) {
                    lane.tick(self.now, |_| false);
                }
            }
            Op::Forget(path) => lane.forget(path),
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn whatever_comes_it_goes_on_or_ends_in_bounded_memory(
        ops in prop::collection::vec(op(), 1..120), stubborn in any::<bool>(),
    ) {
        let mut target = Target::new();
        for op in ops {
            let outcome = target.apply(op);
            let most = BASE + PER_BYTE * target.received + 2 * target.written;
            let cost = target.lane.cost();
            prop_assert!(cost <= most, "{} bytes held of {} received", cost, target.received);
            // What is on its way when a connection is closed may still be handed over.
            if outcome.is_err() && !stubborn {
                break;
            }
        }
    }
}
