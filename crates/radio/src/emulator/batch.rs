//! Packets handed over together, each with the time at which it is due.

use nix::errno::Errno;

use super::outbox::{Outbox, parts};
use super::packet::MAX_HEADER;
use super::port::Port;
use super::segment::HeaderBuf;
use super::vnet::{ETHERNET_LEN, VNET_LEN};

/// A packet to write.
pub(crate) struct Write<'a> {
    /// Index of the port.
    pub(crate) port: usize,
    /// When it is to arrive (`CLOCK_MONOTONIC`, nanoseconds); 0: at once.
    pub(crate) at: u64,
    /// Headers before the payload, from the virtio-net header on.
    pub(crate) headers: HeaderBuf,
    /// Length of that, at least that of the virtio-net header.
    pub(crate) header_bytes: usize,
    /// The rest.
    pub(crate) payload: &'a [u8],
    /// The link it comes over.
    pub(crate) link: usize,
    /// Packets on the wire.
    pub(crate) packets: u32,
}

impl Outbox {
    /// Everything there is, as of `now`, to be written for when it is due.
    /// [`Outbox::written`] is to follow.
    pub(crate) fn batch(&mut self, ports: &[Port], now: u64) -> Vec<Write<'_>> {
        let mut writes = Vec::with_capacity(self.due.len());
        for due in self.due.drain(..) {
            let span = due.span;
            let at = due.at.max(now);
            self.lateness.delivery(due.intended, at);
            self.handed.push(span);
            let Some(held) = self.buffers.get(span.id) else {
                continue;
            };
            let link = &mut self.links[held.link];
            if let Some(capture) = &mut self.capture {
                capture.record(held.link, held, span, at - now);
            }
            for (first, end) in parts(span, self.checksums) {
                let (from, to) = (ports[link.from].framing(), ports[link.to].framing());
                let p = &held.packet;
                let mut headers = [0; MAX_HEADER + ETHERNET_LEN];
                let whole = p.is_whole(first, end, from, to, self.checksums);
                let (header_bytes, payload) = if whole {
                    headers[..VNET_LEN].copy_from_slice(&held.buf[..VNET_LEN]);
                    (VNET_LEN, VNET_LEN..p.end)
                } else {
                    p.headers(&held.buf, (first, end), to, self.checksums, &mut headers)
                };
                let packets = end - first;
                link.stats.writes += 1;
                link.stats.written_packets += u64::from(packets);
                writes.push(Write {
                    port: link.to,
                    at: if due.at > now { at } else { 0 },
                    headers,
                    header_bytes,
                    payload: &held.buf[payload],
                    link: held.link,
                    packets,
                });
            }
        }
        writes
    }

    /// All of the last [`Outbox::batch`] has been written but for these packets
    /// of these links.
    pub(crate) fn written(&mut self, failed: &[(usize, u32, Errno)]) {
        for &(link, packets, e) in failed {
            let link = &mut self.links[link];
            link.stats.written_packets -= u64::from(packets);
            link.refused(u64::from(packets), e);
        }
        for span in self.handed.drain(..) {
            self.buffers.release(span.id, span.packets());
        }
    }
}
