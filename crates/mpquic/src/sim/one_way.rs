//! Delays of one direction, which round trips do not tell.

use std::time::Duration;

use braid_core::sched::WrrMode;

use super::app::App;
use super::shares::{link, options};
use super::world::{Radio, World, at};
use crate::Lane;

#[test]
fn the_direction_that_is_longer_is_known() {
    let options = options(Lane::Datagram, "rr", WrrMode::WorkConserving, "cubic");
    // Both have a round trip of 35 ms, where acknowledgements come back on the same path.
    let radios = [(30.0, 5.0), (10.0, 25.0)].map(|(down, up)| Radio {
        down: link(1000.0, down, 30),
        up: link(1000.0, up, 30),
        expects: None,
    });
    // So little that nothing queues.
    let app = App::new(200_000);
    let mut world = World::new(1, &radios, &options, &[1.0, 1.0], vec![], app);
    world.rest(at(2000));
    assert!(world.app.done() && world.app.wrong.is_none());
    let [_, proxy] = world.paths();
    let near = |d: Duration, ms: u64| d.abs_diff(Duration::from_millis(ms)).as_millis() < 2;
    assert_eq!(proxy.len(), 2);
    for (path, behind) in proxy.iter().zip([20, 0]) {
        let seen = path.one_way_behind;
        assert!(seen.is_some_and(|d| near(d, behind)), "{path:?}");
    }
}
