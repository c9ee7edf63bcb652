//! The task that moves packets for one end.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use super::clock::Clock;
use super::core::Shared;
use super::socket::Buffers;
use super::timer::Timer;

/// How often it goes round before other tasks get their turn.
const TURNS: usize = 8;

pub(super) struct Driver {
    shared: Shared,
    timer: Timer,
    clock: Clock,
    buffers: Buffers,
}

impl Driver {
    pub(super) fn new(shared: Shared) -> io::Result<Self> {
        Ok(Self {
            shared,
            timer: Timer::new()?,
            clock: Clock::default(),
            buffers: Buffers::new(),
        })
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self {
            shared,
            timer,
            clock,
            buffers,
        } = &mut *self;
        let mut core = shared.lock();
        if core
            .driver
            .as_ref()
            .is_none_or(|w| !w.will_wake(cx.waker()))
        {
            core.driver = Some(cx.waker().clone());
        }
        let now = Instant::now();
        if let Some(slept) = clock.runs(now) {
            core.woke(now, slept);
        }
        for _ in 0..TURNS {
            let mut any = core.receive(cx, buffers);
            let now = Instant::now();
            core.tick(now);
            any |= core.tell(now);
            any |= core.transmit(now, cx);
            if any {
                continue;
            }
            core.tell_idle();
            if core.is_over() {
                return Poll::Ready(());
            }
            let due = core.due();
            clock.waits(due);
            match timer.poll(due, Instant::now(), cx) {
                Ok(true) => {}
                Ok(false) => return Poll::Pending,
                Err(e) => {
                    core.give_up(e);
                    return Poll::Ready(());
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
