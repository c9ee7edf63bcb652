//! Carrier `mptcp`: each connection is one of Multipath TCP to the proxy's converter (RFC 8803), over
//! the accesses for which the path manager opens subflows.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::{Carrier, Connection};
use crate::convert::{self, Converted, Cookie};
use crate::dial;
use crate::wire::Target;

/// Carrier over the converter of the proxy, wherever that is when a program connects.
#[derive(Clone, Debug)]
pub struct OverConverter {
    at: watch::Receiver<Vec<SocketAddr>>,
    cookie: Cookie,
}

impl OverConverter {
    /// Makes a carrier over the converter at these addresses, the first that answers.
    pub fn new(at: watch::Receiver<Vec<SocketAddr>>, cookie: Cookie) -> Self {
        Self { at, cookie }
    }
}

impl Carrier for OverConverter {
    /// Classes are told apart by the sender's schedulers, of which the kernel has one for all.
    fn in_class(&self, _: u8) -> Arc<dyn Carrier> {
        Arc::new(self.clone())
    }

    fn connect(&self, to: &Target) -> BoxFuture<'static, io::Result<Box<dyn Connection>>> {
        let (mut at, cookie, to) = (self.at.clone(), self.cookie.clone(), to.clone());
        async move {
            // A converter takes addresses alone (RFC 8803 4.2.5).
            let to = dial::resolve(&to).await?;
            let to = *to.first().ok_or(io::ErrorKind::NotFound)?;
            let there = at.wait_for(|at| !at.is_empty()).await;
            let at = there.map(|at| at.clone());
            let at = at.map_err(|_| io::Error::from(io::ErrorKind::NotConnected))?;
            let tcp = convert::connect(&at).await?;
            let connection = Converted::request(tcp, to, &cookie).await?;
            Ok(Box::new(connection) as Box<dyn Connection>)
        }
        .boxed()
    }
}
