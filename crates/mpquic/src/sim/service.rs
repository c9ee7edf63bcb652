//! Requests of a device over whichever session it has, and the proxy's answers: whether there is
//! service.

use std::collections::{BTreeMap, BTreeSet};

use braid_core::Time;
use bytes::Bytes;
use noq_proto::{Dir, StreamId, VarInt};

use super::world::World;
use crate::{Connection, Host};

/// What has been asked, and what was answered.
#[derive(Debug, Default)]
pub(super) struct Service {
    /// By the number of the session and the channel, or stream: when it was asked.
    asked: BTreeMap<(u64, u64), Time>,
    next: u64,
    /// At the proxy, by the connection and the stream: what has not arrived in full.
    incoming: BTreeSet<(usize, u64)>,
}

fn stream(id: u64) -> StreamId {
    StreamId::from(VarInt::from_u64(id).expect("ids"))
}

/// Reads all of it; true at its end.
fn read(c: &mut Connection, id: u64) -> bool {
    if let Some(lane) = c.lane() {
        while lane.read(id).is_some() {}
        return lane.ended(id);
    }
    let mut stream = c.quic().recv_stream(stream(id));
    let Ok(mut chunks) = stream.read(true) else {
        return false;
    };
    let end = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(_)) => {}
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    let _ = chunks.finalize();
    end
}

fn write(c: &mut Connection, id: u64) {
    let data = Bytes::from_static(b"?");
    match c.lane() {
        Some(lane) => {
            lane.write(id, data);
            lane.finish(id);
        }
        None => {
            let mut stream = c.quic().send_stream(stream(id));
            let _ = stream.write(&data);
            let _ = stream.finish();
        }
    }
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
            let id = match c.lane() {
                Some(_) => Some(self.next),
                None => c.quic().streams().open(Dir::Bi).map(u64::from),
            };
            if let Some(id) = id {
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
            if let Some(lane) = c.lane() {
                let asked = lane.channels().filter(|id| id & 1 == 0);
                self.incoming.extend(asked.map(|id| (handle.0, id)));
            } else {
                while let Some(id) = c.quic().streams().accept(Dir::Bi) {
                    self.incoming.insert((handle.0, u64::from(id)));
                }
            }
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
