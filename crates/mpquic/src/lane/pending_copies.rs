//! Copies of what has left on some paths and is to leave on others as soon as they have room, where a
//! scheduler sends everything on every path.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::piece::Piece;
use super::wire::{Frame, Frames};

/// Copies of a class that wait at most; the oldest are given up.
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
        let of_class = |p: &&Pending| p.class == class;
        if self.0.iter().filter(of_class).count() >= MAX
            && let Some(oldest) = self.0.iter().position(|p| p.class == class)
        {
            self.0.remove(oldest);
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

    /// Takes the oldest copy of a class for a path that has at most `room` bytes. One that has more is
    /// given up: the path carries shorter packets than it did.
    pub(super) fn take(
        &mut self,
        class: u8,
        path: u32,
        room: usize,
    ) -> Option<(Frames, Vec<Piece>)> {
        let is_next = |p: &Pending| p.class == class && p.paths.contains(&path);
        while let Some(i) = self.0.iter().position(is_next) {
            let next = self.0.get_mut(i)?;
            next.paths.retain(|p| *p != path);
            let fits = next.frames.iter().map(Frame::bytes).sum::<usize>() <= room;
            let taken = match next.paths.is_empty() {
                true => self.0.remove(i).map(|p| (p.frames, p.pieces)),
                false => Some((next.frames.clone(), next.pieces.clone())),
            };
            if fits {
                return taken;
            }
        }
        None
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

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn copy(byte: u8, len: usize) -> (Frames, Vec<Piece>) {
        let frame = Frame::Message {
            number: byte.into(),
            place: None,
            total: len as u32,
            offset: 0,
            data: Bytes::from(vec![byte; len]),
        };
        ([frame].into_iter().collect(), vec![])
    }

    fn first(taken: Option<(Frames, Vec<Piece>)>) -> Option<u8> {
        match &taken?.0[0] {
            Frame::Message { data, .. } => data.first().copied(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_copy_leaves_once_on_each_path_in_order_and_in_time() {
        let (mut copies, begin) = (PendingCopies::default(), Instant::now());
        copies.push(1, copy(1, 100), &[7, 8], begin);
        copies.push(1, copy(2, 1000), &[7], begin);
        copies.push(1, copy(3, 100), &[7], begin);
        copies.push(2, copy(4, 100), &[], begin);
        assert!(copies.has(1, 7) && copies.has(1, 8) && !copies.has(2, 7));
        assert_eq!(first(copies.take(1, 7, 200)), Some(1));
        // One that does not fit holds up nothing behind it.
        assert_eq!(first(copies.take(1, 7, 200)), Some(3));
        assert_eq!(first(copies.take(1, 7, 2000)), None);
        copies.push(1, copy(5, 100), &[8, 9], begin);
        copies.forget(8);
        assert_eq!(first(copies.take(1, 8, 200)), None);
        assert_eq!(first(copies.take(1, 9, 200)), Some(5));
        assert!(copies.is_empty());
        copies.push(1, copy(6, 100), &[9], begin);
        copies.expire(begin + MAX_AGE);
        assert!(copies.has(1, 9));
        copies.expire(begin + MAX_AGE * 2);
        assert!(copies.is_empty());
    }

    #[test]
    fn a_class_gives_up_its_own_oldest() {
        let (mut copies, now) = (PendingCopies::default(), Instant::now());
        copies.push(2, copy(200, 10), &[7], now);
        for n in 0..100 {
            copies.push(1, copy(n, 10), &[7], now);
        }
        assert_eq!(first(copies.take(1, 7, 100)), Some(36));
        assert_eq!(first(copies.take(2, 7, 100)), Some(200));
        assert!(copies.cost() < 64 * 400);
    }
}
