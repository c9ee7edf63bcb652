//! Accesses that carry nothing for a long time, and then do: a Wi-Fi without upstream, a modem
//! without credit. Attempts to use them cost nothing that runs out.

use std::time::Duration;

use braid_core::Time;
use braid_core::sched::WrrMode;

use super::service::Service;
use super::shares::{options, radio};
use super::world::World;
use crate::{Lane, PathInfo};

/// An access is tried so often.
const SOON: Duration = Duration::from_secs(6);

fn wrong<const N: usize>(all: impl IntoIterator<Item = [Result<(), String>; N]>) {
    let wrong: Vec<String> = all.into_iter().flatten().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether a path leads over the access, and the proxy uses as many as the device: it does not know
/// whose an address is that is new.
fn used(world: &mut World, access: &str) -> bool {
    let [device, proxy] = world.paths();
    let usable = |end: &[PathInfo]| end.iter().filter(|p| p.usable).count();
    let of = |p: &PathInfo| p.usable && p.access.as_deref() == Some(access);
    device.iter().any(of) && usable(&device) == usable(&proxy)
}

/// Whether the second of two accesses is used soon after it passes packets, for the first time
/// after so long.
fn silent_from_the_start(lane: Lane, minutes: u64) -> Result<(), String> {
    let mut world = world(lane, minutes);
    world.rest(world.now() + Duration::from_secs(60 * minutes));
    then_it_passes(
        world,
        &format!("{lane:?} lane, silent for {minutes} minutes"),
    )
}

/// Two accesses, of which the second passes nothing.
fn world(lane: Lane, seed: u64) -> World {
    let radios = [radio(20.0, 20.0, 60), radio(50.0, 10.0, 60)];
    let options = options(lane, "minrtt", WrrMode::WorkConserving, "cubic");
    let mut world = World::kept(seed, &radios, &options);
    world.pass(1, false);
    world
}

fn then_it_passes(mut world: World, what: &str) -> Result<(), String> {
    if used(&mut world, "a1") {
        return Err(format!("{what}: used, though nothing passes"));
    }
    if !used(&mut world, "a0") || world.app.sessions != 1 {
        return Err(format!("{what}: the other is not used"));
    }
    world.pass(1, true);
    world.rest(world.now() + SOON);
    match used(&mut world, "a1") {
        true => Ok(()),
        false => Err(format!("{what}: not used {SOON:?} later")),
    }
}

/// Whether the second of two accesses is used soon after it passes packets for the first time,
/// after its link was lost and its address changed so many times.
fn flaps_from_the_start(lane: Lane, flaps: u32) -> Result<(), String> {
    let mut world = world(lane, flaps.into());
    for i in 0..flaps {
        world.rest(world.now() + Duration::from_secs(10));
        match i % 3 {
            0 => world.renumber(1),
            _ => {
                world.tell(1, false);
                world.rest(world.now() + Duration::from_secs(5));
                world.tell(1, true);
            }
        }
    }
    then_it_passes(world, &format!("{lane:?} lane, {flaps} changes"))
}

#[test]
fn one_whose_link_and_address_change_without_an_answer_is_used_once_it_answers() {
    wrong(
        [1, 7, 30, 400].map(|n| [Lane::Datagram, Lane::Stream].map(|l| flaps_from_the_start(l, n))),
    );
}

/// Whether requests are answered while the second of two accesses passes nothing in one direction,
/// the way to the device or from it, and both are used again afterwards.
fn one_direction(lane: Lane, access: usize, direction: usize) -> Result<(), String> {
    let mut world = world(lane, 1);
    let mut service = Service::default();
    let what = format!("{lane:?} lane, link {direction} of access {access}");
    world.pass(1, true);
    let mut answered = Time::ZERO;
    let mut go = |world: &mut World, seconds: u64| {
        let end = world.now() + Duration::from_secs(seconds);
        while world.now() < end {
            world.rest(world.now() + Duration::from_millis(50));
            answered = answered.max(service.step(world).unwrap_or_default());
        }
        world.now().since(answered)
    };
    go(&mut world, 5);
    let link = world.links[access][direction];
    world.pass_on(link, false);
    let lag = go(&mut world, 8).max(go(&mut world, 60));
    if lag > Duration::from_secs(1) {
        return Err(format!("{what}: no answer for {lag:?}"));
    }
    world.pass_on(link, true);
    go(&mut world, 8);
    match ["a0", "a1"].iter().all(|a| used(&mut world, a)) {
        true => Ok(()),
        false => Err(format!("{what}: not used again")),
    }
}

#[test]
fn one_that_is_silent_in_one_direction_is_left_until_it_is_not() {
    let of = |lane| [0, 1].map(|a| [0, 1].map(|d| one_direction(lane, a, d)));
    wrong([Lane::Datagram, Lane::Stream].map(of).into_iter().flatten());
}

#[test]
fn one_that_is_silent_for_however_long_is_used_within_6_s_of_its_first_answer() {
    wrong(
        [1, 5, 20, 120]
            .map(|m| [Lane::Datagram, Lane::Stream].map(|l| silent_from_the_start(l, m))),
    );
}
