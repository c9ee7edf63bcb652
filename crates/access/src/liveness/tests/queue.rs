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

#[test]
fn a_queue_of_others_is_learned() {
    let mut link = Link::new(20, None);
    link.queue = ms(500);
    let s = Simulation::run(vec![link], true, None, 60_000);
    assert!(s.found.len() <= 2, "it flaps: {:?}", s.found);
}
