//! Families of addresses that a proxy reaches. A connection of a host is accepted before the proxy has
//! connected: a host that prefers IPv6, and a proxy without, would meet in connections that end.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use braid_mpquic::{Session, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::egress::Allowed;
use crate::wire;

/// Families that a proxy reaches for devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// IPv4.
    pub v4: bool,
    /// IPv6.
    pub v6: bool,
}

/// Bits of the answer.
const V4: u8 = 1;
const V6: u8 = 2;

impl Reach {
    /// Returns what this machine's routes, and `allowed`, let it reach now.
    pub(crate) fn of(allowed: &Allowed) -> Self {
        let listed = |v4: bool| allowed.networks.iter().any(|n| n.addr().is_ipv4() == v4);
        // Addresses of nobody, which default routes lead to.
        let v4 = Ipv4Addr::new(192, 0, 2, 1).into();
        let v6 = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into();
        let reaches = |is_v4, to| match allowed.internet {
            true => has_route(to),
            false => listed(is_v4),
        };
        Self {
            v4: reaches(true, v4),
            v6: reaches(false, v6),
        }
    }

    /// Asks the proxy of a session.
    ///
    /// # Errors
    /// The session's; or the proxy does not know the question.
    pub async fn ask(session: &Session) -> io::Result<Self> {
        let mut stream = session.open().await?;
        wire::request_reach(&mut stream).await?;
        stream.shutdown().await?;
        let bits = stream.read_u8().await?;
        Ok(Self {
            v4: bits & V4 != 0,
            v6: bits & V6 != 0,
        })
    }

    pub(crate) async fn answer(self, stream: &mut Stream) -> io::Result<()> {
        let bits = V4 * u8::from(self.v4) + V6 * u8::from(self.v6);
        stream.write_u8(bits).await?;
        stream.shutdown().await
    }
}

/// Whether a route leads to an address. Nothing is sent.
fn has_route(to: IpAddr) -> bool {
    let any: IpAddr = match to {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    UdpSocket::bind((any, 0)).is_ok_and(|udp| udp.connect((to, 9)).is_ok())
}
