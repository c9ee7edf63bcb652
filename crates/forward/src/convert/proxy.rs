//! The proxy's end: a listener of Multipath TCP, whose connections say where to.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use braid_mptcp::Error;
use braid_mptcp::socket;
use ipnet::IpNet;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::cookie::Cookie;
use super::fast_open;
use super::message::{self, Element, Fault, HEADER, MPTCP};
use crate::dial;
use crate::egress::Allowed;
use crate::inbound::serve_each;
use crate::relay::relay;
use crate::tcp::Tcp;
use crate::wire::Refusal;

/// How long a device may take to say where to, and a connection to be made.
const PATIENCE: Duration = Duration::from_secs(10);
/// Connections that have not said where to, at most.
const BEGINNING: usize = 1024;

/// Settings of a converter.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Secret that requests have to carry.
    pub cookie: Cookie,
    /// Networks that devices connect from; empty: all.
    pub sources: Vec<IpNet>,
    /// Where it connects to.
    pub allowed: Arc<Allowed>,
}

/// Converter at one address of the proxy.
#[derive(Debug)]
pub struct Converter {
    listener: TcpListener,
    settings: Settings,
    beginning: Arc<Semaphore>,
}

/// Request of a device.
#[derive(Debug, PartialEq, Eq)]
enum Request {
    /// Connection to this destination.
    Connect(SocketAddr),
    /// Question for the TCP options that are known.
    Info,
}

impl Converter {
    /// Listens at an address.
    ///
    /// # Errors
    /// The kernel has no Multipath TCP; somebody else listens there.
    pub fn listen(at: SocketAddr, settings: Settings) -> Result<Self, Error> {
        let listener = socket::listen(at, true, None)?;
        let io = |source| Error::Io {
            attempted: format!("listen on {at}"),
            source,
        };
        listener.set_nonblocking(true).map_err(io)?;
        let listener = TcpListener::from_std(listener).map_err(io)?;
        fast_open::takes_data(&listener);
        Ok(Self {
            listener,
            settings,
            beginning: Arc::new(Semaphore::new(BEGINNING)),
        })
    }

    /// Serves connections for as long as it is polled.
    pub async fn serve(self) {
        let (settings, beginning) = (Arc::new(self.settings), self.beginning);
        serve_each(self.listener, |tcp| {
            let settings = Arc::clone(&settings);
            let begins = Arc::clone(&beginning).try_acquire_owned();
            async move {
                // Ends of connections are told to their own two ends.
                if let Ok(begins) = begins {
                    let _ = one(tcp, &settings, begins).await;
                }
            }
        })
        .await;
    }
}

async fn one(
    mut tcp: TcpStream,
    settings: &Settings,
    begins: OwnedSemaphorePermit,
) -> io::Result<()> {
    let from = tcp.peer_addr()?.ip().to_canonical();
    let connected = match timeout(PATIENCE, ask(&mut tcp, from, settings)).await {
        Ok(Ok(Ok(Request::Connect(to)))) => {
            let connected = timeout(PATIENCE, connect(to, &settings.allowed)).await;
            connected.unwrap_or(Err(Fault::Unreachable))
        }
        Ok(Ok(Ok(Request::Info))) => {
            let supported = [Element::Supported(vec![MPTCP, 0, 0, 0])];
            return reply(&mut tcp, &supported).await;
        }
        Ok(Ok(Err(fault))) => Err(fault),
        // It has gone, or says nothing.
        Ok(Err(e)) => return Err(e),
        Err(_) => return Ok(()),
    };
    drop(begins);
    match connected {
        Ok(mut far) => {
            reply(&mut tcp, &[]).await?;
            relay(&mut Tcp::new(tcp)?, &mut far).await
        }
        Err(fault) => reply(&mut tcp, &[Element::Error(fault)]).await,
    }
}

