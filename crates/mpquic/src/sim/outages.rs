//! Interruptions that the application notices when an access is lost.

use braid_core::Time;
use braid_core::sched::WrrMode;

use super::app::App;
use super::script::What;
use super::shares::{RATES, accesses, options, scaled};
use super::world::{Radio, World, at};
use crate::Lane;

/// Three times the longest least round-trip time, 5G's 20 ms, and 100 ms.
const SILENT_MS: f64 = 160.0;

/// The application's longest wait from `from` to `to`, ms.
pub(super) fn gap(arrivals: &[(Time, u64)], from: Time, to: Time) -> f64 {
    let inside = arrivals
        .iter()
        .map(|(t, _)| *t)
        .filter(|t| *t > from && *t < to);
    let times: Vec<Time> = [from].into_iter().chain(inside).chain([to]).collect();
    let waits = times.windows(2).map(|w| w[1].since(w[0]));
    waits.max().unwrap_or_default().as_secs_f64() * 1e3
}

/// One outage.
#[derive(Debug)]
struct Outage {
    _seed: u64,
    /// Number of the access.
    _access: usize,
    /// The longest wait during it, ms.
    during: f64,
    /// And with the 300 ms after it.
    wait: f64,
    /// The access carried within these.
    used: bool,
}

/// Twelve outages.
fn outages(radios: &[Radio], what: fn(bool) -> What) -> Vec<Outage> {
    seeded(1, 12, radios, what)
}

/// `n` outages of 1 s, every 3 s, of each access in turn.
fn seeded(seed: u64, n: u64, radios: &[Radio], what: fn(bool) -> What) -> Vec<Outage> {
    let mut script = Vec::new();
    for k in 0..n {
        let access = (k % 3) as usize;
        script.push((at(3000 * (k + 1)), access, what(false)));
        script.push((at(3000 * (k + 1) + 1000), access, what(true)));
    }
    let mut options = options(Lane::Datagram, "wrr", WrrMode::WorkConserving, "cubic");
    options.steering.reinject = true;
    let app = App::new(u64::MAX);
    let mut world = World::new(seed, radios, &options, &RATES, script, app);
    let mut found = Vec::new();
    for k in 0..n {
        let access = (k % 3) as usize;
        let lost = 3000 * (k + 1);
        world.run(at(lost + 1000));
        let sent = world.sent_bytes[access][0];
        world.run(at(lost + 1300));
        let used = world.sent_bytes[access][0] > sent + 5_000;
        let wait = |until| gap(&world.app.arrivals, at(lost), at(until));
        found.push(Outage {
            _seed: seed,
            _access: access,
            during: wait(lost + 1000),
            wait: wait(lost + 1300),
            used,
        });
    }
    assert_eq!(world.app.wrong, None);
    found
}

/// The device tells the proxy by the fastest access, and what was under way goes first by the
/// one that is done with it soonest.
#[test]
fn a_loss_that_is_told_costs_50_ms_and_the_access_is_used_again_in_300_ms() {
    let found = outages(&scaled(), What::Link);
    let kept = |o: &Outage| o.during <= 50.0 && o.wait <= 130.0 && o.used;
    assert!(found.iter().all(kept), "{found:#?}");
}

/// LiFi has room for one packet there, and each that it loses holds up all others.
#[test]
fn a_loss_that_is_told_costs_little_with_short_queues() {
    let found = outages(&accesses(10), What::Link);
    let kept = |o: &Outage| o.wait <= 100.0 && o.used;
    assert!(found.iter().all(kept), "{found:#?}");
}

#[test]
fn a_silent_loss_costs_3_round_trips_and_100_ms_and_its_end_is_seen_in_300_ms() {
    for radios in [accesses(10), scaled()] {
        let found = outages(&radios, What::Silent);
        let kept = |o: &Outage| o.during <= SILENT_MS && o.used;
        assert!(found.iter().all(kept), "{found:#?}");
    }
}

/// The bars of all that were seen to be missed once: at the rates of `static`, where what 5G
/// lost of its own went by LiFi, behind a queue of 60 ms; and where acknowledgements did.
#[test]
#[ignore = "takes minutes: make soak"]
fn no_loss_of_many_costs_more() {
    let full: Vec<Radio> = scaled().into_iter().map(|r| r.faster(10.0 / 3.0)).collect();
    let told: fn(bool) -> What = What::Link;
    let cases = [
        (&full, 1..=4, told, 50.0),
        (&scaled(), 1..=4, told, 50.0),
        (&scaled(), 3..=6, What::Silent, SILENT_MS),
    ];
    for (radios, seeds, what, most) in cases {
        let all = seeds.flat_map(|seed| seeded(seed, 30, radios, what));
        let over: Vec<_> = all.filter(|o| o.during > most || !o.used).collect();
        assert!(over.is_empty(), "{over:#?}");
    }
}

/// `n` outages of 350 ms, every 700 ms, of each access in turn, told and silent ones by
/// turns of three: every byte arrives once and in order (the application checks), and
/// goes on to.
fn interrupted(n: u64) {
    let mut script = Vec::new();
    for k in 0..n {
        let access = (k % 3) as usize;
        let what = if k / 3 % 2 == 0 {
            What::Link
        } else {
            What::Silent
        };
        script.push((at(700 * (k + 1)), access, what(false)));
        script.push((at(700 * (k + 1) + 350), access, what(true)));
    }
    let options = options(Lane::Datagram, "wrr", WrrMode::WorkConserving, "cubic");
    let weights = [35.4, 123.3, 1.25];
    let app = App::new(u64::MAX);
    let mut world = World::new(1, &accesses(10), &options, &weights, script, app);
    let mut before = 0;
    for k in 0..n {
        world.run(at(700 * (k + 2)));
        let got = world.app.arrivals.last().map_or(0, |(_, bytes)| *bytes);
        world.app.arrivals.clear();
        assert!(got > before, "nothing arrives after outage {k}");
        before = got;
    }
    assert_eq!(world.app.wrong, None);
}

#[test]
fn nothing_is_lost_or_doubled_over_30_interruptions() {
    interrupted(30);
}

#[test]
#[ignore = "takes minutes: make soak"]
fn nothing_is_lost_or_doubled_over_1000_interruptions() {
    interrupted(1000);
}

/// Nothing but pings is under way: the path that answers is not taken for the dead one.
#[test]
fn who_answers_in_a_session_that_rests_is_not_suspected() {
    for dead in 0..3 {
        let options = options(Lane::Datagram, "minrtt", WrrMode::Strict, "cubic");
        let script = vec![(at(1600), dead, What::Silent(false))];
        let app = App::new(1000);
        let radios = accesses(30);
        let mut world = World::new(1, &radios, &options, &[1.0; 3], script, app);
        let mut found = false;
        for k in 10..100 {
            world.rest(at(100 * k));
            for silent in world.silent() {
                let others = silent.iter().filter(|n| **n != format!("a{dead}"));
                // The peer's acknowledgements come on the first one: it is asked in vain until
                // it has been told to leave another.
                assert!(dead == 0 || others.count() == 0, "{dead} {k}: {silent:?}");
                found |= !silent.is_empty();
            }
        }
        assert!(found, "{dead}");
        assert_eq!(world.app.wrong, None);
    }
}
