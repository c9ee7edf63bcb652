//! Random runs in which every packet is accounted for.
//!
//! Wrong: a delivered packet differs from every packet sent. Doubled: delivered twice. Out of
//! order: delivered after a later one. Lost by us: it arrived, and was neither delivered nor too
//! late, too late being that t-Reordering had ended since a later packet arrived.

use std::time::Duration;

use braid_core::seed::{self, Rng};
use braid_core::{Rate, Time};
use rand::RngExt;

use super::pipe::{Pipe, PipeConfig};
use super::{NODE, Pair, Seen, UE, ms};
use crate::bearer::{BearerConfig, BearerKeys, EndConfig, Framing};
use crate::cipher::{Direction, Eea2};
use crate::link::Link;
use crate::wire::SnSize;
use crate::wire::data::Pdu;
use crate::wire::gtp::GtpFrame;
use crate::wire::lwaap::{self, DrbId};

const STEERINGS: [&str; 8] = [
    "static:1:1",
    "static:1:4",
    "phy",
    "rtt",
    "backlog",
    "lte",
    "wifi",
    "duplicate",
];
const BEARERS: usize = 2;

// Actions.
const PUSH: u64 = 0;
const REESTABLISH: u64 = 1;
const CHANGE_KEYS: u64 = 2;
const REMOVE_WLAN: u64 = 3;
const RESTORE_WLAN: u64 = 4;

/// One direction of one bearer.
#[derive(Default)]
struct Stream {
    pushed: u32,
    /// When packets arrived and were delivered, by number.
    arrivals: Vec<(Time, u32)>,
    deliveries: Vec<(Time, u32)>,
}

struct Soak {
    seed: u64,
    size: SnSize,
    ciphered: bool,
    /// Wi-Fi carries LWAAP alone.
    ethernet: bool,
    lossless: bool,
    t_reordering: Duration,
    generation: u8,
    /// By sending end and bearer.
    streams: [[Stream; BEARERS]; 2],
}

/// Counts of a run, so that a test can say that something happened at all.
#[derive(Debug, Default)]
struct Totals {
    delivered: u64,
    missing: u64,
    too_late: u64,
    retransmitted: u64,
    key_changes: u64,
    reestablished: u64,
}

fn drb(index: usize) -> DrbId {
    DrbId::new(index as u8 + 1).unwrap()
}

