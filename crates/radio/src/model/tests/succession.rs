//! A network that takes the place of another under load.

use proptest::prelude::*;

use super::super::wifi::{Dcf, Standard, WifiSpec};
use super::super::{DelaySpec, QueueSpec, StationLink};
use super::*;

/// Two links of their own, two behind one backhaul, two of one access point.
const LINKS: usize = 6;
const DELAY: Duration = Duration::from_millis(3);

fn network(codel: bool) -> Network {
    let mut net = Network::new(1);
    let queue = match codel {
        true => QueueSpec::Codel {
            // Never drops here, but serves packet by packet.
            target: Duration::from_secs(100),
            interval: Duration::from_secs(100),
            limit_packets: u32::MAX,
        },
        false => QueueSpec::Packets(u32::MAX),
    };
    let spec = LinkSpec {
        rate: mbps(20),
        delay: DelaySpec::Constant(DELAY),
        queue,
        ..LinkSpec::default()
    };
    let links: Vec<LinkId> = (0..LINKS)
        .map(|i| net.add_link(&i.to_string(), &spec))
        .collect();
    net.add_backhaul(&mbps(20), &links[2..4]);
    let at = |&link| StationLink {
        link,
        phy_mbps: None,
    };
    let dcf = Dcf::new(&WifiSpec::new(Standard::G), 1, 1).unwrap();
    net.add_medium(
        "cell",
        Box::new(dcf),
        vec![links[4..].iter().map(at).collect()],
    );
    net
}

/// Sends trains (gap in microseconds, link, packets); where `succeed` is
/// something, another network takes over so long after the start, and counts
/// its time from the second time before that. Everything in the first's time.
fn run(codel: bool, trains: &[(u64, usize, u32)], succeed: Option<(u64, u64)>) -> Log {
    let (mut net, mut log) = (network(codel), Log::default());
    let mut former: Option<Network> = None;
    let mut late = Log::default();
    // Of the present network's zero in the first's time.
    let mut zero = 0;
    let mut now = 0;
    let mut arrivals: Vec<_> = trains
        .iter()
        .enumerate()
        .map(|(id, &(gap, link, packets))| {
            now += gap;
            (now, Some((link, train(id as u32, packets, 1500))))
        })
        .collect();
    if let Some((at, _)) = succeed {
        let place = arrivals.partition_point(|a| a.0 < at);
        arrivals.insert(place, (at, None));
    }
    for (at, arrival) in arrivals {
        match (arrival, succeed) {
            (Some((link, train)), _) => {
                let t = at_us(at - zero);
                net.advance(t, if zero > 0 { &mut late } else { &mut log });
                net.enqueue(
                    LinkId(link as u32),
                    t,
                    train,
                    if zero > 0 { &mut late } else { &mut log },
                );
            }
            (None, Some((_, before))) => {
                zero = at - before.min(at);
                let mut fresh = network(codel);
                fresh.succeed(at_us(at - zero), &mut net, at_us(at), &mut log);
                former = Some(std::mem::replace(&mut net, fresh));
            }
            (None, None) => unreachable!(),
        }
    }
    let end = Time::from(Duration::from_secs(1000));
    if let Some(mut former) = former {
        former.advance(end, &mut log);
        assert_eq!(former.next_event(), None);
        net.advance(end, &mut late);
    } else {
        net.advance(end, &mut log);
    }
    assert_eq!(net.next_event(), None);
    let shifted = late
        .delivered
        .iter()
        .map(|&(t, s)| (t + Duration::from_micros(zero), s));
    log.delivered.extend(shifted);
    log.dropped.extend(late.dropped);
    log
}

/// Per link, each packet in order of arrival.
fn packets(log: &Log, trains: &[(u64, usize, u32)]) -> Vec<Vec<(Time, u32, u32)>> {
    let mut links = vec![Vec::new(); LINKS];
    for &(at, s) in &log.delivered {
        let link = &mut links[trains[s.id as usize].1];
        link.extend((s.first..s.end).map(|p| (at, s.id, p)));
    }
    links.iter_mut().for_each(|l| l.sort_by_key(|p| p.0));
    links
}

/// A train that comes at the moment of succession comes after what waits, also
/// where that waits for a line of several links.
#[test]
fn what_comes_at_that_moment_comes_last() {
    for codel in [false, true] {
        for last in [2, 3] {
            // Those of link 0 wait too, and longer: those of link 2 are not numbered first.
            let trains = [(0, 0, 9), (1, 2, 3), (900, last, 2)];
            let want = packets(&run(codel, &trains, None), &trains);
            let got = packets(&run(codel, &trains, Some((901, 0))), &trains);
            for (got, want) in got[2..4].iter().zip(&want[2..4]) {
                let finished = |l: &[(Time, u32, u32)]| {
                    let micros = l.iter().map(|p| p.0.as_nanos() / 1000);
                    micros.collect::<Vec<_>>()
                };
                assert_eq!(finished(got), finished(want), "to link {last}, {codel}");
            }
        }
    }
}

proptest! {
    /// Nothing is lost, doubled or overtaken, and lines go on as if nothing
    /// had happened; on a medium a frame is repeated at most.
    #[test]
    fn what_waits_goes_on_in_order(
        codel in any::<bool>(),
        trains in prop::collection::vec((0u64..3000, 0..LINKS, 1u32..12), 1..40),
        at in 0u64..60_000,
        before in 0u64..5000,
    ) {
        let want = packets(&run(codel, &trains, None), &trains);
        let log = run(codel, &trains, Some((at, before)));
        prop_assert!(log.dropped.is_empty());
        let got = packets(&log, &trains);
        for (link, (got, want)) in got.iter().zip(&want).enumerate() {
            let order = |l: &[(Time, u32, u32)]| l.iter().map(|p| (p.1, p.2)).collect::<Vec<_>>();
            prop_assert_eq!(order(got), order(want), "link {}", link);
            if link < 4 {
                // The chunks that packets are served in may be cut otherwise.
                let most = Duration::from_micros(700);
                for (g, w) in got.iter().zip(want) {
                    let apart = g.0.since(w.0).max(w.0.since(g.0));
                    prop_assert!(apart <= most, "link {}: {:?} {:?}", link, g, w);
                }
            }
        }
    }
}
