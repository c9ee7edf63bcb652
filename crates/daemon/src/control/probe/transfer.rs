//! Data of a transfer over its flows, and the goodput that its sender measures.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use braid_core::{Rate, Time};
use braid_mptcp::socket::{self, TcpInfo};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::state::now;

/// Time between two readings of what the peer has acknowledged.
const SAMPLE: Duration = Duration::from_millis(20);
/// Span that a rate is measured over at least; less is a burst of acknowledgements.
const MIN_SPAN: Duration = Duration::from_millis(100);
/// Bytes that are written or read at once.
const BLOCK: usize = 65_536;
/// Bytes of a flow that wait in the kernel to be sent: a peer that acknowledges nothing must not
/// have the proxy hold a whole send buffer for each flow.
const WAITING: u32 = 131_072;

/// Acknowledged bytes of a transfer from reading to reading.
///
/// The rate is that of its second half: the first one has slow start in it, which ten flows are
/// through within some round trips. The transfer ends with the last acknowledgement, so that what
/// is left of its time after its last byte counts for nothing.
#[derive(Clone, Debug, Default)]
pub(super) struct Goodput(Vec<(Time, u64)>);

impl Goodput {
    /// Takes in a reading: bytes that were acknowledged since the begin.
    ///
    /// A flow that the peer has reset may tell nothing any more; what it had is not taken back.
    pub(super) fn sample(&mut self, at: Time, acked: u64) {
        let before = self.0.last().map_or(0, |(_, acked)| *acked);
        self.0.push((at, acked.max(before)));
    }

    /// Returns the rate; `None` where the transfer was too short to tell, or moved nothing.
    pub(super) fn rate(&self) -> Option<Rate> {
        let (begin, _) = *self.0.first()?;
        let (_, total) = *self.0.last()?;
        let (end, _) = *self.0.iter().find(|(_, acked)| *acked == total)?;
        let middle = begin + end.since(begin) / 2;
        let (from, before) = *self.0.iter().rev().find(|(at, _)| *at <= middle)?;
        let (span, bytes) = (end.since(from), total - before);
        (span >= MIN_SPAN && bytes > 0)
            .then(|| Rate::from_mbps(bytes as f64 * 8e-6 / span.as_secs_f64()))
    }
}

/// Result at the end that sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    /// Bytes of all flows, retransmissions included.
    pub(super) bytes: u64,
    /// Goodput.
    pub(super) rate: Option<Rate>,
}

/// Counters of all flows together: acknowledged, and sent.
fn counters(flows: &[Arc<TcpStream>]) -> (u64, u64) {
    let infos = flows.iter().filter_map(|f| socket::tcp_info(f).ok());
    infos.fold((0, 0), |(acked, sent), i: TcpInfo| {
        (acked + i.bytes_acked, sent + i.bytes_sent)
    })
}

/// Sends over all flows for `duration`, or until `max_bytes` are acknowledged, or a quarter more
/// is sent for all that has to be sent again. Keeps `moved` up to date for whoever gives the
/// transfer up. The flows are reset: what waits in them is of no use.
pub(super) async fn send(
    flows: Vec<TcpStream>,
    duration: Duration,
    max_bytes: u64,
    moved: &AtomicU64,
) -> Sent {
    let flows: Vec<_> = flows.into_iter().map(Arc::new).collect();
    let left = Arc::new(AtomicU64::new(max_bytes));
    let (acked_before, sent_before) = counters(&flows);
    let mut goodput = Goodput::default();
    goodput.sample(Time::from_nanos(now()), 0);
    let mut writing = JoinSet::new();
    for flow in &flows {
        reset_at_end(flow);
        bound(flow);
        writing.spawn(write(Arc::clone(flow), Arc::clone(&left)));
    }
    let end = Instant::now() + duration;
    // Writers end by themselves where the bytes are written, or the peer has gone.
    let mut writers = flows.len();
    loop {
        tokio::select! {
            _ = writing.join_next(), if writers > 0 => {
                writers -= 1;
                continue;
            }
            () = tokio::time::sleep(SAMPLE) => {}
        }
        let (acked, sent) = counters(&flows);
        let acked = acked.saturating_sub(acked_before);
        goodput.sample(Time::from_nanos(now()), acked);
        let sent = sent.saturating_sub(sent_before);
        moved.fetch_max(sent, Ordering::Relaxed);
        let gone = writers == 0 && left.load(Ordering::Relaxed) > 0;
        let spent = sent >= max_bytes.saturating_add(max_bytes / 4);
        if Instant::now() >= end || acked >= max_bytes || spent || gone {
            break;
        }
    }
    writing.shutdown().await;
    Sent {
        bytes: moved.load(Ordering::Relaxed),
        rate: goodput.rate(),
    }
}

