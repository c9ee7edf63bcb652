//! Configuration of the kernel, as far as the path manager plans by it.

use std::ops::{Deref, DerefMut};

use braid_access::view::View as Network;

use crate::pm::Endpoint;

/// Everything at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct View {
    /// Interfaces, addresses, routes and rules.
    pub network: Network,
    /// The path manager's endpoints.
    pub endpoints: Vec<Endpoint>,
}

impl From<Network> for View {
    /// Without endpoints.
    fn from(network: Network) -> Self {
        Self {
            network,
            endpoints: vec![],
        }
    }
}

impl Deref for View {
    type Target = Network;

    fn deref(&self) -> &Network {
        &self.network
    }
}

impl DerefMut for View {
    fn deref_mut(&mut self) -> &mut Network {
        &mut self.network
    }
}
