//! Sessions on which nothing flows.

use braid_core::sched::WrrMode;

use super::app::App;
use super::script::What;
use super::shares::{options, radio};
use super::world::{World, at};
use crate::Lane;

/// State is asked for, and connections begin, before data finds out.
#[test]
fn an_access_that_is_silent_is_found_while_nothing_flows_and_the_session_stays() {
    for (seed, dead) in [(1, 0), (2, 0), (3, 1), (4, 1)] {
        let options = options(Lane::Datagram, "minrtt", WrrMode::WorkConserving, "cubic");
        let radios = [radio(50.0, 5.0, 30), radio(20.0, 20.0, 30)];
        let silent = at(6000 + 333 * seed);
        let script = vec![
            (silent, dead, What::Silent(false)),
            (at(20_000), dead, What::Silent(true)),
        ];
        let app = App::new(200_000);
        let mut world = World::new(seed, &radios, &options, &[1.0, 1.0], script, app);
        world.rest(at(6000));
        assert!(world.app.done() && world.app.wrong.is_none());
        let sessions = world.app.sessions;
        world.rest(at(6000 + 333 * seed + 4000));
        let name = format!("a{dead}");
        assert_eq!(world.silent()[0], [name.as_str()], "seed {seed}");
        world.rest(at(22_000));
        assert_eq!(world.silent()[0], [""; 0], "seed {seed}");
        assert_eq!(
            world.app.sessions, sessions,
            "seed {seed}: the session was lost"
        );
    }
}