/// Bounds what waits in the kernel; where that fails, its own bound holds.
fn bound(flow: &TcpStream) {
    let _ = SockRef::from(flow).set_tcp_notsent_lowat(WAITING);
}

async fn write(flow: Arc<TcpStream>, left: Arc<AtomicU64>) -> std::io::Result<()> {
    loop {
        flow.writable().await?;
        let take = |left: u64| Some(left.saturating_sub(BLOCK as u64));
        let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        let (Ok(before) | Err(before)) = before;
        let share = before.min(BLOCK as u64) as usize;
        if share == 0 {
            return Ok(());
        }
        let written = flow.try_write(&NOISE[..share]);
        let unused = share - written.as_ref().map_or(0, |n| *n);
        left.fetch_add(unused as u64, Ordering::Relaxed);
        match written {
            Err(e) if e.kind() != std::io::ErrorKind::WouldBlock => return Err(e),
            _ => {}
        }
        // Others have their turn after each block.
        tokio::task::yield_now().await;
    }
}

/// Bytes that nothing on the way can compress.
static NOISE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    let words = (0..BLOCK / 8).flat_map(|_| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        x.to_ne_bytes()
    });
    words.collect()
});

/// Outcome at the end that received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// The sender has ended all flows.
    Ended,
    /// More came than was agreed on.
    TooMuch,
    /// The sender did not end in time.
    TooLong,
}

/// Reads all flows until their sender ends them, for `within` and `max_bytes` at most, and adds
/// what comes to `moved`. The flows are reset.
pub(super) async fn receive(
    flows: Vec<TcpStream>,
    within: Duration,
    max_bytes: u64,
    moved: &Arc<AtomicU64>,
) -> Received {
    let mut reading = JoinSet::new();
    for flow in flows {
        reset_at_end(&flow);
        reading.spawn(read(flow, max_bytes, Arc::clone(moved)));
    }
    let all = async {
        while let Some(one) = reading.join_next().await {
            if matches!(one, Ok(Received::TooMuch)) {
                return Received::TooMuch;
            }
        }
        Received::Ended
    };
    let done = tokio::time::timeout(within, all).await;
    done.unwrap_or(Received::TooLong)
}

