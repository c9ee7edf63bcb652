//! The in-kernel path manager, over generic netlink (`linux/mptcp_pm.h`).
//!
//! Its endpoints and limits belong to a network namespace: the one of the thread
//! that calls [`PathManager::open`]. Calls return when the kernel has answered,
//! so they suit a thread inside a namespace as well as an asynchronous program.

mod endpoint;

pub use endpoint::{Endpoint, EndpointFlags};

use std::net::IpAddr;

use crate::error::{Error, Result};
use crate::nl::attr::{self, Attrs};
use crate::nl::genl::MptcpChannel;

// `MPTCP_PM_CMD_*` and `MPTCP_PM_ATTR_*` of linux/mptcp_pm.h.
const CMD_ADD_ADDR: u8 = 1;
const CMD_DEL_ADDR: u8 = 2;
const CMD_GET_ADDR: u8 = 3;
const CMD_FLUSH_ADDRS: u8 = 4;
const CMD_SET_LIMITS: u8 = 5;
const CMD_GET_LIMITS: u8 = 6;
const CMD_SET_FLAGS: u8 = 7;
const ATTR_ADDR: u16 = 1;
const ATTR_RCV_ADD_ADDRS: u16 = 2;
const ATTR_SUBFLOWS: u16 = 3;

/// The most that the kernel allows for either limit (`MPTCP_PM_ADDR_MAX`).
pub const LIMIT_MAX: u32 = 8;

/// How many subflows and announced addresses a connection may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Subflows beyond the first, 0 to [`LIMIT_MAX`]. The kernel starts with 2.
    pub subflows: u32,
    /// Addresses of the peer that are accepted, 0 to [`LIMIT_MAX`]. The kernel
    /// starts with 0.
    pub add_addr_accepted: u32,
}

impl Limits {
    /// As many as the kernel allows.
    pub const MAX: Self = Self {
        subflows: LIMIT_MAX,
        add_addr_accepted: LIMIT_MAX,
    };
}

/// The path manager of one network namespace.
#[derive(Debug)]
pub struct PathManager {
    channel: MptcpChannel,
}

impl PathManager {
    /// Opens the path manager of the calling thread's network namespace.
    ///
    /// # Errors
    /// [`Error::Lacking`] if the kernel has no MPTCP.
    pub fn open() -> Result<Self> {
        Ok(Self {
            channel: MptcpChannel::open()?,
        })
    }

    /// Adds an endpoint and says which id it has.
    ///
    /// Subflows for connections that exist already are opened at once.
    ///
    /// # Errors
    /// The kernel's refusal: an address or id that is there already, flags that
    /// exclude one another, no right to do so.
    pub fn add(&mut self, endpoint: &Endpoint) -> Result<u8> {
        let request = attr::emit(&[endpoint.emit(ATTR_ADDR)]);
        let attempted = || format!("add the MPTCP endpoint {endpoint}");
        self.channel
            .command(CMD_ADD_ADDR, &request, &attempted, &mut |_| Ok(()))?;
        if endpoint.id != 0 {
            return Ok(endpoint.id);
        }
        let added = self.find(endpoint.address, endpoint.port)?.ok_or_else(|| {
            Error::answer(attempted(), "the endpoint is not in the list afterwards")
        })?;
        Ok(added.id)
    }

    /// Deletes an endpoint. Its subflows are closed.
    ///
    /// # Errors
    /// The kernel's refusal, for example an id that does not exist.
    pub fn delete(&mut self, id: u8) -> Result<()> {
        let request = attr::emit(&[endpoint::select(ATTR_ADDR, id, None)]);
        self.channel.command(
            CMD_DEL_ADDR,
            &request,
            &|| format!("delete the MPTCP endpoint {id}"),
            &mut |_| Ok(()),
        )
    }

