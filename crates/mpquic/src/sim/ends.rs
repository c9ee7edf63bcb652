//! One stream at either end, on either lane, as requests and the soak use it: bytes that tell their place,
//! and how it ends.

use bytes::Bytes;
use noq_proto::{Dir, ReadError, StreamId, VarInt};

use super::app::{PERIOD, bytes};
use crate::Connection;
use crate::lane::End;

/// State of a stream that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// More may come.
    Open,
    /// The peer has finished it, and all of it was read.
    Finished,
    /// The peer has reset it.
    Reset,
}

fn stream(id: u64) -> StreamId {
    StreamId::from(VarInt::from_u64(id).expect("ids"))
}

/// Opens a stream at the device; none where the peer allows no more. `lane` is the number of the
/// next channel of the datagram lane.
pub(super) fn open(c: &mut Connection, lane: u64) -> Option<u64> {
    match c.lane() {
        Some(_) => Some(lane),
        None => c.quic().streams().open(Dir::Bi).map(u64::from),
    }
}

/// Streams that the device has opened and the proxy has not seen end.
pub(super) fn opened(c: &mut Connection) -> Vec<u64> {
    if let Some(lane) = c.lane() {
        return lane.channels().filter(|id| id & 1 == 0).collect();
    }
    let mut all = Vec::new();
    while let Some(id) = c.quic().streams().accept(Dir::Bi) {
        all.push(u64::from(id));
    }
    all
}

/// Writes bytes from `place` on up to `end`; returns how many were taken.
pub(super) fn write(c: &mut Connection, id: u64, place: u64, end: u64) -> u64 {
    let mut taken = 0;
    while place + taken < end {
        let n = (end - place - taken).min(PERIOD) as usize;
        let data = Bytes::from_static(bytes(place + taken, n));
        let now = match c.lane() {
            Some(lane) => lane.write(id, data),
            None => {
                let written = c.quic().send_stream(stream(id)).write(&data);
                c.set_stream_blocked(written.is_err());
                written.unwrap_or(0)
            }
        };
        if now == 0 {
            break;
        }
        taken += now as u64;
    }
    taken
}

pub(super) fn finish(c: &mut Connection, id: u64) {
    match c.lane() {
        Some(lane) => lane.finish(id),
        None => drop(c.quic().send_stream(stream(id)).finish()),
    }
}

pub(super) fn reset(c: &mut Connection, id: u64) {
    match c.lane() {
        Some(lane) => lane.reset(id, 7),
        None => drop(c.quic().send_stream(stream(id)).reset(VarInt::from_u32(7))),
    }
}

pub(super) fn stop(c: &mut Connection, id: u64) {
    match c.lane() {
        Some(lane) => lane.stop(id, 8),
        None => drop(c.quic().recv_stream(stream(id)).stop(VarInt::from_u32(8))),
    }
}

/// Reads what there is from `place` on.
///
/// # Errors
/// Bytes that are not those of their place.
pub(super) fn read(c: &mut Connection, id: u64, place: &mut u64) -> Result<Read, String> {
    let check = |place: &mut u64, data: &[u8]| {
        for piece in data.chunks(PERIOD as usize) {
            if piece != bytes(*place, piece.len()) {
                return Err(format!("wrong bytes at {place} of stream {id}"));
            }
            *place += piece.len() as u64;
        }
        Ok(())
    };
    if let Some(lane) = c.lane() {
        while let Some(data) = lane.read(id) {
            check(place, &data)?;
        }
        return Ok(match lane.end(id) {
            Some(End::Finished) => Read::Finished,
            Some(End::Reset(_)) => Read::Reset,
            Some(End::Forgotten) => return Err(format!("the end of stream {id} is forgotten")),
            None => Read::Open,
        });
    }
    let mut quic = c.quic().recv_stream(stream(id));
    let Ok(mut chunks) = quic.read(true) else {
        return Err(format!("stream {id} is unknown"));
    };
    let end = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => {
                if let Err(wrong) = check(place, &chunk.bytes) {
                    break Err(wrong);
                }
            }
            Ok(None) => break Ok(Read::Finished),
            Err(ReadError::Blocked) => break Ok(Read::Open),
            Err(ReadError::Reset(_)) => break Ok(Read::Reset),
        }
    };
    let _ = chunks.finalize();
    end
}
