//! Carrier `direct`: connections of plain TCP from the device itself, by one access or as the
//! system's routes say.

use std::io;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{Carrier, Connection};
use crate::dial;
use crate::tcp::Tcp;
use crate::wire::Target;

/// Carrier past the bond.
#[derive(Clone, Debug, Default)]
pub struct Direct {
    /// Name of the interface that connections leave by; absent: as the routes say.
    pub interface: Option<String>,
}

impl Carrier for Direct {
    fn connect(&self, to: &Target) -> BoxFuture<'static, io::Result<Box<dyn Connection>>> {
        let (interface, to) = (self.interface.clone(), to.clone());
        async move {
            let addresses = dial::resolve(&to).await?;
            let tcp = dial::connect(&addresses, interface.as_deref()).await?;
            let connection: Box<dyn Connection> = Box::new(Tcp::new(tcp)?);
            Ok(connection)
        }
        .boxed()
    }
}