    /// Deletes every endpoint of the namespace.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn flush(&mut self) -> Result<()> {
        self.channel.command(
            CMD_FLUSH_ADDRS,
            &[],
            &|| "flush the MPTCP endpoints".to_owned(),
            &mut |_| Ok(()),
        )
    }

    /// Every endpoint of the namespace, by id.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn endpoints(&mut self) -> Result<Vec<Endpoint>> {
        let mut all = Vec::new();
        self.channel.dump(
            CMD_GET_ADDR,
            &|| "list the MPTCP endpoints".to_owned(),
            &mut |answer| {
                all.extend(endpoint_in(answer));
                Ok(())
            },
        )?;
        all.sort_by_key(|e| e.id);
        Ok(all)
    }

    /// The endpoint with this id, if there is one.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn get(&mut self, id: u8) -> Result<Option<Endpoint>> {
        Ok(self.endpoints()?.into_iter().find(|e| e.id == id))
    }

    /// The endpoint with this address and port, if there is one.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn find(&mut self, address: IpAddr, port: Option<u16>) -> Result<Option<Endpoint>> {
        Ok(self
            .endpoints()?
            .into_iter()
            .find(|e| e.address == address && e.port == port))
    }

    /// Makes an endpoint's subflows backups, or primaries again. Subflows that
    /// exist tell the peer with MP_PRIO (RFC 8684 3.3.8).
    ///
    /// # Errors
    /// No such endpoint, or the kernel's refusal.
    pub fn set_backup(&mut self, id: u8, backup: bool) -> Result<()> {
        let attempted = || {
            let to = if backup { "a backup" } else { "a primary" };
            format!("make the MPTCP endpoint {id} {to}")
        };
        // The request replaces the backup and the full-mesh flag: keep the latter.
        let Some(now) = self.get(id)? else {
            return Err(Error::Netlink {
                attempted: attempted(),
                kernel: None,
                source: std::io::Error::new(
                    std::io::ErrorKind::NotFound,
                    "no endpoint has this id",
                ),
            });
        };
        let mut flags = now.flags & (EndpointFlags::FULLMESH | EndpointFlags::BACKUP);
        flags.set(EndpointFlags::BACKUP, backup);
        let request = attr::emit(&[endpoint::select(ATTR_ADDR, id, Some(flags))]);
        self.channel
            .command(CMD_SET_FLAGS, &request, &attempted, &mut |_| Ok(()))
    }

    /// The limits of the namespace.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn limits(&mut self) -> Result<Limits> {
        let attempted = || "read the MPTCP limits".to_owned();
        let mut limits = None;
        self.channel
            .command(CMD_GET_LIMITS, &[], &attempted, &mut |answer| {
                let of = |kind| Attrs(answer).find(kind).and_then(attr::u32_of);
                limits = of(ATTR_SUBFLOWS).zip(of(ATTR_RCV_ADD_ADDRS)).map(
                    |(subflows, add_addr_accepted)| Limits {
                        subflows,
                        add_addr_accepted,
                    },
                );
                Ok(())
            })?;
        limits.ok_or_else(|| Error::answer(attempted(), "a limit is missing"))
    }

    /// Sets both limits.
    ///
    /// # Errors
    /// The kernel's refusal, for example a value above [`LIMIT_MAX`].
    pub fn set_limits(&mut self, limits: Limits) -> Result<()> {
        let request = attr::emit(&[
            attr::bytes(ATTR_SUBFLOWS, &limits.subflows.to_ne_bytes()),
            attr::bytes(ATTR_RCV_ADD_ADDRS, &limits.add_addr_accepted.to_ne_bytes()),
        ]);
        self.channel.command(
            CMD_SET_LIMITS,
            &request,
            &|| {
                format!(
                    "set the MPTCP limits to {} further subflows and {} accepted addresses (0 to {LIMIT_MAX} each)",
                    limits.subflows, limits.add_addr_accepted
                )
            },
            &mut |_| Ok(()),
        )
    }
}

fn endpoint_in(answer: &[u8]) -> Option<Endpoint> {
    Attrs(answer).find(ATTR_ADDR).and_then(Endpoint::parse)
}
