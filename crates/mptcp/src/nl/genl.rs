//! Generic netlink: finding the `mptcp_pm` family and talking to it.

use netlink_packet_core::Emitable;
use netlink_packet_generic::constants::GENL_ID_CTRL;
use netlink_packet_generic::ctrl::nlas::{GenlCtrlAttrs, McastGrpAttrs};
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_packet_generic::{GenlHeader, GenlMessage};

use super::Channel;
use crate::error::{Error, Result};
use crate::support;

/// The family that RFC 8684's Linux implementation is managed with.
const FAMILY: &str = "mptcp_pm";
const VERSION: u8 = 1;
const GENL_HEADER_LEN: usize = 4;

/// A channel to the kernel's MPTCP path manager.
#[derive(Debug)]
pub(crate) struct MptcpChannel {
    channel: Channel,
    family: u16,
    groups: Vec<(String, u32)>,
}

impl MptcpChannel {
    pub(crate) fn open() -> Result<Self> {
        let mut channel = Channel::open(
            netlink_sys::protocols::NETLINK_GENERIC,
            "the MPTCP path manager",
        )?;
        let (family, groups) = resolve(&mut channel).map_err(|e| match e.raw_os_error() {
            Some(libc::ENOENT) => support::no_mptcp(),
            _ => e,
        })?;
        Ok(Self {
            channel,
            family,
            groups,
        })
    }

    /// The id of a multicast group of the family.
    pub(crate) fn group(&self, name: &str) -> Option<u32> {
        self.groups
            .iter()
            .find(|(n, _)| n == name)
            .map(|&(_, id)| id)
    }

    /// Runs a command; `each` is given the attributes of every answer.
    pub(crate) fn command(
        &mut self,
        cmd: u8,
        attributes: &[u8],
        attempted: &dyn Fn() -> String,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let body = body(cmd, attributes);
        self.channel
            .request(self.family, &body, attempted, &mut |b| {
                each(without_header(b))
            })
    }

    /// Runs a command that answers with a table.
    pub(crate) fn dump(
        &mut self,
        cmd: u8,
        attempted: &dyn Fn() -> String,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let body = body(cmd, &[]);
        self.channel.dump(self.family, &body, attempted, &mut |b| {
            each(without_header(b))
        })
    }
}

fn body(cmd: u8, attributes: &[u8]) -> Vec<u8> {
    let mut body = vec![0; GENL_HEADER_LEN];
    GenlHeader {
        cmd,
        version: VERSION,
    }
    .emit(&mut body);
    body.extend_from_slice(attributes);
    body
}

fn without_header(answer: &[u8]) -> &[u8] {
    answer.get(GENL_HEADER_LEN..).unwrap_or_default()
}

fn resolve(channel: &mut Channel) -> Result<(u16, Vec<(String, u32)>)> {
    use netlink_packet_core::ParseableParametrized;
    let attempted = || format!("look up the generic netlink family {FAMILY}");
    let ask = GenlMessage::from_payload(GenlCtrl {
        cmd: GenlCtrlCmd::GetFamily,
        nlas: vec![GenlCtrlAttrs::FamilyName(FAMILY.to_owned())],
    });
    let mut body = vec![0; ask.buffer_len()];
    ask.emit(&mut body);
    let mut family = None;
    let mut groups = Vec::new();
    channel.request(GENL_ID_CTRL, &body, &attempted, &mut |answer| {
        let answer = GenlMessage::<GenlCtrl>::parse_with_param(answer, GENL_ID_CTRL)
            .map_err(|e| Error::answer(attempted(), e))?;
        for attribute in answer.payload.nlas {
            match attribute {
                GenlCtrlAttrs::FamilyId(id) => family = Some(id),
                GenlCtrlAttrs::McastGroups(all) => groups.extend(all.iter().filter_map(group)),
                _ => {}
            }
        }
        Ok(())
    })?;
    match family {
        Some(id) => Ok((id, groups)),
        None => Err(Error::answer(attempted(), "no family id in it")),
    }
}

fn group(attributes: &Vec<McastGrpAttrs>) -> Option<(String, u32)> {
    let (mut name, mut id) = (None, None);
    for attribute in attributes {
        match attribute {
            McastGrpAttrs::Name(n) => name = Some(n.clone()),
            McastGrpAttrs::Id(i) => id = Some(*i),
        }
    }
    Some((name?, id?))
}
