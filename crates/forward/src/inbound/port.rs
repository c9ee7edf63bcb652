//! Inbound `port`: a port of the device whose connections all go to one destination.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

use super::{carry, refused, serve_each};
use crate::carrier::Carrier;
use crate::wire::Target;

/// Port of the device whose connections go to one destination.
#[derive(Debug)]
pub struct Port {
    listener: TcpListener,
    to: Target,
}

impl Port {
    /// Listens at `at`, in the namespace of the calling thread.
    ///
    /// # Errors
    /// The socket's.
    pub async fn listen(at: SocketAddr, to: impl Into<Target>) -> io::Result<Self> {
        let listener = TcpListener::bind(at).await?;
        let to = to.into();
        Ok(Self { listener, to })
    }

    /// Returns where it listens.
    ///
    /// # Errors
    /// The socket's.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves programs for as long as it is polled. Destinations that cannot be connected are told
    /// to `told`.
    pub async fn serve(
        self,
        carrier: Arc<dyn Carrier>,
        told: impl Fn(String) + Clone + Send + 'static,
    ) {
        let to = self.to;
        serve_each(self.listener, |tcp| {
            let (to, carrier, told) = (to.clone(), Arc::clone(&carrier), told.clone());
            async move {
                if let Err(e) = carry(tcp, &to, &carrier).await
                    && let Some(why) = refused(&to, &e)
                {
                    told(why);
                }
            }
        })
        .await;
    }
}
