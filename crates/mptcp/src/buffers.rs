//! How much the TCP sockets of the namespace may hold: `tcp_rmem` and `tcp_wmem`.

use std::time::Duration;

use crate::{support, weights};

/// The sysctl of [`TCP_RMEM`].
pub const RECEIVE: &str = "net.ipv4.tcp_rmem";
/// The sysctl of [`TCP_WMEM`].
pub const SEND: &str = "net.ipv4.tcp_wmem";

/// The sysctl by which Braid's kernel keeps the queues of subflows short by itself: 0 or 1.
pub const SHORT_QUEUES: &str = "net.mptcp.short_queues";

/// Least, initial and greatest buffer of a TCP socket, bytes.
pub type Sizes = [u32; 3];

/// Receive buffers for several accesses. Multipath TCP needs what all of them carry
/// in the time that a burst takes over the slowest, and a window that its sender never
/// gets to the end of, which stock kernels compute wrongly: from the first byte on it is
/// more than the send buffers of three subflows together ([`TCP_WMEM`]).
pub const TCP_RMEM: Sizes = [4096, 64 << 20, 64 << 20];
/// Receive buffers on Braid's kernel, whose senders know the window: it may open by and by.
const REPAIRED_TCP_RMEM: Sizes = [4096, 4 << 20, 64 << 20];
/// Send buffers, of each subflow; the kernel starts them at 16 kB.
pub const TCP_WMEM: Sizes = [4096, 4 << 20, 8 << 20];

/// Divisor of all memory that gives the maximum initial size of one receive buffer: a peer can
/// fill it while nobody reads, and the kernel's own bound of what all of TCP holds is a tenth
/// or so.
const OF_MEMORY: u64 = 64;

/// The receive buffers that the kernel that runs here is to have: [`TCP_RMEM`], but that they
/// begin with less, down to 4 MB, on machines of less than 4 GB.
pub fn to_receive() -> Sizes {
    match weights::known_to_kernel() {
        true => REPAIRED_TCP_RMEM,
        false => affordable(memory()),
    }
}

/// Returns the memory of this machine, bytes; `None` where it does not tell.
fn memory() -> Option<u64> {
    let told = nix::sys::sysinfo::sysinfo().ok()?;
    Some(told.ram_total())
}

/// With so much memory, bytes, where that is known.
fn affordable(memory: Option<u64>) -> Sizes {
    let [least, initial, greatest] = TCP_RMEM;
    let share = memory.map_or(u64::MAX, |m| m / OF_MEMORY);
    let initial = u64::from(initial).min(share) as u32;
    [least, initial.max(REPAIRED_TCP_RMEM[1]), greatest]
}

/// Burst that the stock scheduler gives to a subflow at a time, bytes.
const BURST: f64 = 65_536.0;
/// The kernel counts about twice what is in a buffer: its own structures, too.
const COUNTED: f64 = 2.0;

/// The receive buffer, in bytes as the kernel counts, for what paths of `sum` bytes/s
/// carry while one burst takes its time on the slowest, of `least` bytes/s, and for
/// `longest`, a round trip.
pub fn needed(sum: f64, least: f64, longest: Duration) -> f64 {
    COUNTED * sum * (BURST / least + longest.as_secs_f64())
}

/// The size, in bytes as the kernel counts, that send buffers of `paths` subflows should
/// begin with, from 256 kB to the initial size of [`TCP_WMEM`]: together half more than is
/// [`needed`], since what is left of a slow one's is of no use to a fast one.
///
/// Less stops the sender while the peer waits for a burst. More costs time whenever an
/// access is lost: what a subflow has not sent yet stands before what is sent again, and
/// no kernel makes a send buffer smaller than it began. Half of 4 MB takes 0.7 s on
/// 25 Mbit/s.
pub fn initial_send(sum: f64, least: f64, longest: Duration, paths: usize) -> u32 {
    const LEAST: f64 = 262_144.0;
    let each = 1.5 * needed(sum, least, longest) / paths.max(1) as f64;
    each.clamp(LEAST, f64::from(TCP_WMEM[1])) as u32
}

/// A sysctl of three sizes, in the calling thread's namespace.
pub fn sizes(name: &str) -> Option<Sizes> {
    read(&support::sysctl(name)?)
}

