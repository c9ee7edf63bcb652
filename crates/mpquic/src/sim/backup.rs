//! Paths that an end asks the other to leave.

use braid_core::Time;
use braid_core::sched::WrrMode;

use super::app::App;
use super::script::What;
use super::shares::{options, radio};
use super::world::{World, at};
use crate::{AccessChange, Lane};

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

/// The proxy is told once more that no access is a backup.
fn steer_proxy(world: &mut World) {
    let now = world.instant();
    let proxy = world.proxy.as_mut().expect("a proxy");
    for handle in proxy.handles() {
        let Some(c) = proxy.connection(handle) else {
            continue;
        };
        for access in ["a0", "a1"] {
            let change = AccessChange {
                priority: Some(0),
                backup: Some(false),
                ..AccessChange::default()
            };
            c.set_access(access, change, now).expect("an access");
        }
    }
}

/// A session begins on whatever access comes first, before an end can say anything of it, and a path
/// takes a moment to be known to both.
#[test]
fn an_access_that_is_a_backup_before_the_session_begins_is_left_alone_by_both_ends() {
    // The first path, one that is opened later, and that while it is.
    let cases = [(0, 0), (1, 0), (1, 30), (1, 50), (1, 70), (1, 90)];
    for (lane, (backup, ms)) in Lane::ALL.into_iter().flat_map(|l| cases.map(|c| (l, c))) {
        let options = options(lane, "minrtt", WrrMode::Strict, "cubic");
        let script = vec![(at(ms), backup, What::Backup(true))];
        let radios = [radio(20.0, 5.0, 30), radio(20.0, 30.0, 100)];
        let app = App::new(u64::MAX);
        let mut world = World::new(1, &radios, &options, &[1.0, 1.0], script, app);
        // Its policy sets at the proxy what is in force already with every change of a weight.
        for k in 0..10 {
            world.run(at(100 * k));
            steer_proxy(&mut world);
        }
        world.run(at(3000));
        let before = world.sent_bytes.clone();
        for k in 30..50 {
            world.run(at(100 * k));
            steer_proxy(&mut world);
        }
        let sent =
            |access: usize| [0, 1].map(|to| world.sent_bytes[access][to] - before[access][to]);
        let [backup, other] = [backup, 1 - backup].map(sent);
        // Probes at rest, and 2 s of 20 Mbit/s.
        assert!(
            backup.iter().all(|b| *b < 1000),
            "{lane:?} {ms} {backup:?} {other:?}"
        );
        assert!(
            other.iter().sum::<u64>() > 4_000_000,
            "{lane:?} {ms} {backup:?} {other:?}"
        );
    }
}

/// An idle session of the datagram lane over a backup and another access, with what happens to them.
fn at_rest(script: Vec<(Time, usize, What)>) -> World {
    let options = options(Lane::Datagram, "minrtt", WrrMode::Strict, "cubic");
    let mut all = vec![(at(0), 0, What::Backup(true))];
    all.extend(script);
    let radios = [radio(50.0, 5.0, 30), radio(20.0, 30.0, 100)];
    let app = App::new(200_000);
    let mut world = World::new(1, &radios, &options, &[1.0, 1.0], all, app);
    world.rest(at(10_000));
    assert!(world.app.done());
    world
}

/// Returns the bytes that an access carries both ways until `end`.
fn sent_until(world: &mut World, access: usize, end: Time) -> u64 {
    let before: u64 = world.sent_bytes[access].iter().sum();
    world.rest(end);
    world.sent_bytes[access].iter().sum::<u64>() - before
}

/// Accesses of the device's paths that carry.
fn usable(world: &mut World) -> Vec<String> {
    let [device, _] = world.paths();
    let mut usable: Vec<String> = device
        .into_iter()
        .filter(|p| p.usable)
        .filter_map(|p| p.access)
        .collect();
    usable.sort();
    usable
}

/// A ping connects a cellular radio for ten seconds and more.
#[test]
fn a_backup_at_rest_is_asked_once_a_minute() {
    let mut world = at_rest(vec![]);
    let before: u64 = world.sent_bytes[1].iter().sum();
    // Three pings with their answers; the other access has one every two seconds, from either end.
    let rested = sent_until(&mut world, 0, at(200_000));
    assert!((1..1000).contains(&rested), "{rested}");
    let other = world.sent_bytes[1].iter().sum::<u64>() - before;
    assert!(other > 5000, "{other}");
    assert_eq!(usable(&mut world), ["a0", "a1"]);
}

#[test]
fn a_session_goes_on_over_a_backup_at_rest_when_the_other_access_falls_silent() {
    let mut world = at_rest(vec![(at(200_000), 1, What::Silent(false))]);
    world.rest(at(203_500));
    assert_eq!(usable(&mut world), ["a0"]);
    world.rest(at(300_000));
    assert_eq!(usable(&mut world), ["a0"]);
    assert_eq!((world.app.sessions, &world.app.wrong), (1, &None));
}

#[test]
fn a_backup_that_rested_is_used_as_it_is_and_one_that_died_meanwhile_is_noticed() {
    let mut world = at_rest(vec![(at(150_000), 0, What::Backup(false))]);
    world.rest(at(170_000));
    let down = |world: &World| world.app.log.iter().any(|l| l.contains("PathDown"));
    assert!(!down(&world), "{:?}", world.app.log);
    assert_eq!(usable(&mut world), ["a0", "a1"]);

    let mut world = at_rest(vec![(at(100_000), 0, What::Silent(false))]);
    world.rest(at(170_000));
    assert_eq!(usable(&mut world), ["a1"]);
    assert_eq!((world.app.sessions, &world.app.wrong), (1, &None));
}

#[test]
fn data_goes_on_over_a_backup_at_rest_within_moments() {
    let options = options(Lane::Datagram, "minrtt", WrrMode::Strict, "cubic");
    let script = vec![
        (at(0), 0, What::Backup(true)),
        (at(30_000), 1, What::Silent(false)),
    ];
    let radios = [radio(50.0, 5.0, 30), radio(20.0, 30.0, 100)];
    let app = App::new(u64::MAX);
    let mut world = World::new(1, &radios, &options, &[1.0, 1.0], script, app);
    world.run(at(20_000));
    let rested = sent_until(&mut world, 0, at(30_000));
    assert!(rested < 1000, "{rested}");
    world.run(at(30_500));
    let goodput = world.goodput(at(32_500));
    assert!(goodput > 40.0, "{goodput:.1} Mbit/s of 50");
    assert_eq!(world.app.sessions, 1);
}
