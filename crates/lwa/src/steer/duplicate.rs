//! Duplication: every packet over both links; the receiver keeps what comes first
//! (TS 38.323 5.11).

use braid_core::Time;

use super::{Demand, Entry, LinkView, Steering, prefer, takes};
use crate::link::Link;

pub(super) const ENTRY: Entry = Entry {
    name: "duplicate",
    argument: "",
    about: "every packet over both links",
    make: |argument| argument.is_empty().then(|| Box::new(Duplicate) as _),
};

#[derive(Debug)]
struct Duplicate;

impl Steering for Duplicate {
    fn choose(&self, _now: Time, links: &[LinkView; 2], demand: Demand) -> Option<Link> {
        if takes(&links[Link::Lte.index()], demand) {
            return Some(Link::Lte);
        }
        prefer(links, demand, Link::Wlan)
    }

    fn duplicates(&self) -> bool {
        true
    }
}