/// Three sizes as the kernel writes them.
pub fn read(text: &str) -> Option<Sizes> {
    let mut numbers = text.split_whitespace().map(str::parse);
    let sizes = [(); 3].map(|()| numbers.next().and_then(Result::ok));
    let [Some(least), Some(initial), Some(greatest)] = sizes else {
        return None;
    };
    (numbers.next().is_none()).then_some([least, initial, greatest])
}

/// Three sizes as a sysctl takes them.
pub fn write([least, initial, greatest]: Sizes) -> String {
    format!("{least} {initial} {greatest}")
}

/// `now`, as the sysctl has it, with none of the three below `wanted`; none if that
/// changes nothing.
pub fn raised(now: &str, wanted: Sizes) -> Option<String> {
    let now = read(now)?;
    let [a, b, c] = [0, 1, 2].map(|i| now[i].max(wanted[i]));
    ([a, b, c] != now).then(|| write([a, b, c]))
}

/// As long as it lives, new sockets begin with a wider receive buffer.
///
/// A subflow begins with the namespace's initial one, not with what its connection
/// has grown to, and nothing widens it later: once the last of the first subflows has
/// been replaced, the window of the connection is that of a new one. Those that join
/// a connection again are therefore opened under this, as wide as is
/// [needed](crate::repair::receive_window) and no wider: what a sender may have under way is
/// sent again when an access is lost, and the application waits for it.
#[derive(Debug)]
pub struct Wide {
    before: Option<String>,
}

impl Wide {
    /// With at least `initial` bytes, in the calling thread's namespace; does nothing
    /// where that is not allowed.
    pub fn begin(initial: u32) -> Self {
        let before = support::sysctl(RECEIVE).filter(|text| {
            let [least, now, greatest] = read(text).unwrap_or([0; 3]);
            let wide = initial.min(greatest);
            let wider = write([least, wide, greatest]);
            wide > now && support::set_sysctl(RECEIVE, &wider).is_ok()
        });
        Self { before }
    }
}

impl Drop for Wide {
    fn drop(&mut self) {
        if let Some(before) = &self.before
            && let Err(e) = support::set_sysctl(RECEIVE, before)
        {
            tracing::warn!("{e}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        assert_eq!(
            read("4096\t131072\t6291456\n"),
            Some([4096, 131_072, 6_291_456])
        );
        for wrong in ["", "1 2", "1 2 3 4", "1 2 x", "-1 2 3"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn send_buffers_begin_by_what_accesses_carry() {
        let ms = Duration::from_millis;
        let mbit = 1e6 / 8.0;
        let at = |sum: f64, least: f64, rtt, n| initial_send(sum * mbit, least * mbit, rtt, n);
        // 5G, Wi-Fi and LiFi as in `static`.
        assert_eq!(at(1600.0, 12.5, ms(50), 3), TCP_WMEM[1]);
        // Two of LTE: 55 Mbit/s for 130 ms and a burst, half more than twice that, halved.
        assert!((1_400_000..1_700_000).contains(&at(55.0, 25.0, ms(130), 2)));
        assert_eq!(at(1.0, 1.0, ms(10), 1), 262_144);
        assert_eq!(at(f64::INFINITY, 10.0, ms(10), 2), TCP_WMEM[1]);
    }

    #[test]
    fn small_machines_begin_with_less() {
        let initial = |mb: u64| affordable(Some(mb << 20))[1] >> 20;
        assert_eq!(initial(24_000), 64);
        assert_eq!(initial(4096), 64);
        assert_eq!(initial(1024), 16);
        assert_eq!(initial(128), 4);
        assert_eq!(affordable(None), TCP_RMEM);
        assert_eq!(affordable(Some(u64::MAX)), TCP_RMEM);
    }

    fn sizes() -> impl Strategy<Value = Sizes> {
        any::<Sizes>().prop_map(|mut s| {
            s.sort_unstable();
            s
        })
    }

    proptest! {
        #[test]
        fn nothing_is_lowered_and_order_is_kept(now in sizes(), wanted in sizes()) {
            let after = raised(&write(now), wanted).map_or(Some(now), |t| read(&t)).unwrap();
            for i in 0..3 {
                prop_assert!(after[i] == now[i].max(wanted[i]));
            }
            prop_assert!(after.is_sorted());
            prop_assert_eq!(raised(&write(after), wanted), None);
        }

        #[test]
        fn any_text_is_read_or_left(text: String) {
            raised(&text, [1, 2, 3]);
        }
    }
}
