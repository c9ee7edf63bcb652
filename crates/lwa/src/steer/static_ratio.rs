//! Static steering: of every `x + y` packets `x` over LTE and `y` over Wi-Fi.

use braid_core::Time;

use super::ratio::Ratio;
use super::{Demand, Entry, LinkView, Steering, prefer};
use crate::link::Link;

pub(super) const ENTRY: Entry = Entry {
    name: "static",
    argument: "LTE:WIFI",
    about: "packets in a set ratio, such as static:1:4",
    make: |argument| {
        let (lte, wlan) = argument.split_once(':')?;
        let (lte, wlan): (u16, u16) = (lte.parse().ok()?, wlan.parse().ok()?);
        let all = f64::from(lte) + f64::from(wlan);
        (all > 0.0).then(|| {
            Box::new(Static {
                lte: f64::from(lte) / all,
                ratio: Ratio::default(),
            }) as Box<dyn Steering>
        })
    },
};

#[derive(Debug)]
struct Static {
    lte: f64,
    ratio: Ratio,
}

impl Steering for Static {
    fn choose(&self, _now: Time, links: &[LinkView; 2], demand: Demand) -> Option<Link> {
        prefer(links, demand, self.ratio.next(self.lte))
    }

    fn sent(&mut self, _now: Time, _links: &[LinkView; 2], link: Link) {
        self.ratio.sent(self.lte, link);
    }
}
