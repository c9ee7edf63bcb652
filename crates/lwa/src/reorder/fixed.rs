//! Fixed reordering time, as RRC sets it.

use std::time::Duration;

use braid_core::Time;

use super::{Entry, LONGEST, ReorderingTime};

pub(super) const ENTRY: Entry = Entry {
    name: "fixed",
    argument: "MS",
    about: "waits the same time always",
    make: |argument| {
        let time = Duration::from_millis(argument.parse().ok()?);
        (time <= LONGEST).then(|| Box::new(Fixed(time)) as Box<dyn ReorderingTime>)
    },
};

#[derive(Debug)]
struct Fixed(Duration);

impl ReorderingTime for Fixed {
    fn time(&self, _now: Time) -> Duration {
        self.0
    }
}
