//! Steering by the rates of the radios (Pasca et al., section 3.1): packets in their ratio.

use braid_core::Time;

use super::ratio::Ratio;
use super::{Demand, Entry, LinkView, Steering, prefer};
use crate::link::Link;

pub(super) const ENTRY: Entry = Entry {
    name: "phy",
    argument: "",
    about: "packets in the ratio of the radios' rates",
    make: |argument| {
        argument
            .is_empty()
            .then(|| Box::new(Phy::default()) as Box<dyn Steering>)
    },
};

#[derive(Debug, Default)]
struct Phy(Ratio);

/// Share of LTE; half while a rate is unknown.
fn share(links: &[LinkView; 2]) -> f64 {
    match links.map(|l| l.phy_rate.map(|r| r.as_mbps())) {
        [Some(lte), Some(wlan)] if lte + wlan > 0.0 => lte / (lte + wlan),
        _ => 0.5,
    }
}

impl Steering for Phy {
    fn choose(&self, _now: Time, links: &[LinkView; 2], demand: Demand) -> Option<Link> {
        prefer(links, demand, self.0.next(share(links)))
    }

    fn sent(&mut self, _now: Time, links: &[LinkView; 2], link: Link) {
        self.0.sent(share(links), link);
    }
}
