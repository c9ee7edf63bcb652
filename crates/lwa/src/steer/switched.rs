//! Switched bearer: all packets over one link, over the other only while that one is unusable.

use braid_core::Time;

use super::{Demand, Entry, LinkView, Steering, prefer};
use crate::link::Link;

pub(super) const LTE: Entry = Entry {
    name: "lte",
    argument: "",
    about: "switched bearer: everything over LTE",
    make: |argument| {
        argument
            .is_empty()
            .then(|| Box::new(Switched(Link::Lte)) as _)
    },
};

pub(super) const WLAN: Entry = Entry {
    name: "wifi",
    argument: "",
    about: "switched bearer: everything over Wi-Fi",
    make: |argument| {
        argument
            .is_empty()
            .then(|| Box::new(Switched(Link::Wlan)) as _)
    },
};

#[derive(Debug)]
struct Switched(Link);

impl Steering for Switched {
    fn choose(&self, _now: Time, links: &[LinkView; 2], demand: Demand) -> Option<Link> {
        prefer(links, demand, self.0)
    }
}