/// Content of packet `n`: its number, then bytes that follow from it.
fn packet(seed: u64, sender: usize, bearer: usize, n: u32) -> Vec<u8> {
    let mut x = (seed ^ (u64::from(n) << 8) ^ ((sender * BEARERS + bearer) as u64)) | 1;
    let len = 4 + (x.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize;
    let mut bytes = n.to_be_bytes().to_vec();
    while bytes.len() < len {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        bytes.push((x >> 56) as u8);
    }
    bytes
}

impl Soak {
    /// Key of what `sender` sends on a bearer.
    fn key(&self, sender: usize, bearer: DrbId) -> Option<Eea2> {
        let direction = if sender == NODE {
            Direction::Downlink
        } else {
            Direction::Uplink
        };
        (self.ciphered).then(|| Eea2::new([self.generation; 16], bearer.get(), direction))
    }

    fn keys(&self, end: usize, bearer: DrbId) -> BearerKeys {
        BearerKeys {
            send: self.key(end, bearer),
            receive: self.key(1 - end, bearer),
        }
    }

    fn pipe(&self, rng: &mut Rng, label: u64) -> Pipe {
        let mut outages = Vec::new();
        if !self.lossless && rng.random_bool(0.5) {
            let start = rng.random_range(0..600);
            let length = rng.random_range(1..500);
            outages.push((ms(start), ms(start + length)));
        }
        let config = PipeConfig {
            rate: Rate::from_bps(rng.random_range(2_000_000..60_000_000)),
            delay: Duration::from_micros(rng.random_range(100..60_000)),
            jitter: Duration::from_micros(if rng.random() {
                rng.random_range(0..20_000)
            } else {
                0
            }),
            loss: if self.lossless || rng.random() {
                0.0
            } else {
                rng.random_range(0.0..0.2)
            },
            copies: if rng.random() {
                rng.random_range(0.0..0.1)
            } else {
                0.0
            },
            outages,
            queue: Duration::from_millis(rng.random_range(1..40)),
            slowest: 1.0,
        };
        Pipe::new(config, self.seed ^ (label << 60))
    }

    fn config(&self, rng: &mut Rng, end: usize, first_counts: &[u32; BEARERS]) -> EndConfig {
        let bearers = (0..BEARERS).map(|b| {
            let steering = STEERINGS[rng.random_range(0..STEERINGS.len())];
            let reordering = format!("fixed:{}", self.t_reordering.as_millis());
            let mut config = BearerConfig::new(drb(b), steering, &reordering);
            let keys = self.keys(end, drb(b));
            (config.send_key, config.receive_key) = (keys.send, keys.receive);
            config.size = self.size;
            // Both directions of a bearer begin alike.
            config.first_count = first_counts[b];
            config
        });
        let mut config = EndConfig::node(bearers.collect());
        config.resend_lost = rng.random();
        if self.ethernet {
            config.framing[1] = Framing::Ethernet;
        }
        config
    }

    fn see(&mut self, pair: &mut Pair, seen: Seen, totals: &mut Totals) {
        match seen {
            Seen::App(what) if what & 0xff == PUSH => {
                let (sender, b) = ((what >> 8) as usize & 1, (what >> 16) as usize);
                let stream = &mut self.streams[sender][b];
                let bytes = packet(self.seed, sender, b, stream.pushed);
                if pair.ends[sender].push(pair.now, drb(b), bytes).is_ok() {
                    stream.pushed += 1;
                }
            }
            Seen::App(REESTABLISH) => {
                self.generation += 1;
                totals.reestablished += 1;
                for end in [NODE, UE] {
                    pair.epochs[end] += 1;
                    pair.ends[end].reestablish(pair.now, |drb| self.keys(end, drb));
                }
            }
            Seen::App(CHANGE_KEYS) => {
                self.generation += 1;
                for sender in [NODE, UE] {
                    for b in 0..BEARERS {
                        let key = self.key(sender, drb(b));
                        // Not while the marker of the last change is under way, and not where
                        // nothing was sent since (which is refused).
                        if !pair.ends[1 - sender].awaits_marker(drb(b))
                            && pair.ends[sender]
                                .change_key(pair.now, drb(b), key.clone())
                                .is_ok()
                        {
                            pair.ends[1 - sender].stage_key(drb(b), key).unwrap();
                            totals.key_changes += 1;
                        }
                    }
                }
            }
            Seen::App(what) => {
                for end in [NODE, UE] {
                    pair.ends[end].set_link(pair.now, Link::Wlan, what == RESTORE_WLAN);
                }
            }
            Seen::Arrival { end, link, frame } => {
                if !self.ciphered {
                    let bare = self.ethernet && link == 1;
                    self.arrived(pair.now, 1 - end, bare, &frame);
                }
            }
            Seen::Delivered {
                end,
                drb,
                packet: bytes,
            } => {
                let (sender, b) = (1 - end, usize::from(drb.get()) - 1);
                let n = bytes.get(..4).map_or(u32::MAX, |b| {
                    b.iter().fold(0, |n, &b| (n << 8) | u32::from(b))
                });
                assert!(
                    n < self.streams[sender][b].pushed && bytes == packet(self.seed, sender, b, n),
                    "seed {}: wrong packet at {:?}, sender {sender} bearer {b}: {n:08x}",
                    self.seed,
                    pair.now,
                );
                self.streams[sender][b].deliveries.push((pair.now, n));
            }
        }
    }

    /// Notes the packet in a frame that `sender` sent.
    fn arrived(&mut self, now: Time, sender: usize, bare: bool, frame: &[u8]) {
        let payload = if bare {
            frame
        } else {
            GtpFrame::decode(frame).unwrap().payload
        };
        let Ok((drb, pdu)) = lwaap::decode(payload) else {
            return;
        };
        // Answers to probes have another payload, of an impossible bearer.
        let b = usize::from(drb.get()).wrapping_sub(1);
        if b >= BEARERS {
            return;
        }
        if let Ok(Pdu::Data { payload, .. }) = Pdu::decode(self.size, pdu) {
            let n = u32::from_be_bytes(payload[..4].try_into().unwrap());
            self.streams[sender][b].arrivals.push((now, n));
        }
    }

    fn judge(&self, totals: &mut Totals) {
        for (sender, streams) in self.streams.iter().enumerate() {
            for (b, stream) in streams.iter().enumerate() {
                let place = format!("seed {} sender {sender} bearer {b}", self.seed);
                for pair in stream.deliveries.windows(2) {
                    assert!(
                        pair[0].1 < pair[1].1,
                        "{place}: doubled or out of order: {pair:?}"
                    );
                }
                totals.delivered += stream.deliveries.len() as u64;
                let mut arrived = vec![Time::MAX; stream.pushed as usize];
                for &(at, n) in &stream.arrivals {
                    arrived[n as usize] = arrived[n as usize].min(at);
                }
                let mut delivered = vec![false; stream.pushed as usize];
                for &(_, n) in &stream.deliveries {
                    delivered[n as usize] = true;
                }
                for n in (0..stream.pushed).filter(|&n| !delivered[n as usize]) {
                    totals.missing += 1;
                    assert!(
                        !self.lossless,
                        "{place}: {n} is missing though no link lost anything"
                    );
                    let at = arrived[n as usize];
                    if at == Time::MAX {
                        continue;
                    }
                    totals.too_late += 1;
                    let given_up = stream.deliveries.iter().find(|d| d.1 > n);
                    let given_up = given_up.map_or(Time::MAX, |d| d.0);
                    let higher = (stream.arrivals.iter())
                        .any(|a| a.1 > n && a.0 + self.t_reordering <= given_up);
                    assert!(
                        given_up <= at && higher,
                        "{place}: {n} arrived at {at:?} and was not delivered; \
                         a later one was at {given_up:?}",
                    );
                }
            }
        }
    }
}

/// One run.
fn soak(seed: u64, totals: &mut Totals) {
    let mut rng = seed::stream(seed, "soak");
    let ciphered = rng.random();
    let lossless = rng.random_bool(0.25);
    let mut soak = Soak {
        seed,
        size: SnSize::ALL[if rng.random_bool(0.7) {
            0
        } else {
            rng.random_range(0..3)
        }],
        ciphered,
        ethernet: seed % 5 == 4,
        lossless,
        // Without loss nothing may be given up: longer than any link delays.
        t_reordering: Duration::from_millis(if lossless {
            700
        } else {
            rng.random_range(10..300)
        }),
        generation: 1,
        streams: Default::default(),
    };
    // Near the end of a round of numbers, or anywhere.
    let round = soak.size.modulus();
    let counts = [(); BEARERS].map(|()| match rng.random_range(0..3) {
        0 => 0,
        1 => round * rng.random_range(1..200) - rng.random_range(1..150),
        _ => rng.random_range(0..1 << 31),
    });
    let pipes = [0u64, 1].map(|end| [0u64, 1].map(|link| soak.pipe(&mut rng, end * 2 + link)));
    let node = soak.config(&mut rng, NODE, &counts);
    let ue = soak.config(&mut rng, UE, &counts);
    let mut pair = Pair::new(node, ue, pipes);
    // Bursts and single packets, downlink mostly.
    for sender in [NODE, UE] {
        for b in 0..BEARERS {
            let mut at = 0;
            for _ in 0..rng.random_range(0..if sender == NODE { 30 } else { 10 }) {
                at += rng.random_range(0..50_000);
                for _ in 0..rng.random_range(1..12) {
                    let what = PUSH | (sender as u64) << 8 | (b as u64) << 16;
                    pair.act(Time::from(Duration::from_micros(at)), what);
                }
            }
        }
    }
    // Frames without tunnels do not tell which key they are under after a re-establishment.
    let change_keys = soak.ciphered && (rng.random() || soak.ethernet);
    let change = if change_keys {
        CHANGE_KEYS
    } else {
        REESTABLISH
    };
    for _ in 0..rng.random_range(0..4) {
        pair.act(ms(rng.random_range(50..700)), change);
    }
    if rng.random_bool(0.2) {
        let at = rng.random_range(0..500);
        pair.act(ms(at), REMOVE_WLAN);
        pair.act(ms(at + rng.random_range(1..500)), RESTORE_WLAN);
    }
    pair.run(ms(3500), |pair, seen| soak.see(pair, seen, totals));
    soak.judge(totals);
    for end in [NODE, UE] {
        for b in 0..BEARERS {
            let (tx, _) = pair.ends[end].bearer_stats(drb(b)).unwrap();
            totals.retransmitted += tx.retransmitted;
        }
    }
}

fn run(seeds: std::ops::Range<u64>) {
    let mut totals = Totals::default();
    let count = seeds.end - seeds.start;
    for seed in seeds {
        soak(seed, &mut totals);
    }
    println!("{count} runs: {totals:?}");
    // A run of nothing would pass as well.
    assert!(totals.delivered > 20 * count, "{totals:?}");
    for some in [
        totals.missing,
        totals.too_late,
        totals.retransmitted,
        totals.key_changes,
        totals.reestablished,
    ] {
        assert!(some > 0, "{totals:?}");
    }
}

#[test]
fn every_packet_is_accounted_for() {
    run(0..250);
}

/// Long form: `cargo test --release -p braid-lwa -- --ignored ten_thousand`.
#[test]
#[ignore = "10,000 runs: make it in release"]
fn every_packet_is_accounted_for_in_ten_thousand_runs() {
    run(0..10_000);
}