async fn read(flow: TcpStream, max_bytes: u64, moved: Arc<AtomicU64>) -> Received {
    let mut block = vec![0; BLOCK];
    loop {
        if flow.readable().await.is_err() {
            return Received::Ended;
        }
        match flow.try_read(&mut block) {
            Ok(0) => return Received::Ended,
            Ok(n) => {
                let before = moved.fetch_add(n as u64, Ordering::Relaxed);
                if before + n as u64 > max_bytes {
                    return Received::TooMuch;
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => return Received::Ended,
        }
        tokio::task::yield_now().await;
    }
}

/// Makes the close of a flow a reset: nothing of it lingers in a queue, or in TIME-WAIT.
pub(super) fn reset_at_end(flow: &TcpStream) {
    let _ = SockRef::from(flow).set_linger(Some(Duration::ZERO));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Time {
        Time::from_nanos(n * 1_000_000)
    }

    fn mbps(samples: &[(u64, u64)]) -> Option<f64> {
        let mut goodput = Goodput::default();
        let all = samples.iter();
        all.for_each(|(t, acked)| goodput.sample(ms(*t), *acked));
        goodput.rate().map(|r| r.as_mbps())
    }

    #[test]
    fn the_second_half_counts_and_no_wait_after_it() {
        // A slow start of half a second, then 100 Mbit/s.
        let start = [(0, 0), (250, 100_000), (500, 2_000_000)];
        let full = [(750, 5_125_000), (1000, 8_250_000)];
        let all = [&start[..], &full].concat();
        assert_eq!(mbps(&all), Some(100.0));
        // All bytes were acknowledged before the time was over.
        let wait = [(1500, 8_250_000), (3000, 8_250_000)];
        assert_eq!(mbps(&[&all[..], &wait].concat()), Some(100.0));
    }

    #[test]
    fn too_little_tells_nothing() {
        assert_eq!(mbps(&[]), None);
        assert_eq!(mbps(&[(0, 0)]), None);
        assert_eq!(mbps(&[(0, 0), (500, 0), (1000, 0)]), None);
        assert_eq!(mbps(&[(0, 0), (20, 900_000), (40, 1_000_000)]), None);
    }

    #[test]
    fn a_flow_that_tells_nothing_any_more_takes_nothing_back() {
        let all = [
            (0, 0),
            (250, 3_125_000),
            (500, 6_250_000),
            (1000, 12_500_000),
        ];
        let lost = [(1020, 9_000_000), (1040, 0)];
        assert_eq!(mbps(&[&all[..], &lost].concat()), Some(100.0));
    }

    #[tokio::test]
    async fn a_peer_that_reads_nothing_is_no_load() {
        let (from, to) = pairs().await;
        let flows: Vec<_> = from.into_iter().map(Arc::new).collect();
        let left = Arc::new(AtomicU64::new(1 << 40));
        let queued = |flow: &Arc<TcpStream>| {
            let info = socket::tcp_info(flow).unwrap();
            info.notsent_bytes
        };
        let mut writing = JoinSet::new();
        for flow in &flows {
            bound(flow);
            writing.spawn(write(Arc::clone(flow), Arc::clone(&left)));
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        for flow in &flows {
            assert!(queued(flow) > 0, "the peer's window is shut");
            assert!(queued(flow) <= WAITING + BLOCK as u32, "{}", queued(flow));
        }
        drop(to);
    }

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (connected, accepted) = tokio::join!(TcpStream::connect(at), listener.accept());
        (connected.unwrap(), accepted.unwrap().0)
    }

    async fn pairs() -> (Vec<TcpStream>, Vec<TcpStream>) {
        let (a, b) = (pair().await, pair().await);
        (vec![a.0, b.0], vec![a.1, b.1])
    }

    #[tokio::test]
    async fn no_more_is_sent_than_was_agreed_on_and_all_of_it_arrives() {
        let (from, to) = pairs().await;
        let (sent, moved) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
        let within = Duration::from_secs(10);
        let (sent, received) = tokio::join!(
            send(from, within, 3_000_000, &sent),
            receive(to, within, 3_000_000, &moved)
        );
        assert_eq!(received, Received::Ended);
        assert_eq!(moved.load(Ordering::Relaxed), 3_000_000);
        assert!(sent.bytes >= 3_000_000);
    }

    #[tokio::test]
    async fn time_ends_a_transfer_and_its_rate_is_that_of_what_arrived() {
        let (from, to) = pairs().await;
        let (sent, moved) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
        let within = Duration::from_secs(10);
        let (sent, received) = tokio::join!(
            send(from, Duration::from_millis(300), u64::MAX, &sent),
            receive(to, within, u64::MAX, &moved)
        );
        assert_eq!(received, Received::Ended);
        assert!(sent.rate.is_some() && moved.load(Ordering::Relaxed) > 0);
    }

    #[tokio::test]
    async fn a_sender_without_end_is_ended() {
        let (from, to) = pairs().await;
        let (sent, moved) = (AtomicU64::new(0), Arc::new(AtomicU64::new(0)));
        let long = Duration::from_secs(30);
        let begun = Instant::now();
        let (_, received) = tokio::join!(
            send(from, long, u64::MAX, &sent),
            receive(to, long, 1_000_000, &moved)
        );
        assert_eq!(received, Received::TooMuch);
        assert!(moved.load(Ordering::Relaxed) < 1_000_000 + 2 * BLOCK as u64);
        let (from, to) = pairs().await;
        let (_, received) = tokio::join!(
            send(from, long, 0, &sent),
            receive(to, Duration::from_millis(50), 1_000_000, &moved)
        );
        // Nothing was to be sent: the sender ended at once, or the reader did.
        assert!(matches!(received, Received::TooLong | Received::Ended));
        assert!(begun.elapsed() < long);
    }
}
