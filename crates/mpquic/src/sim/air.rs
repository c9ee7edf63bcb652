//! Datagrams under way on the links.

use std::collections::VecDeque;
use std::net::IpAddr;

use braid_core::Time;
use braid_radio::model::{DropCause, Sink, Span};

/// A datagram on its way.
pub(super) struct Flying {
    pub(super) to_device: bool,
    pub(super) access: usize,
    pub(super) device: IpAddr,
    pub(super) port: u16,
    pub(super) data: Vec<u8>,
}

/// Datagrams by the numbers that the links know them by, and those that have arrived.
#[derive(Default)]
pub(super) struct Air {
    flying: Vec<Option<Flying>>,
    free: Vec<u32>,
    pub(super) arrived: VecDeque<Flying>,
}

impl Air {
    fn take(&mut self, id: u32) -> Option<Flying> {
        self.free.push(id);
        self.flying[id as usize].take()
    }

    pub(super) fn put(&mut self, f: Flying) -> u32 {
        if let Some(id) = self.free.pop() {
            self.flying[id as usize] = Some(f);
            return id;
        }
        self.flying.push(Some(f));
        self.flying.len() as u32 - 1
    }
}

impl Sink for Air {
    fn deliver(&mut self, _at: Time, span: Span) {
        let arrived = self.take(span.id);
        self.arrived.extend(arrived);
    }

    fn discard(&mut self, span: Span, _cause: DropCause) {
        self.take(span.id);
    }
}
