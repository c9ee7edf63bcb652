//! Copies of what has left on some paths and is to leave on others as soon as they have room, where a
//! scheduler sends everything on every path.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::piece::Piece;
use super::wire::{Frame, Frames};

/// Copies that wait at most; the oldest are given up.
const MAX: usize = 64;
/// Age after which a copy is given up: it would come long after the first.
const MAX_AGE: Duration = Duration::from_millis(100);

/// Content of a datagram that is to leave on further paths.
#[derive(Debug)]
struct Pending {
    class: u8,
    frames: Frames,
    pieces: Vec<Piece>,
    /// Paths on which it has not left.
    paths: Vec<u32>,
    since: Instant,
}

/// Copies that wait for room, the oldest in front.
#[derive(Debug, Default)]
pub(super) struct PendingCopies(VecDeque<Pending>);

impl PendingCopies {
    /// Adds a copy for each of these paths.
    pub(super) fn push(
        &mut self,
        class: u8,
        (frames, pieces): (Frames, Vec<Piece>),
        paths: &[u32],
        since: Instant,
    ) {
        if paths.is_empty() {
            return;
        }
        if self.0.len() >= MAX {
            self.0.pop_front();
        }
        self.0.push_back(Pending {
            class,
            frames,
            pieces,
            paths: paths.to_vec(),
            since,
        });
    }

    /// Gives up those that are too old.
    pub(super) fn expire(&mut self, now: Instant) {
        let is_old = |p: &Pending| now.saturating_duration_since(p.since) > MAX_AGE;
        while self.0.front().is_some_and(is_old) {
            self.0.pop_front();
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of a class waits for room on a path.
    pub(super) fn has(&self, class: u8, path: u32) -> bool {
        let mut all = self.0.iter();
        all.any(|p| p.class == class && p.paths.contains(&path))
    }

    /// Takes the oldest copy of a class for a path, if it has at most `room` bytes.
    pub(super) fn take(
        &mut self,
        class: u8,
        path: u32,
        room: usize,
    ) -> Option<(Frames, Vec<Piece>)> {
        let is_next = |p: &Pending| p.class == class && p.paths.contains(&path);
        let i = self.0.iter().position(is_next)?;
        let next = self.0.get_mut(i)?;
        if next.frames.iter().map(Frame::bytes).sum::<usize>() > room {
            return None;
        }
        next.paths.retain(|p| *p != path);
        match next.paths.is_empty() {
            true => self.0.remove(i).map(|p| (p.frames, p.pieces)),
            false => Some((next.frames.clone(), next.pieces.clone())),
        }
    }

    /// Forgets a path that has ended.
    pub(super) fn forget(&mut self, path: u32) {
        for p in &mut self.0 {
            p.paths.retain(|n| *n != path);
        }
        self.0.retain(|p| !p.paths.is_empty());
    }

    /// Bytes of memory that they hold, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        let of = |p: &Pending| 256 + p.frames.iter().map(Frame::bytes).sum::<usize>();
        self.0.iter().map(of).sum()
    }
}
