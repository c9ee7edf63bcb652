//! Tests of whole links and networks.

use std::time::Duration;

use braid_core::{Rate, Time};

use super::{DropCause, LinkId, LinkSpec, Network, RateSpec, Sink, Span, Train};

mod backhaul;
mod exact;
mod load;
mod media;
mod random;
mod succession;

const MS: Duration = Duration::from_millis(1);

fn at_us(us: u64) -> Time {
    Time::from(Duration::from_micros(us))
}

fn mbps(m: u64) -> RateSpec {
    RateSpec::Constant(Rate::from_bps(m * 1_000_000))
}

/// Notes everything that comes out.
#[derive(Clone, Debug, Default, PartialEq)]
struct Log {
    delivered: Vec<(Time, Span)>,
    dropped: Vec<(Span, DropCause)>,
}

impl Sink for Log {
    fn deliver(&mut self, at: Time, span: Span) {
        self.delivered.push((at, span));
    }
    fn discard(&mut self, span: Span, cause: DropCause) {
        self.dropped.push((span, cause));
    }
}

impl Log {
    fn packets(&self) -> u64 {
        self.delivered
            .iter()
            .map(|(_, s)| u64::from(s.packets()))
            .sum()
    }

    fn lost(&self, cause: DropCause) -> u64 {
        let spans = self.dropped.iter().filter(|(_, c)| *c == cause);
        spans.map(|(s, _)| u64::from(s.packets())).sum()
    }
}

fn train(id: u32, packets: u32, bytes: u32) -> Train {
    Train {
        id,
        packets,
        full_bytes: bytes,
        last_bytes: bytes,
    }
}

/// A network of one link.
fn one(spec: &LinkSpec) -> (Network, LinkId, Log) {
    let mut net = Network::new(1);
    let link = net.add_link("only", spec);
    (net, link, Log::default())
}