/// Reads what a connection asks for. What is wrong with it is answered, unless it comes from elsewhere.
async fn ask(
    tcp: &mut TcpStream,
    from: IpAddr,
    settings: &Settings,
) -> io::Result<Result<Request, Fault>> {
    if !settings.sources.is_empty() && !settings.sources.iter().any(|net| net.contains(&from)) {
        return Ok(Err(Fault::NotAuthorised));
    }
    let mut header = [0; HEADER];
    tcp.read_exact(&mut header).await?;
    let length = match message::read_header(header) {
        Ok(length) => length,
        Err(fault) => return Ok(Err(fault)),
    };
    let mut elements = vec![0; length];
    tcp.read_exact(&mut elements).await?;
    Ok(message::read_elements(&elements).and_then(|all| request(&all, &settings.cookie)))
}

/// Returns the request that elements make.
fn request(all: &[Element], cookie: &Cookie) -> Result<Request, Fault> {
    let mut cookies = all.iter().filter_map(|e| match e {
        Element::Cookie(given) => Some(given),
        _ => None,
    });
    let given = cookies.next().ok_or(Fault::MissingCookie)?;
    if !cookie.is(given) || cookies.next().is_some() {
        return Err(Fault::NotAuthorised);
    }
    let asked = all.iter().filter(|e| !matches!(e, Element::Cookie(_)));
    match asked.collect::<Vec<_>>()[..] {
        [Element::Info] => Ok(Request::Info),
        // RFC 8803 4.2.5: options that are not known are refused, not left out.
        [Element::Connect(_, options)] if !options.is_empty() => Err(Fault::UnsupportedOption),
        [Element::Connect(to, _)] if message::is_nowhere(to) => Err(Fault::Malformed),
        [Element::Connect(to, _)] => Ok(Request::Connect(*to)),
        _ => Err(Fault::UnsupportedMessage),
    }
}

async fn connect(to: SocketAddr, allowed: &Allowed) -> Result<Tcp, Fault> {
    let fault = |refusal| match refusal {
        Refusal::Forbidden => Fault::NotAuthorised,
        Refusal::Refused => Fault::Reset,
        Refusal::Unreachable | Refusal::Unknown => Fault::Unreachable,
    };
    let addresses = allowed.only(vec![to]).map_err(fault)?;
    let tcp = dial::connect(&addresses).await.and_then(Tcp::new);
    tcp.map_err(|e| fault(Refusal::of(&e)))
}

async fn reply(tcp: &mut TcpStream, elements: &[Element]) -> io::Result<()> {
    fast_open::established(tcp).await;
    let reply = message::write(elements).ok_or(io::ErrorKind::InvalidInput)?;
    tcp.write_all(&reply).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_a_cookie_and_one_destination() {
        let cookie = Cookie::new("0123456789abcdef").unwrap();
        let right = Element::Cookie(b"0123456789abcdef".to_vec());
        let wrong = Element::Cookie(b"0123456789abcdeF".to_vec());
        let to = |to: &str| Element::Connect(to.parse().unwrap(), vec![]);
        let connect = to("192.0.2.1:80");
        let with_options = Element::Connect("192.0.2.1:80".parse().unwrap(), vec![2, 4, 5, 180]);
        let at = "192.0.2.1:80".parse().unwrap();
        for (elements, wanted) in [
            (vec![&connect, &right], Ok(Request::Connect(at))),
            (vec![&right, &connect], Ok(Request::Connect(at))),
            (vec![&Element::Info, &right], Ok(Request::Info)),
            (vec![&connect], Err(Fault::MissingCookie)),
            (vec![], Err(Fault::MissingCookie)),
            (vec![&connect, &wrong], Err(Fault::NotAuthorised)),
            (vec![&connect, &right, &wrong], Err(Fault::NotAuthorised)),
            (vec![&right], Err(Fault::UnsupportedMessage)),
            (
                vec![&right, &connect, &connect],
                Err(Fault::UnsupportedMessage),
            ),
            (
                vec![&right, &connect, &Element::Unknown(99)],
                Err(Fault::UnsupportedMessage),
            ),
            (vec![&right, &with_options], Err(Fault::UnsupportedOption)),
            (vec![&right, &to("0.0.0.0:80")], Err(Fault::Malformed)),
            (vec![&right, &to("[::]:80")], Err(Fault::Malformed)),
            (vec![&right, &to("192.0.2.1:0")], Err(Fault::Malformed)),
        ] {
            let all: Vec<_> = elements.into_iter().cloned().collect();
            assert_eq!(request(&all, &cookie), wanted, "{all:?}");
        }
    }
}
