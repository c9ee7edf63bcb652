//! Two cells of 111 Mbit/s, each with a round trip of 77 ms and a queue of 100 ms: windows
//! overshoot, and thousands of packets are lost at a time.

use std::time::Duration;

use braid_core::Rate;
use braid_core::sched::WrrMode;
use braid_radio::model::RateSpec;

use super::app::App;
use super::script::What;
use super::shares::{link, options, radio};
use super::world::{Radio, World, at};
use crate::{Acks, Lane, Options};

fn cells(n: usize) -> Vec<Radio> {
    vec![radio(111.0, 38.5, 100); n]
}

/// Acknowledgements with much loss take nothing from what the receiver has to say besides: that
/// it has read, and that the sender may go on.
#[test]
fn a_receiver_of_much_tells_that_it_has_read() {
    let mut options = options(Lane::Datagram, "minrtt", WrrMode::WorkConserving, "cubic");
    options.steering.reinject = true;
    let app = App::new(40_000_000);
    let mut world = World::new(1, &cells(2), &options, &[1.0, 1.0], vec![], app);
    world.run(at(10_000));
    assert_eq!(world.app.wrong, None);
    // 40 MB take 1.5 s of both links, and some 0.6 s until the windows are open.
    assert!(
        world.app.done() && world.now() < at(2600),
        "{:?}",
        world.now()
    );
}

/// Bytes that the device gets in the first 500 ms after its only cell is replaced.
fn after_a_handover(resume: bool) -> u64 {
    let mut options = options(Lane::Datagram, "minrtt", WrrMode::WorkConserving, "cubic");
    options.resume = resume;
    let script = vec![
        (at(4000), 0, What::Link(false)),
        (at(4050), 0, What::Link(true)),
    ];
    let app = App::new(u64::MAX);
    let mut world = World::new(1, &cells(2), &options, &[1.0, 1.0], script, app);
    world.run(at(4050));
    let before = world.sent_bytes[0][0];
    world.run(at(4550));
    assert_eq!(world.app.wrong, None);
    world.sent_bytes[0][0] - before
}

/// Seconds that 20 MB over two cells take.
fn seconds(change: impl FnOnce(&mut Options)) -> f64 {
    seconds_over(&cells(2), change)
}

fn seconds_over(cells: &[Radio], change: impl FnOnce(&mut Options)) -> f64 {
    let mut options = options(Lane::Datagram, "minrtt", WrrMode::WorkConserving, "cubic");
    change(&mut options);
    let app = App::new(20_000_000);
    let mut world = World::new(1, cells, &options, &[1.0, 1.0], vec![], app);
    world.run(at(60_000));
    assert_eq!(world.app.wrong, None);
    assert!(world.app.done());
    world.now().as_secs_f64()
}

/// 1 MB in 77 ms are 104 Mbit/s, of 222.
#[test]
fn no_more_is_under_way_than_the_send_window() {
    let (all, little) = (
        seconds(|_| {}),
        seconds(|o| o.send_window = Some(1_000_000)),
    );
    assert!(little > 20e6 * 8.0 / 104e6, "{all} {little}");
    assert!(little < 2.5 && all < little, "{all} {little}");
}

#[test]
fn acknowledgements_may_leave_on_all_paths_in_turn() {
    // With queues that overflow, it would be luck when they do.
    let over = |acks| {
        let cells = [radio(111.0, 10.0, 2000), radio(111.0, 80.0, 2000)];
        seconds_over(&cells, |o| o.acks = acks)
    };
    let (fastest, turns) = (over(Acks::Fastest), over(Acks::InTurn));
    // Every second acknowledgement is 70 ms late: windows open later, which is 3 ms of 20 MB.
    assert!(
        turns > fastest + 0.001 && turns < fastest * 1.5,
        "{fastest} {turns}"
    );
}

/// Mbit/s over a cell of 111 Mbit/s in the second after three with a twentieth of that.
fn after_a_fade(cc: &str, tell: bool) -> f64 {
    let options = options(Lane::Datagram, "minrtt", WrrMode::WorkConserving, cc);
    let rates = [(0, 111), (1000, 5), (4000, 111)];
    let mut cell = radio(111.0, 38.5, 100);
    cell.down.rate = RateSpec::Steps {
        points: rates
            .map(|(ms, mbps)| (Duration::from_millis(ms), Rate::from_mbps(f64::from(mbps))))
            .into(),
        period: None,
    };
    let script = rates.map(|(ms, mbps)| (at(ms), 0, What::Expect(mbps)));
    let script = script.into_iter().filter(|_| tell).collect();
    let app = App::new(u64::MAX);
    let mut world = World::new(1, &[cell], &options, &[1.0], script, app);
    world.run(at(4000));
    world.goodput(at(5000))
}

