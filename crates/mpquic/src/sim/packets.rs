//! What packets carry, and how long they are.

use braid_core::api::WrrMode;

use super::app::App;
use super::script::What;
use super::shares::{options, radio};
use super::world::{World, at};
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
            let short = path.access.as_deref() == Some("a0");
            assert_eq!(path.mtu, if short { 1200 } else { 1452 }, "{path:?}");
        }
    }
}
