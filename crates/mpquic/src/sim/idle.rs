//! Sessions on which nothing flows.

use braid_core::sched::WrrMode;

use super::app::App;
use super::script::What;
use super::shares::{options, radio};
use super::world::{World, at};
use crate::{Lane, PathInfo};

/// State is asked for, and connections begin, before data finds out.
#[test]
fn an_access_that_is_silent_is_found_while_nothing_flows_and_the_session_stays() {
    // Which end hears nothing, 0 the device, 1 the proxy.
    for (seed, dead, end, silence) in [
        (1, 0, 0, What::Silent as fn(bool) -> What),
        (2, 0, 0, What::Silent),
        (3, 1, 0, What::Silent),
        (4, 1, 0, What::Silent),
        (5, 0, 1, |up| What::Deaf(!up)),
        (6, 0, 1, |up| What::Deaf(!up)),
        (7, 1, 1, |up| What::Deaf(!up)),
    ] {
        let options = options(Lane::Datagram, "minrtt", WrrMode::WorkConserving, "cubic");
        let radios = [radio(50.0, 5.0, 30), radio(20.0, 20.0, 30)];
        let silent = at(6000 + 333 * seed);
        let script = vec![
            (silent, dead, silence(false)),
            (at(20_000), dead, silence(true)),
        ];
        let app = App::new(200_000);
        let mut world = World::new(seed, &radios, &options, &[1.0, 1.0], script, app);
        world.rest(at(6000));
        assert!(world.app.done() && world.app.wrong.is_none());
        let sessions = world.app.sessions;
        world.rest(at(6000 + 333 * seed + 4000));
        let name = format!("a{dead}");
        assert_eq!(world.silent()[end], [name.as_str()], "seed {seed}");
        // It tells the other.
        let knows = |p: &PathInfo| p.silent || p.peer_backup;
        let known = world.paths().map(|paths| {
            let known = paths.into_iter().filter(knows);
            known.filter_map(|p| p.access).collect::<Vec<_>>()
        });
        assert_eq!(known, [[&*name], [&*name]], "seed {seed}");
        world.rest(at(22_000));
        assert!(!world.paths().iter().flatten().any(knows), "seed {seed}");
        assert_eq!(
            world.app.sessions, sessions,
            "seed {seed}: the session was lost"
        );
    }
}
