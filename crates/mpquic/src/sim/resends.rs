//! Data that is sent more than once where links lose nothing but what their queues refuse.

use std::time::Duration;

use braid_core::Time;
use braid_core::sched::WrrMode;

use super::app::App;
use super::shares::{link, options};
use super::world::{Radio, World};
use crate::Lane;

/// With a queue of 300 ms.
fn radio(down: f64, up: f64, ms: f64) -> Radio {
    Radio {
        down: link(down, ms, 300),
        up: link(up, ms, 300),
        expects: None,
    }
}

/// A metered access pays for each: the slow starts overflow the queues once, and then little
/// is sent again.
#[test]
fn little_is_sent_again_over_small_links_with_long_queues() {
    let mut options = options(Lane::Datagram, "minrtt", WrrMode::WorkConserving, "cubic");
    options.steering.reinject = true;
    let radios = [radio(3.6, 1.0, 40.0), radio(1.3, 0.3, 25.0)];
    let app = App::new(u64::MAX);
    let mut world = World::new(1, &radios, &options, &[1.0, 1.0], vec![], app);
    let mut at = |s: u64| {
        world.run(Time::from(Duration::from_secs(s)));
        let refused = world
            .links
            .iter()
            .map(|l| world.network.stats(l[0]).drops.queue_full);
        let refused: u64 = refused.sum();
        let [_, proxy] = world.paths();
        let lost: u64 = proxy.iter().map(|p| p.lost_packets).sum();
        // None is taken for lost that only waits.
        assert!(lost <= refused, "{lost} of {refused} that were");
        (lost * 1452, world.app.received)
    };
    let (begin, received) = (at(5), at(30));
    let share = received.0 as f64 / received.1 as f64;
    assert!(share < 0.03, "{share}");
    let later = (received.0 - begin.0) as f64 / (received.1 - begin.1) as f64;
    assert!(later < 0.005, "{later}");
}
