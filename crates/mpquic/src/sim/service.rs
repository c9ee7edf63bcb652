//! Requests of a device over whichever session it has, and the proxy's answers: whether there is
//! service.

use std::collections::{BTreeMap, BTreeSet};

use braid_core::Time;

use super::ends;
use super::world::World;
use crate::{Connection, Host};

/// Requests that wait for an answer at the device, and those that are arriving at the proxy.
#[derive(Debug, Default)]
pub(super) struct Service {
    /// By the number of the session and the channel, or stream: when it was asked.
    asked: BTreeMap<(u64, u64), Time>,
    next: u64,
    /// At the proxy, by the connection and the stream: what has not arrived in full.
    incoming: BTreeSet<(usize, u64)>,
}

/// Reads all of a request or an answer; true at its end.
fn read(c: &mut Connection, id: u64) -> bool {
    ends::read(c, id, &mut 0) == Ok(ends::Read::Finished)
}

/// Writes a request or an answer: one byte.
fn write(c: &mut Connection, id: u64) {
    ends::write(c, id, 0, 1);
    ends::finish(c, id);
}

impl Service {
    /// Asks over the session that there is, and answers; returns when the latest of the requests
    /// was sent that are answered now.
    pub(super) fn step(&mut self, world: &mut World) -> Option<Time> {
        let now = world.now();
        if let Some(proxy) = &mut world.proxy {
            self.answer(proxy);
        }
        let session = world.app.sessions;
        let won = world.dial.connection()?;
        let c = world.device.connection(won)?;
        let mut latest = None;
        self.asked.retain(|(number, id), at| {
            if *number != session {
                return false;
            }
            let answered = read(c, *id);
            if answered {
                latest = latest.max(Some(*at));
            }
            !answered
        });
        // The library allows a hundred streams at a time.
        if self.asked.len() < 50 {
            self.next += 2;
            if let Some(id) = ends::open(c, self.next) {
                write(c, id);
                self.asked.insert((session, id), now);
            }
        }
        latest
    }

    fn answer(&mut self, proxy: &mut Host) {
        let handles = proxy.handles();
        self.incoming
            .retain(|(h, _)| handles.iter().any(|o| o.0 == *h));
        for handle in handles {
            let Some(c) = proxy.connection(handle) else {
                continue;
            };
            let opened = ends::opened(c).into_iter().map(|id| (handle.0, id));
            self.incoming.extend(opened);
            self.incoming.retain(|(h, id)| {
                let whole = *h == handle.0 && read(c, *id);
                if whole {
                    write(c, *id);
                }
                !whole
            });
        }
    }
}
