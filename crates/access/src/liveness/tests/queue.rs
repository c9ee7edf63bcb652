//! Queues that others fill, which only probes tell of.

use super::*;

proptest! {
    /// Something comes now and then, through a queue of others that is longer than the bound.
    #[test]
    fn a_queue_of_others_is_no_death_of_what_is_used_now_and_then(
        rtt in 1u64..120,
        queue in 0u64..900,
        flow in 60u64..900,
        dead in prop::option::of(4_000u64..5_000),
    ) {
        let mut link = Link::new(rtt, Some(flow));
        link.queue = ms(queue);
        link.dead = dead.map(|at| (at, 60_000));
        let s = Simulation::run(vec![link, Link::new(10, Some(3))], true, None, 12_000);
        prop_assert_eq!(s.found.len(), dead.iter().count(), "{:?}", s.found);
        if let (Some(at), [(silent, k, when)]) = (dead, &s.found[..]) {
            prop_assert!(*silent && *k == 0);
            let long = 3 * (rtt + queue) / 2;
            prop_assert!(*when <= at + long.max(3 * rtt) + 92 + 45, "{} after {}", when, at);
        }
    }
}

proptest! {
    /// A bulk transfer fills the queue itself; what it fills drains as it dies.
    #[test]
    fn a_queue_of_its_own_delays_no_death(
        rtt in 1u64..30,
        queue in 0u64..62,
        flow in 1u64..12,
        at in 4_000u64..6_000,
    ) {
        let mut link = Link::new(rtt, Some(flow));
        link.queue = ms(queue);
        link.dead = Some((at, 60_000));
        let s = Simulation::run(vec![link, Link::new(10, Some(3))], true, None, 12_000);
        prop_assert_eq!(s.found.len(), 1, "{:?}", s.found);
        let (silent, k, when) = s.found[0];
        prop_assert!(silent && k == 0);
        // Behind a long queue it is asked early, but not again soon after that: then the bound grows by
        // twice of what is wanting for an answer to what is asked after 40 ms.
        let wanting = (40 + (rtt + queue) * 5 / 4).saturating_sub(3 * rtt + 92);
        let bound = at + 3 * rtt + 100 + 2 * wanting;
        prop_assert!(when <= bound, "{} after {}, at most {}", when, at, bound);
    }
}

#[test]
fn what_pauses_all_the_time_is_not_asked_in_every_pause() {
    // Speech: a packet each 20 ms.
    let probes = |queue| {
        let mut link = Link::new(2, Some(20));
        link.queue = ms(queue);
        let s = Simulation::run(vec![link], true, None, 10_000);
        assert!(s.found.is_empty(), "{:?}", s.found);
        s.probes
    };
    assert!((20..=60).contains(&probes(60)), "{}", probes(60));
    // Where an answer comes in time, not once.
    assert!(probes(20) <= 12, "{}", probes(20));
}

#[test]
fn a_queue_of_others_is_learned() {
    let mut link = Link::new(20, None);
    link.queue = ms(500);
    let s = Simulation::run(vec![link], true, None, 60_000);
    assert!(s.found.len() <= 2, "it flaps: {:?}", s.found);
}
