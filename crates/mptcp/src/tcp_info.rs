//! The kernel's `struct tcp_info` and `struct mptcp_info`, read field by field.
//!
//! Both grow at the end from kernel to kernel: a field that is not there reads
//! as zero.

/// A number at an offset of a struct of the kernel's; zero if it ends before.
fn at<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    bytes
        .get(offset..)
        .and_then(|b| b.first_chunk::<N>())
        .copied()
        .unwrap_or([0; N])
}

fn u8_at(b: &[u8], offset: usize) -> u8 {
    u8::from_ne_bytes(at(b, offset))
}
fn u32_at(b: &[u8], offset: usize) -> u32 {
    u32::from_ne_bytes(at(b, offset))
}
fn u64_at(b: &[u8], offset: usize) -> u64 {
    u64::from_ne_bytes(at(b, offset))
}

/// State of a connection or a subflow from `TCP_INFO` (`linux/tcp.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// TCP state as the kernel numbers it: 1 is established.
    pub state: u8,
    /// Consecutive retransmission timeouts without an answer.
    pub retransmits: u8,
    /// Consecutive probes without an answer: of a zero window, or of what this machine itself
    /// refused to send (RFC 9293 3.8.6.1).
    pub probes: u8,
    /// Doublings of the interval of probes or retransmissions.
    pub backoff: u8,
    /// Whether the delivery rate was limited by the application.
    pub delivery_app_limited: bool,
    /// Retransmission timeout, microseconds.
    pub rto_us: u32,
    /// Sending segment size, bytes.
    pub snd_mss: u32,
    /// Segments in flight.
    pub unacked: u32,
    /// Segments taken for lost.
    pub lost: u32,
    /// Since data was last sent, milliseconds.
    pub last_data_sent_ms: u32,
    /// Since data last came, milliseconds.
    pub last_data_recv_ms: u32,
    /// Since an acknowledgement last came, milliseconds.
    pub last_ack_recv_ms: u32,
    /// Path MTU, bytes.
    pub pmtu: u32,
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u32,
    /// Its mean deviation, microseconds.
    pub rttvar_us: u32,
    /// Slow-start threshold, segments; `i32::MAX` or more while it is not set.
    pub snd_ssthresh: u32,
    /// Congestion window, segments.
    pub snd_cwnd: u32,
    /// Segments sent again since the start.
    pub total_retrans: u32,
    /// Pacing rate, bytes per second; all ones without a limit.
    pub pacing_rate: u64,
    /// Data bytes that the peer acknowledged.
    pub bytes_acked: u64,
    /// Data bytes received in order.
    pub bytes_received: u64,
    /// Data bytes queued and not sent yet.
    pub notsent_bytes: u32,
    /// Least round-trip time, microseconds; all ones before a sample.
    pub min_rtt_us: u32,
    /// Data segments sent.
    pub data_segs_out: u32,
    /// Delivery rate, bytes per second.
    pub delivery_rate: u64,
    /// Time for which it had data to send, microseconds.
    pub busy_us: u64,
    /// Part of it in which the peer's receive window was full, microseconds.
    pub rwnd_limited_us: u64,
    /// Data bytes sent, retransmissions included.
    pub bytes_sent: u64,
    /// Data bytes sent again.
    pub bytes_retrans: u64,
}

impl TcpInfo {
    /// Reads the kernel's struct, however long it is.
    pub fn parse(b: &[u8]) -> Self {
        Self {
            state: u8_at(b, 0),
            retransmits: u8_at(b, 2),
            probes: u8_at(b, 3),
            backoff: u8_at(b, 4),
            delivery_app_limited: u8_at(b, 7) & 1 != 0,
            rto_us: u32_at(b, 8),
            snd_mss: u32_at(b, 16),
            unacked: u32_at(b, 24),
            lost: u32_at(b, 32),
            last_data_sent_ms: u32_at(b, 44),
            last_data_recv_ms: u32_at(b, 52),
            last_ack_recv_ms: u32_at(b, 56),
            pmtu: u32_at(b, 60),
            rtt_us: u32_at(b, 68),
            rttvar_us: u32_at(b, 72),
            snd_ssthresh: u32_at(b, 76),
            snd_cwnd: u32_at(b, 80),
            total_retrans: u32_at(b, 100),
            pacing_rate: u64_at(b, 104),
            bytes_acked: u64_at(b, 120),
            bytes_received: u64_at(b, 128),
            notsent_bytes: u32_at(b, 144),
            min_rtt_us: u32_at(b, 148),
            data_segs_out: u32_at(b, 156),
            delivery_rate: u64_at(b, 160),
            busy_us: u64_at(b, 168),
            rwnd_limited_us: u64_at(b, 176),
            bytes_sent: u64_at(b, 200),
            bytes_retrans: u64_at(b, 208),
        }
    }
}

