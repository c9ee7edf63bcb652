//! The settings of QUIC that several paths need.

use std::sync::Arc;
use std::time::Duration;

use noq_proto::{IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};

use crate::Lane;
use crate::congestion::{Gates, Inner, Shared};

/// Path ids at a time. An attempt that fails uses one up until the peer has forgotten
/// it, so that there are many more than accesses.
const PATHS: u32 = 32;
/// The library ends a connection over more than 2048 chunks with gaps before them in
/// one stream ("too many gaps in stream buffer"): of full packets, these are more.
const STREAM_WINDOW: u32 = 2_500_000;
/// For all streams of a connection.
const WINDOW: u32 = 64 << 20;
/// A path on which nothing came back for so long has ended, while there is another.
pub(crate) const PATH_IDLE: Duration = Duration::from_secs(10);
/// Idle time of a path on the stream lane, where what waits on a path that is dead, and all
/// acknowledgements if it is the peer's first, wait for its end: service is to be back 3 s after
/// an outage of a second, though only one of the paths is. Two pings are lost in it.
pub(crate) const STREAM_PATH_IDLE: Duration = Duration::from_secs(2);
/// A session whose peer has proved nothing for so long has ended (RFC 9000 10.1).
pub(crate) const IDLE: Duration = Duration::from_secs(30);
/// Before a path's own is known.
pub(crate) const INITIAL_RTT: Duration = Duration::from_millis(100);
/// Datagrams of the lane that wait in QUIC: one burst, with room to spare.
pub(crate) const DATAGRAM_BUFFER: usize = 128 << 10;
/// Bytes of datagrams that have arrived and wait for the lane, which takes them at once.
const DATAGRAMS_RECEIVED: usize = 4 << 20;
/// UDP payload of a full packet over IPv4 or IPv6 at an MTU of 1500.
pub(crate) const PAYLOAD: u16 = 1452;
/// UDP payload of a packet that every path of QUIC carries (RFC 9000 14).
const MIN_PAYLOAD: u16 = 1200;
/// How exactly a path's is searched for between the two.
const MTU_STEP: u16 = 16;

/// A queue that overflows may look to the library as if full packets did not fit, and it
/// sends ones of 1200 bytes. It tries longer ones again after this.
const BLACK_HOLE: Duration = Duration::from_secs(10);

/// Round trips that the library waits for what was overtaken, by however many packets: longer
/// than its controllers, which know better ([`crate::congestion`]), and than streams, on which
/// it is told earlier that something is lost.
pub(crate) const PATIENCE: f32 = 3.0;

/// The settings of one connection.
pub(crate) fn config(lane: Lane, inner: Inner, shared: &Shared) -> Arc<TransportConfig> {
    let mut t = TransportConfig::default();
    #[cfg(feature = "qlog")]
    t.qlog_factory(Arc::new(noq_proto::QlogFileFactory::from_env()));
    let mut mtu = MtuDiscoveryConfig::default();
    mtu.upper_bound(PAYLOAD)
        .minimum_change(MTU_STEP)
        .black_hole_cooldown(BLACK_HOLE);
    let initial = match lane {
        // The lane looks itself what fits, on each path. The library would have the least of
        // all paths for all of its datagrams.
        Lane::Datagram => PAYLOAD,
        Lane::Stream => MIN_PAYLOAD,
    };
    t.min_mtu(initial);
    // The library ends no path for having been idle: the device alone does, and only while another
    // one lives. What was under way on a path that has ended is sent again only once the other end
    // has ended it, too (noq-proto 1.4). The library may say so on a path that has ended, that one
    // itself or the very one that the other end has just ended, and then none of it is ever sent
    // again.
    t.max_concurrent_multipath_paths(PATHS)
        .mtu_discovery_config(Some(mtu))
        .default_path_max_idle_timeout(None)
        .max_idle_timeout(IdleTimeout::try_from(IDLE).ok())
        .packet_threshold(u32::MAX)
        .time_threshold(PATIENCE)
        .initial_rtt(INITIAL_RTT)
        .initial_mtu(initial)
        .stream_receive_window(VarInt::from_u32(STREAM_WINDOW))
        .receive_window(VarInt::from_u32(WINDOW))
        .send_window(WINDOW.into())
        .datagram_send_buffer_size(DATAGRAM_BUFFER)
        .datagram_receive_buffer_size(Some(DATAGRAMS_RECEIVED))
        .allow_spin(false)
        .congestion_controller_factory(Arc::new(Gates {
            shared: shared.clone(),
            inner,
        }));
    Arc::new(t)
}
