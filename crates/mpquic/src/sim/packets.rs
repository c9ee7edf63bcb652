//! Content and length of packets.

use braid_core::Time;
use braid_core::sched::WrrMode;

use super::app::App;
use super::draws::Draws;
use super::outages::gap;
use super::script::What;
use super::shares::{options, radio};
use super::world::{HEADERS, World, at};
use crate::{Lane, PathInfo};

/// The proxy's paths after it has sent `bytes` over two links.
fn after(bytes: u64) -> Vec<PathInfo> {
    let options = options(Lane::Datagram, "minrtt", WrrMode::WorkConserving, "cubic");
    let radios = [radio(50.0, 10.0, 30), radio(30.0, 25.0, 30)];
    let app = App::new(bytes);
    let mut world = World::new(1, &radios, &options, &[1.0, 1.0], vec![], app);
    world.run(at(20_000));
    assert!(world.app.done() && world.app.wrong.is_none());
    let [_, proxy] = world.paths();
    assert_eq!(proxy.len(), 2);
    proxy
}

/// A packet of its own for every second acknowledgement would be one of seven or eight.
#[test]
fn answers_go_with_data() {
    for path in after(20_000_000) {
        let mean = path.sent_bytes / path.sent_packets;
        assert!(mean > 1400, "{mean} bytes: {path:?}");
    }
}

#[test]
fn packets_stay_full_when_queues_overflow() {
    for path in after(20_000_000) {
        assert!(path.lost_packets > 50 && path.mtu > 1400, "{path:?}");
    }
}

/// Goodput of 20 s, Mbit/s, and the proxy's paths, where the first of two links of 40
/// Mbit/s carries packets of so many bytes at most from a time on.
fn with_a_short_link(from: u64, longest: u32) -> (f64, Vec<PathInfo>) {
    let options = options(Lane::Datagram, "minrtt", WrrMode::WorkConserving, "cubic");
    let radios = [radio(40.0, 20.0, 40), radio(40.0, 20.0, 40)];
    let script = vec![(at(from), 0, What::Longest(longest))];
    let app = App::new(u64::MAX);
    let mut world = World::new(1, &radios, &options, &[1.0, 1.0], script, app);
    world.run(at(20_000));
    assert_eq!(world.app.wrong, None);
    let [_, proxy] = world.paths();
    (world.app.received as f64 * 8.0 / 20e6, proxy)
}

/// A tunnel on the way, whose answer of ICMP is lost.
#[test]
fn a_link_that_carries_only_short_packets_is_used() {
    for from in [0, 7000] {
        let (mbps, paths) = with_a_short_link(from, 1400);
        // The other carries 39 alone. What was lost at first has ended this one's slow start.
        assert!(mbps > 58.0, "from {from} ms: {mbps} Mbit/s");
        for path in paths {
            // 1400 bytes less 28 of IPv4 and UDP.
            let right = match path.access.as_deref() {
                Some("a0") => (1340..=1372).contains(&path.mtu),
                _ => path.mtu == 1452,
            };
            assert!(right, "{path:?}");
        }
    }
}

/// Rates that the first of two links of 40 Mbit/s carries, Mbit/s: in the 3 s before it becomes
/// narrow, and in 3 s after that, from 0.5 s on.
fn around_a_drop(seed: u64, longest: u32) -> (f64, f64) {
    let options = options(Lane::Datagram, "minrtt", WrrMode::WorkConserving, "cubic");
    let radios = [radio(40.0, 20.0, 40), radio(40.0, 20.0, 40)];
    let script = vec![(at(7_000), 0, What::Longest(longest))];
    let mut world = World::new(
        seed,
        &radios,
        &options,
        &[1.0; 2],
        script,
        App::new(u64::MAX),
    );
    let carried = [4_000, 7_000, 7_500, 10_500].map(|t| {
        world.run(at(t));
        let [device, _] = world.paths();
        let first = device.iter().find(|p| p.access.as_deref() == Some("a0"));
        first.map_or(0, |p| p.received_bytes) as f64 * 8.0 / 3e6
    });
    (carried[1] - carried[0], carried[3] - carried[2])
}