/// State of a connection from `MPTCP_INFO` (`linux/mptcp.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MptcpInfo {
    /// Subflows beyond the first.
    pub subflows: u8,
    /// Addresses announced to the peer.
    pub add_addr_signal: u8,
    /// Addresses of the peer accepted.
    pub add_addr_accepted: u8,
    /// Limit of the first.
    pub subflows_max: u8,
    /// `MPTCP_INFO_FLAG_*`.
    pub flags: u32,
    /// Local token.
    pub token: u32,
    /// Next data sequence number to write.
    pub write_seq: u64,
    /// Oldest data sequence number not acknowledged.
    pub snd_una: u64,
    /// Next data sequence number expected.
    pub rcv_nxt: u64,
    /// Whether DSS checksums are on.
    pub csum_enabled: bool,
    /// Data sent again at MPTCP level, how often (6.5, as the next four).
    pub retransmits: u32,
    /// Bytes sent again.
    pub bytes_retrans: u64,
    /// Bytes sent.
    pub bytes_sent: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Bytes that the peer acknowledged.
    pub bytes_acked: u64,
    /// All subflows that exist (6.8).
    pub subflows_total: u8,
}

impl MptcpInfo {
    /// `MPTCP_INFO_FLAG_FALLBACK`.
    const FALLBACK: u32 = 1;
    /// `MPTCP_INFO_FLAG_REMOTE_KEY_RECEIVED`.
    const REMOTE_KEY_RECEIVED: u32 = 2;

    /// Reads the kernel's struct, however long it is.
    pub fn parse(b: &[u8]) -> Self {
        Self {
            subflows: u8_at(b, 0),
            add_addr_signal: u8_at(b, 1),
            add_addr_accepted: u8_at(b, 2),
            subflows_max: u8_at(b, 3),
            flags: u32_at(b, 8),
            token: u32_at(b, 12),
            write_seq: u64_at(b, 16),
            snd_una: u64_at(b, 24),
            rcv_nxt: u64_at(b, 32),
            csum_enabled: u8_at(b, 42) != 0,
            retransmits: u32_at(b, 44),
            bytes_retrans: u64_at(b, 48),
            bytes_sent: u64_at(b, 56),
            bytes_received: u64_at(b, 64),
            bytes_acked: u64_at(b, 72),
            subflows_total: u8_at(b, 80),
        }
    }

    /// Whether the connection fell back to TCP (RFC 8684 3.7).
    pub fn is_fallback(&self) -> bool {
        self.flags & Self::FALLBACK != 0
    }

    /// Whether the peer's key is known, that is, further subflows can join.
    pub fn remote_key_received(&self) -> bool {
        self.flags & Self::REMOTE_KEY_RECEIVED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_length_is_read(b in prop::collection::vec(any::<u8>(), 0..300)) {
            let t = TcpInfo::parse(&b);
            prop_assert_eq!(t.state, b.first().copied().unwrap_or(0));
            // A kernel's struct ends between fields: what a newer one adds at
            // the end changes nothing of the old fields.
            let whole = &b[..b.len() & !7];
            let mut longer = whole.to_vec();
            longer.resize(400, 0);
            prop_assert_eq!(MptcpInfo::parse(whole), MptcpInfo::parse(&longer));
            prop_assert_eq!(TcpInfo::parse(whole), TcpInfo::parse(&longer));
        }
    }
}
