//! Paths that an end asks the other to leave.

use braid_core::sched::WrrMode;

use super::app::App;
use super::script::What;
use super::shares::{options, radio};
use super::world::{World, at};
use crate::Lane;

/// Changes that are sent last often go by the faster path, and arrive first.
#[test]
fn a_path_that_is_left_and_taken_back_at_once_is_used() {
    const N: u64 = 12;
    let options = options(Lane::Datagram, "minrtt", WrrMode::Strict, "cubic");
    let begin = |k: u64| 3000 + 2003 * k;
    let flip = |k| {
        let until = begin(k) + 1 + k;
        let left = (at(begin(k)), 0, What::Backup(true));
        [left, (at(until), 0, What::Backup(false))]
    };
    let script = (0..N).flat_map(flip).collect();
    let radios = [radio(50.0, 5.0, 30), radio(5.0, 150.0, 30)];
    let app = App::new(u64::MAX);
    let mut world = World::new(1, &radios, &options, &[1.0, 1.0], script, app);
    for k in 0..N {
        world.run(at(begin(k) + 1500));
        let before = world.sent_bytes[0][0];
        world.run(at(begin(k) + 1900));
        let mbps = (world.sent_bytes[0][0] - before) as f64 * 8.0 / 0.4 / 1e6;
        assert!(mbps > 40.0, "time {k}: {mbps:.1} Mbit/s of 50");
    }
    assert_eq!(world.app.wrong, None);
}

/// A session begins on whatever access comes first, before an end can say anything of it.
#[test]
fn an_access_that_is_a_backup_before_the_session_begins_is_left_alone_by_both_ends() {
    // The first path, and one that is opened later.
    for (lane, backup) in Lane::ALL.into_iter().flat_map(|l| [(l, 0), (l, 1)]) {
        let options = options(lane, "minrtt", WrrMode::Strict, "cubic");
        let script = vec![(at(0), backup, What::Backup(true))];
        let radios = [radio(20.0, 5.0, 30), radio(20.0, 30.0, 100)];
        let app = App::new(u64::MAX);
        let mut world = World::new(1, &radios, &options, &[1.0, 1.0], script, app);
        world.run(at(1000));
        let before = world.sent_bytes.clone();
        world.run(at(3000));
        let sent =
            |access: usize| [0, 1].map(|to| world.sent_bytes[access][to] - before[access][to]);
        let [backup, other] = [backup, 1 - backup].map(sent);
        // Probes at rest, and 2 s of 20 Mbit/s.
        assert!(
            backup.iter().all(|b| *b < 10_000),
            "{lane:?} {backup:?} {other:?}"
        );
        assert!(
            other.iter().sum::<u64>() > 4_000_000,
            "{lane:?} {backup:?} {other:?}"
        );
    }
}
