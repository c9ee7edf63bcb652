//! Events of the accesses of a world, and their times.

use std::net::IpAddr;
use std::time::Duration;

use braid_core::Rate;
use braid_radio::model::{DelaySpec, LinkChange, LinkId};

use super::world::World;
use crate::{AccessChange, Expected};

/// Event of an access at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// The link is lost, or is back, and the device is told.
    Link(bool),
    /// Nothing passes, or does again, and nobody is told.
    Silent(bool),
    /// Nothing passes to the device, or does again, and nobody is told; what it sends arrives.
    Deaf(bool),
    /// No longer packets than of so many IP bytes pass, and nobody is told.
    Longest(u32),
    /// Everything takes so many ms each way, and nobody is told.
    Delay(u32),
    /// The device has another address.
    Move,
    /// The device expects so many Mbit/s of the downlink.
    Expect(u32),
    /// The device wants it to be left, or used again.
    Backup(bool),
}

/// Expectation of the downlink, Mbit/s; nothing where that is 0.
pub(super) fn expected(mbps: u32) -> Expected {
    Expected {
        down: (mbps > 0).then(|| Rate::from_mbps(mbps.into())),
        up: None,
    }
}

impl World {
    pub(super) fn act(&mut self) {
        while let Some((at, access, what)) = self.script.front().copied() {
            if at > self.now {
                return;
            }
            self.script.pop_front();
            match what {
                What::Link(up) => {
                    self.pass(access, up);
                    self.tell(access, up);
                }
                What::Silent(up) => self.pass(access, up),
                What::Deaf(deaf) => self.pass_on(self.links[access][0], !deaf),
                What::Longest(bytes) => self.longest[access] = bytes,
                What::Delay(ms) => {
                    let delay = DelaySpec::Constant(Duration::from_millis(ms.into()));
                    let change = LinkChange::Delay(delay);
                    for link in self.links[access] {
                        self.network.apply(link, self.now, &change, &mut self.air);
                    }
                }
                What::Move => self.renumber(access),
                What::Expect(mbps) => {
                    let expected = Some(expected(mbps));
                    self.change(
                        access,
                        AccessChange {
                            expected,
                            ..AccessChange::default()
                        },
                    );
                }
                What::Backup(backup) => {
                    let backup = Some(backup);
                    self.change(
                        access,
                        AccessChange {
                            backup,
                            ..AccessChange::default()
                        },
                    );
                }
            }
        }
    }

    /// The device has another address on an access, and is told.
    pub(super) fn renumber(&mut self, access: usize) {
        if let IpAddr::V4(before) = self.addresses[access] {
            let [a, b, c, d] = before.octets();
            self.addresses[access] = [a, b, c, d % 250 + 1].into();
            self.tell(access, true);
        }
    }

    /// Whether anything passes.
    pub(super) fn pass(&mut self, access: usize, up: bool) {
        for link in self.links[access] {
            self.pass_on(link, up);
        }
    }

    pub(super) fn pass_on(&mut self, link: LinkId, up: bool) {
        let change = if up { LinkChange::Up } else { LinkChange::Down };
        self.network.apply(link, self.now, &change, &mut self.air);
    }

    /// Tells the device of its link.
    pub(super) fn tell(&mut self, access: usize, up: bool) {
        let (address, now) = (self.addresses[access], self.device_instant());
        self.dial
            .link(&mut self.device, access, up, Some(address), now);
    }

    fn change(&mut self, access: usize, change: AccessChange) {
        let now = self.device_instant();
        let won = self.dial.connection();
        if let Some(c) = won.and_then(|h| self.device.connection(h)) {
            c.set_access(&format!("a{access}"), change, now)
                .expect("an access");
        }
    }
}