#[test]
fn the_search_for_what_fits_is_no_congestion() {
    let one = |seed| {
        let (before, after) = around_a_drop(seed, 1300 + 15 * seed as u32);
        after / before
    };
    let parts: Vec<f64> = (0..10).map(one).collect();
    let mean = parts.iter().sum::<f64>() / 10.0;
    assert!(mean > 0.75 && parts.iter().all(|p| *p > 0.4), "{parts:.2?}");
}

/// Over links that carry no more than IPv6 asks for, transfers of all lengths: a last datagram of
/// a few bytes does not make a packet of the one before it that is too long for the link.
#[test]
fn what_a_short_link_carries_is_not_joined_to_what_it_does_not() {
    let options = options(Lane::Datagram, "minrtt", WrrMode::WorkConserving, "cubic");
    let radios = [radio(20.0, 10.0, 40), radio(20.0, 10.0, 40)];
    for bytes in (2_000_000..2_002_300).step_by(97) {
        let script = [0, 1].map(|i| (at(0), i, What::Longest(1280)));
        let app = App::new(bytes);
        let mut world = World::new(1, &radios, &options, &[1.0, 1.0], script.to_vec(), app);
        world.run(at(3_000));
        assert!(world.app.done(), "{bytes} bytes: {}", world.app.received);
        assert_eq!(world.app.wrong, None);
    }
}

/// Any number of accesses, each of which carries packets of some length at most, from the first
/// packet on or from one moment to the next: the device connects, what the proxy sends stands
/// still for no more than 3 s, and the proxy finds what each path carries.
fn any_lengths(lane: Lane, seed: u64) -> Result<(), String> {
    let d = &mut Draws::new(seed, "lengths");
    let n = 1 + d.below(3);
    let mut script = Vec::new();
    let mut longest = Vec::new();
    let mut radios = Vec::new();
    for i in 0..n {
        radios.push(radio(d.log(1.0, 8.0), d.log(2.0, 60.0), 60));
        // What IPv6 has at least, and a little more than QUIC needs over IPv4.
        let bytes = [1240 + d.below(261) as u32, 1280, 1500][d.below(3)];
        let from = [0, 3000 + d.below(3000) as u64][d.below(2)];
        script.push((at(from), i, What::Longest(bytes)));
        longest.push(bytes);
    }
    let what = format!("seed {seed}: {longest:?}, {lane:?} lane");
    let options = options(lane, "minrtt", WrrMode::WorkConserving, "cubic");
    let app = App::new(u64::MAX);
    let mut world = World::new(seed, &radios, &options, &vec![1.0; n], script, app);
    world.run(at(16_000));
    if let Some(wrong) = &world.app.wrong {
        return Err(format!("{what}: {wrong}"));
    }
    let still = gap(&world.app.arrivals, Time::ZERO, at(16_000));
    if still > 3000.0 {
        return Err(format!("{what}: nothing for {still:.0} ms"));
    }
    let [_, proxy] = world.paths();
    for path in proxy {
        let access = path.access.as_deref().unwrap_or_default();
        let i: usize = access[1..].parse().expect("a name of ours");
        let most = u64::from(longest[i] - HEADERS).min(1452);
        // What the lane sends leaves room for longer packet numbers.
        let least = match lane {
            Lane::Datagram if most >= 1440 => 1452,
            Lane::Datagram => most - 40,
            // The library takes a queue that overflows for a path that carries only short ones.
            Lane::Stream => 1200,
        };
        if path.mtu < least || path.mtu > most && path.mtu < 1452 {
            return Err(format!("{what}: {path:?}"));
        }
        // A search takes longer where the queue loses probes, too.
        let loses = path.lost_packets * 80 > path.sent_packets;
        if path.mtu == 1452 && most < 1440 && !loses {
            return Err(format!("{what}: not found: {path:?}"));
        }
    }
    Ok(())
}

fn lengths(seeds: std::ops::Range<u64>) {
    let lanes = |seed| [(Lane::Datagram, seed), (Lane::Stream, seed)];
    let all = seeds.flat_map(lanes);
    let failed: Vec<String> = all.filter_map(|(l, s)| any_lengths(l, s).err()).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn what_each_path_carries_is_found() {
    lengths(0..20);
}

#[test]
#[ignore = "takes minutes: make soak"]
fn what_each_path_carries_is_found_1000_times() {
    lengths(0..1000);
}
