//! The end that devices connect to.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use noq_proto::{EndpointConfig, HashedConnectionIdGenerator, ServerConfig};
use ring::hmac;

use super::core::{End, Port, Shared};
use super::driver::Driver;
use super::session::Session;
use super::socket::Socket;
use crate::{Access, Error, Host, Options};

/// A proxy that takes sessions in.
pub struct Proxy {
    shared: Shared,
    addresses: Vec<SocketAddr>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy")
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

impl Proxy {
    /// Listens at each of the addresses. `accesses` are those of the devices, by the
    /// addresses or prefixes that lead over them. A task of the calling runtime drives
    /// all sessions; sockets belong to the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`Error::Io`], and what [`Host::listen`] refuses.
    pub fn listen(
        at: &[SocketAddr],
        tls: ServerConfig,
        options: &Options,
        accesses: Vec<Access>,
    ) -> Result<Self, Error> {
        let mut host = Host::new(endpoint(options.reset_key));
        host.listen(tls, options, accesses)?;
        let mut ports = Vec::new();
        let mut addresses = Vec::new();
        for at in at {
            let wrong = |source| Error::Io {
                attempted: format!("listen at UDP {at}"),
                source,
            };
            let socket = Socket::bind(*at, None).map_err(wrong)?;
            addresses.push(socket.local().map_err(wrong)?);
            ports.push(Some(Port::new(socket)));
        }
        let shared = Shared::new(host, End::Proxy, ports);
        let driver = Driver::new(shared.clone()).map_err(|source| Error::Io {
            attempted: "make a timer".to_owned(),
            source,
        })?;
        tokio::spawn(driver);
        Ok(Self { shared, addresses })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The next session.
    ///
    /// # Errors
    /// [`Error::Io`]: the task that drives it has ended.
    pub async fn accept(&self) -> Result<Session, Error> {
        let id = poll_fn(|cx| self.shared.lock().poll_session(cx)).await?;
        Ok(Session::new(self.shared.clone(), id))
    }

    /// Takes no more sessions in, and closes all that there are: devices that connect again at
    /// once are not to do so here. [`Proxy::wait_idle`] gives them time to acknowledge it.
    pub fn stop(&self) {
        self.shared.lock().stop(Instant::now());
    }

    /// Waits until no connection is left: a program that ends sooner after a session was
    /// closed leaves the other end to find out by itself.
    pub async fn wait_idle(&self) {
        poll_fn(|cx| self.shared.lock().poll_idle(cx)).await;
    }

    /// Changes what later sessions begin with.
    ///
    /// # Errors
    /// As [`Proxy::listen`].
    pub fn set_options(&self, options: &Options, accesses: Vec<Access>) -> Result<(), Error> {
        self.shared.lock().host.set_options(options, accesses)
    }
}

/// Connection ids and reset tokens that are known again after another start.
fn endpoint(reset_key: Option<[u8; 32]>) -> EndpointConfig {
    let Some(key) = reset_key else {
        return EndpointConfig::default();
    };
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let ids = hmac::sign(&key, b"connection ids");
    let ids = ids.as_ref().first_chunk().copied().unwrap_or_default();
    let mut config = EndpointConfig::new(Arc::new(key));
    config.cid_generator(Arc::new(move || {
        Box::new(HashedConnectionIdGenerator::from_key(u64::from_be_bytes(
            ids,
        )))
    }));
    config
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let mut core = self.shared.lock();
        core.left = true;
        // Nobody takes these any more.
        for id in std::mem::take(&mut core.taken_in) {
            core.leave(id);
        }
        core.wake_driver();
    }
}

const _: fn() = || {
    fn shared_by_threads<T: Send + Sync>() {}
    shared_by_threads::<Arc<Proxy>>();
    shared_by_threads::<Session>();
};
