//! The accesses as they are probed, by all engines: where from, and who asks the proxy.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use super::Daemon;
use crate::control::{Origin, Probed};
use crate::mptcp_check::Hands;
use crate::state::lock;

impl Probed for Daemon {
    async fn origin(&self, access: &str) -> Option<Origin> {
        let (proxy, port) = {
            let config = lock(&self.config);
            (config.proxy.clone(), config.probe.port)
        };
        for e in &self.engines {
            for (address, interface) in e.sources(access).await {
                let mut reaches = proxy.iter().filter(|a| a.is_ipv4() == address.is_ipv4());
                if let Some(to) = reaches.next() {
                    return Some(Origin {
                        address,
                        interface,
                        to: SocketAddr::new(*to, port),
                    });
                }
            }
        }
        None
    }

    /// Joins the peers of all engines; one that cannot list its own now has none.
    fn peers(&self, port: u16) -> BTreeSet<IpAddr> {
        let all = self.engines.iter().map(|e| e.peers(port));
        all.flat_map(Result::unwrap_or_default).collect()
    }

    fn carried(&self) -> u64 {
        lock(&self.shared.meter).payload()
    }

    fn hands_over(&self) -> bool {
        self.engines.iter().any(|e| e.capabilities().checks)
    }

    fn hands(&self) -> Hands {
        self.shared.hands()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use braid_api::Engine as Kind;

    use super::*;
    use crate::engine::testing::Fake;

    #[tokio::test]
    async fn every_engine_tells_where_from_and_who_has_a_connection() {
        let folder = tempfile::tempdir().unwrap();
        let (mut mptcp, mut mpquic) = (Fake::new(Kind::Mptcp), Fake::new(Kind::Mpquic));
        let [v4, v6] = ["10.77.1.2", "fd77::2"].map(|a| a.parse::<IpAddr>().unwrap());
        mptcp.sources = vec![("nr".to_owned(), v6, "d1".to_owned())];
        mpquic.sources = vec![("nr".to_owned(), v4, "d1".to_owned())];
        (mptcp.peers, mpquic.peers) = ([v4].into(), [v6].into());
        mptcp.can.checks = true;
        let text = "proxy = \"10.77.0.1\"\n[access.nr]\ninterface = \"d1\"\n";
        let daemon =
            Daemon::of_engines(folder.path(), text, vec![Arc::new(mptcp), Arc::new(mpquic)]);
        // The proxy has no address of the first one's family.
        let expected = Origin {
            address: v4,
            interface: "d1".to_owned(),
            to: "10.77.0.1:7724".parse().unwrap(),
        };
        assert_eq!(daemon.origin("nr").await, Some(expected));
        assert_eq!(daemon.origin("wifi").await, None);
        assert_eq!(daemon.peers(7724), [v4, v6].into());
        assert!(daemon.hands_over());
    }
}
