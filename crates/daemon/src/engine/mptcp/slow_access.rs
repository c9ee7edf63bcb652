//! Looks for accesses that are too slow beside the others while this end sends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use braid_api::EventKind;
use braid_mptcp::buffers;
use braid_mptcp::repair::window_limited::Path;

use super::{LIST, Mptcp};
use crate::DaemonError;
use crate::state::lock;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);
/// A connection that sent less than this between two looks does not count, bytes.
const LEAST: u64 = 125_000;
/// `TCP_ESTABLISHED`.
const ESTABLISHED: u8 = 1;

/// Looks, for ever.
pub(super) async fn watch(state: Arc<Mptcp>) -> DaemonError {
    let mut sent = BTreeMap::new();
    loop {
        tokio::time::sleep(EVERY).await;
        state.look_for_slow(&mut sent);
    }
}

impl Mptcp {
    /// `sent` is what each connection had sent at the last look.
    fn look_for_slow(&self, sent: &mut BTreeMap<u32, u64>) {
        // Those of the third that the kernel may grow a buffer to.
        let allows = buffers::sizes(buffers::RECEIVE);
        let (Some([_, _, allows]), Ok(sockets)) = (allows, self.sockets.subflows(LIST)) else {
            return;
        };
        let mut total: BTreeMap<u32, u64> = BTreeMap::new();
        let mut paths = Vec::new();
        for s in sockets.iter().filter(|s| s.state == ESTABLISHED) {
            let (Some(token), Some(ulp)) = (s.token(), s.ulp) else {
                continue;
            };
            *total.entry(token).or_default() += s.tcp.bytes_sent;
            let pace = s.tcp.pacing_rate;
            let backup = ulp.backup_local() || ulp.backup_remote();
            let named = self.sockets.access(s);
            if let (Some(access), false) = (named, backup || pace == 0 || pace == u64::MAX) {
                let rate = pace as f64 * 8.0;
                paths.push(Path {
                    token,
                    access,
                    rate,
                });
            }
        }
        paths.retain(|p| {
            let before = sent.get(&p.token).copied();
            before.is_some_and(|b| total[&p.token].saturating_sub(b) >= LEAST)
        });
        *sent = total;
        let news = lock(&self.slowness).look(&paths, allows.into());
        for slow in news {
            let why = slow.to_string();
            let what = EventKind::AccessSlow { why };
            self.shared.log(Some(slow.access), what);
        }
    }
}