#[test]
fn a_path_begins_anew_when_more_is_expected_of_it() {
    for cc in ["cubic", "reno", "lia", "olia", "bbr"] {
        let (silent, told) = (after_a_fade(cc, false), after_a_fade(cc, true));
        // A window of 5 Mbit/s opens by a packet in a round trip.
        assert!(told > 70.0 && told > silent, "{cc}: {silent} {told}");
    }
}

#[test]
fn a_new_path_begins_with_half_of_what_the_access_carried() {
    let (without, with) = (after_a_handover(false), after_a_handover(true));
    // The link could carry 6.9 MB in that time; the path needs 1.5 round trips to open.
    assert!(
        with > 4_000_000 && with > without * 3 / 2,
        "{without} {with}"
    );
    assert_eq!(with, after_a_handover(true), "the same each time");
}

/// Bytes that the device gets of one cell in the first 400 ms, of which the handshake takes
/// 116, if it expects so many Mbit/s; and whether the proxy believes it.
fn at_first(expects: Option<u32>, trust: bool) -> u64 {
    let mut options = options(Lane::Datagram, "minrtt", WrrMode::WorkConserving, "cubic");
    options.trust_peer_expectations = trust;
    let mut cells = cells(1);
    cells[0].expects = expects;
    let app = App::new(u64::MAX);
    let mut world = World::new(1, &cells, &options, &[1.0], vec![], app);
    world.run(at(400));
    assert_eq!(world.app.wrong, None);
    world.app.received
}

#[test]
fn what_is_expected_of_an_access_opens_its_first_window() {
    let without = at_first(None, true);
    let with = at_first(Some(111), true);
    // It could carry 3.4 MB in what is left; half of the rate for a round trip is 2.9 MB.
    assert!(with > 1_700_000 && with > 10 * without, "{without} {with}");
    // What the device says takes some room in packets, whatever it is; the last one of the time
    // may come a little earlier for it.
    let stranger = at_first(Some(1), false);
    assert!(stranger <= without + 1500, "{without} {stranger}");
    assert_eq!(at_first(Some(111), false), stranger, "from a stranger");
    assert!(at_first(Some(1), true) >= stranger, "less than ten packets");
}

/// Seconds that 40 MB take over one cell with a queue of so many ms.
fn takes(queue_ms: u64, expects: Option<u32>) -> f64 {
    let options = options(Lane::Datagram, "minrtt", WrrMode::WorkConserving, "cubic");
    let cell = Radio {
        down: link(111.0, 38.5, queue_ms),
        up: link(111.0, 38.5, 100),
        expects,
    };
    let app = App::new(40_000_000);
    let mut world = World::new(1, &[cell], &options, &[1.0], vec![], app);
    world.run(at(20_000));
    assert!(world.app.done() && world.app.wrong.is_none());
    world.now().as_secs_f64()
}

/// Expectations that are far too high lose thousands of packets in the first round trip, and
/// are over with that.
#[test]
fn to_expect_too_much_is_no_worse_than_to_expect_nothing() {
    for queue_ms in [20, 50, 100, 200] {
        let without = takes(queue_ms, None);
        for mbps in [55, 111, 222, 1110] {
            let with = takes(queue_ms, Some(mbps));
            assert!(with < 1.02 * without, "{queue_ms} {mbps} {with} {without}");
        }
    }
}

/// Keys are updated early in a connection, and what was sealed with the old ones arrives
/// on the slower path long after that.
#[test]
fn nothing_is_lost_when_keys_change() {
    let options = options(Lane::Datagram, "rr", WrrMode::WorkConserving, "cubic");
    let cell = |ms| Radio {
        down: link(20.0, ms, 1000),
        up: link(20.0, ms, 1000),
        expects: None,
    };
    for seed in 0..20 {
        let app = App::new(3_000_000);
        let cells = [cell(5.0), cell(60.0)];
        let mut world = World::new(seed, &cells, &options, &[1.0, 1.0], vec![], app);
        world.run(at(20_000));
        assert!(world.app.done() && world.app.wrong.is_none());
        assert_eq!(world.lost(), 0, "seed {seed}");
    }
}

/// QUIC acknowledges every second packet, here 15,000 in a second: they fill no pacer, or
/// credit would wait behind them until nothing is under way any more.
#[test]
fn copies_on_all_paths_go_on_at_the_rate_of_the_fastest() {
    let options = options(
        Lane::Datagram,
        "redundant",
        WrrMode::WorkConserving,
        "cubic",
    );
    let of = |mbps, ms| Radio {
        down: link(mbps, ms, 50),
        up: link(mbps, ms, 100),
        expects: None,
    };
    let cells = [of(106.2, 10.0), of(370.0, 1.3), of(3.76, 1.0)];
    let app = App::new(u64::MAX);
    let mut world = World::new(1, &cells, &options, &[1.0; 3], vec![], app);
    world.run(at(1000));
    let mbps = world.goodput(at(4000));
    assert!(mbps > 0.9 * 370.0, "{mbps}");
}
