//! Transparent listeners for connections of hosts, one for each class that rules name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use braid_forward::Carrier;
use braid_forward::inbound::{Open, Ports, Tproxy};
use tokio::task::JoinHandle;

use super::failed;
use super::throttle::Throttle;
use crate::engine::Result;

/// Listener of one class.
struct Listener {
    ports: Ports,
    open: Open,
    serving: JoinHandle<()>,
}

/// Listeners by the numbers of classes. One that was made stays: its connections may last.
pub(super) struct Listeners {
    carrier: Arc<dyn Carrier>,
    throttle: Throttle,
    all: BTreeMap<u8, Listener>,
}

impl Listeners {
    pub(super) fn new(carrier: Arc<dyn Carrier>) -> Self {
        Self {
            carrier,
            throttle: Throttle::default(),
            all: BTreeMap::new(),
        }
    }

    /// Makes those of these classes that are not there; returns the ports of all.
    ///
    /// # Errors
    /// The socket's.
    pub(super) fn make(&mut self, classes: &BTreeSet<u8>) -> Result<BTreeMap<u8, Ports>> {
        for class in classes {
            if self.all.contains_key(class) {
                continue;
            }
            let tproxy = Tproxy::listen()
                .map_err(|e| failed("listen for connections of hosts (IP_TRANSPARENT)", &e))?;
            let (ports, open) = (tproxy.ports(), tproxy.open());
            let carrier = self.carrier.in_class(*class);
            let serving = tokio::spawn(tproxy.serve(carrier, self.throttle.clone().told()));
            let listener = Listener {
                ports,
                open,
                serving,
            };
            self.all.insert(*class, listener);
        }
        Ok(self.all.iter().map(|(c, l)| (*c, l.ports)).collect())
    }

    /// Returns how many connections are open.
    pub(super) fn open(&self) -> usize {
        self.all.values().map(|l| l.open.count()).sum()
    }

    /// Ends them with their connections.
    pub(super) fn close(&self) {
        self.all.values().for_each(|l| l.serving.abort());
    }
}
