//! Inbound `dns`: questions to resolvers by UDP, to any address, which rules divert to sockets of the
//! loopback ([`crate::divert`]). Each is asked by TCP (RFC 7766) over a carrier of connections, where
//! packets cannot go over the bond. Whoever has asked need not know.

mod message;

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrStorage, recvmsg, setsockopt,
    sockopt,
};
use socket2::Type;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UdpSocket;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::{Ports, transparent};
use crate::answers::Answers;
use crate::carrier::Carrier;
use crate::wire::Target;

/// Bytes of the longest question that is taken: one has a name and little else.
const MAX_QUESTION: usize = 4096;
/// How long an answer may take: who asks by UDP asks again after 5 s at most.
const PATIENCE: Duration = Duration::from_secs(5);
/// Questions that are open, at most; others are lost, as on any way that is full.
const MAX_OPEN: usize = 512;

/// Sockets for questions of both families.
#[derive(Debug)]
pub struct Dns {
    v4: UdpSocket,
    /// Absent where the machine has no IPv6.
    v6: Option<UdpSocket>,
    ports: Ports,
    answers: Answers,
}

/// Question, from whom, and to which resolver.
struct Question {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

impl Dns {
    /// Opens sockets at free ports of the loopback, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel's refusal: it takes the capability CAP_NET_ADMIN.
    pub fn listen() -> io::Result<Self> {
        let (v4, v6, ports) = transparent::of_both_families(socket, UdpSocket::local_addr)?;
        let answers = Answers::default();
        Ok(Self {
            v4,
            v6,
            ports,
            answers,
        })
    }

    /// Tells of answers before they are given.
    #[must_use]
    pub fn with_answers(self, answers: Answers) -> Self {
        Self { answers, ..self }
    }

    /// Returns where they are.
    pub fn ports(&self) -> Ports {
        self.ports
    }

    /// Answers questions for as long as it is polled.
    pub async fn serve(self, carrier: Arc<dyn Carrier>) {
        let open = Arc::new(Semaphore::new(MAX_OPEN));
        let serve_one = |at| serve_one(at, &carrier, &open, &self.answers);
        let v4 = serve_one(&self.v4);
        match &self.v6 {
            Some(v6) => drop(tokio::join!(v4, serve_one(v6))),
            None => v4.await,
        }
    }
}

fn socket(at: IpAddr) -> io::Result<UdpSocket> {
    let socket = transparent::open(SocketAddr::new(at, 0), Type::DGRAM)?;
    match at {
        IpAddr::V4(_) => setsockopt(&socket, sockopt::Ipv4OrigDstAddr, &true)?,
        IpAddr::V6(_) => setsockopt(&socket, sockopt::Ipv6OrigDstAddr, &true)?,
    }
    UdpSocket::from_std(socket.into())
}

async fn serve_one(
    socket: &UdpSocket,
    carrier: &Arc<dyn Carrier>,
    open: &Arc<Semaphore>,
    answers: &Answers,
) {
    loop {
        // An error is about one packet.
        let Ok(Some(question)) = socket
            .async_io(Interest::READABLE, || receive(socket))
            .await
        else {
            continue;
        };
        let Ok(permit) = Arc::clone(open).try_acquire_owned() else {
            continue;
        };
        let (carrier, answers) = (Arc::clone(carrier), answers.clone());
        tokio::spawn(async move {
            let _permit = permit;
            let asked = ask(&carrier, question.to, &question.bytes);
            if let Ok(Ok(answer)) = timeout(PATIENCE, asked).await {
                answers.tell(&answer);
                let answer = message::fit(&question.bytes, answer);
                // Whoever has asked may have gone.
                let _ = reply(&question, &answer);
            }
        });
    }
}

/// Reads a question; none where the packet is none.
fn receive(socket: &UdpSocket) -> io::Result<Option<Question>> {
    let mut bytes = vec![0; MAX_QUESTION];
    let mut space = nix::cmsg_space!(libc::sockaddr_in6);
    let (length, from, to) = {
        let mut all = [IoSliceMut::new(&mut bytes)];
        let fd = socket.as_raw_fd();
        let read = recvmsg::<SockaddrStorage>(fd, &mut all, Some(&mut space), MsgFlags::empty())?;
        let to = read.cmsgs()?.find_map(|c| match c {
            ControlMessageOwned::Ipv4OrigDstAddr(to) => {
                Some(SocketAddrV4::from(SockaddrIn::from(to)).into())
            }
            ControlMessageOwned::Ipv6OrigDstAddr(to) => {
                Some(SocketAddrV6::from(SockaddrIn6::from(to)).into())
            }
            _ => None,
        });
        let whole = !read.flags.contains(MsgFlags::MSG_TRUNC);
        let from = read.address.as_ref().and_then(address).filter(|_| whole);
        (read.bytes, from, to)
    };
    bytes.truncate(length);
    let is_question = message::is_question(&bytes);
    Ok(match (from, to) {
        (Some(from), Some(to)) if is_question => Some(Question { from, to, bytes }),
        _ => None,
    })
}

fn address(from: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = from.as_sockaddr_in().map(|a| SocketAddr::V4((*a).into()));
    v4.or_else(|| from.as_sockaddr_in6().map(|a| SocketAddr::V6((*a).into())))
}

/// Asks a resolver by TCP.
async fn ask(carrier: &Arc<dyn Carrier>, to: SocketAddr, question: &[u8]) -> io::Result<Vec<u8>> {
    let mut resolver = carrier.connect(&Target::from(to)).await?;
    let length = u16::try_from(question.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let message = [&length.to_be_bytes()[..], question].concat();
    resolver.write_all(&message).await?;
    resolver.flush().await?;
    let length = resolver.read_u16().await?;
    let mut answer = vec![0; length.into()];
    resolver.read_exact(&mut answer).await?;
    resolver.finish()?;
    Ok(answer)
}

/// Sends an answer from the address that was asked.
fn reply(to: &Question, answer: &[u8]) -> io::Result<()> {
    let socket = transparent::open(to.to, Type::DGRAM)?;
    socket.send_to(answer, &to.from.into()).map(drop)
}
