//! The channel below real links: queues, losses, outages, trains of packets.

use super::*;
use crate::model::{
    DropCause, LinkChange, LinkSpec, LossSpec, Network, QueueSpec, Sink, Span, StationLink, Train,
};

#[derive(Default)]
struct Log {
    /// Train and packet of what came out, in order.
    delivered: Vec<(u32, u32)>,
    dropped: Vec<(DropCause, u32)>,
}

impl Log {
    fn lost(&self, cause: DropCause) -> usize {
        let of = self.dropped.iter().filter(|(c, _)| *c == cause);
        of.map(|(_, n)| *n as usize).sum()
    }
}

impl Sink for Log {
    fn deliver(&mut self, _at: Time, span: Span) {
        self.delivered
            .extend((span.first..span.end).map(|p| (span.id, p)));
    }
    fn discard(&mut self, span: Span, cause: DropCause) {
        self.dropped.push((cause, span.packets()));
    }
}

/// A station that sends 200 trains of 20 packets in 10 ms steps; garbled: its loss.
fn run(spec: &WifiSpec, garbled: f64, outage: bool) -> (Log, MediumStats) {
    let mut network = Network::new(3);
    let link = network.add_link(
        "up",
        &LinkSpec {
            loss: LossSpec::Bernoulli(garbled),
            queue: QueueSpec::Packets(100),
            ..LinkSpec::default()
        },
    );
    let medium = Box::new(Dcf::new(spec, 1, 9).unwrap());
    let station = vec![StationLink {
        link,
        phy_mbps: None,
    }];
    network.add_medium("wifi", medium, vec![station]);
    let mut log = Log::default();
    for k in 0..200u32 {
        let now = time(0.01 * f64::from(k));
        network.advance(now, &mut log);
        match k {
            100 if outage => network.apply(link, now, &LinkChange::Down, &mut log),
            120 if outage => network.apply(link, now, &LinkChange::Up, &mut log),
            _ => {}
        }
        let train = Train {
            id: k,
            packets: 20,
            full_bytes: IP_BYTES,
            last_bytes: 700,
        };
        network.enqueue(link, now, train, &mut log);
    }
    network.advance(time(10.0), &mut log);
    (log, network.medium_stats().remove(0).1)
}

#[test]
fn links_share_the_channel_and_keep_order() {
    for spec in [Standard::G, Standard::N].map(WifiSpec::new) {
        for (garbled, outage) in [(0.0, false), (0.1, false), (0.4, true)] {
            let (log, stats) = run(&spec, garbled, outage);
            let name = format!("{} {garbled} {outage}", spec.standard);
            assert!(log.delivered.is_sorted_by(|a, b| a < b), "{name}");
            let [full, down, given_up] = [
                DropCause::QueueFull,
                DropCause::LinkDown,
                DropCause::RetryLimit,
            ]
            .map(|cause| log.lost(cause));
            assert_eq!(log.delivered.len() + full + down + given_up, 4000, "{name}");
            assert_eq!(
                stats.stations[0].delivered_packets,
                log.delivered.len() as u64,
                "{name}"
            );
            assert_eq!(stats.stations[0].dropped_packets, given_up as u64, "{name}");
            assert_eq!(
                log.lost(DropCause::Loss),
                0,
                "a garbled packet is sent again"
            );
            assert_eq!(down > 0, outage, "{name}");
            if !outage {
                // 24 Mbit/s are offered, less than either carries.
                assert_eq!((full, given_up), (0, 0), "{name}");
            } else if spec.standard == Standard::G {
                assert!(full > 0, "{name}: over half of the air is lost");
            }
        }
    }
}
