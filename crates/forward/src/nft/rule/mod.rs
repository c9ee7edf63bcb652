//! Rules: conditions that a packet is to meet, then what is done with it.

mod conditions;
mod statements;

use std::fmt;
use std::net::IpAddr;

use netlink_packet_netfilter::nftables::{
    Bitwise, Cmp, DataAttribute, ExpressionAttribute, Expressions, Immediate, ListAttribute, Meta,
    MetaKey, Operator, Payload, Register, RuleAttribute, Verdict, VerdictAttribute,
};

use super::attributes::number;

// include/uapi/linux/netfilter.h, .../nf_tables.h: what the message crate has no names for.
const NF_DROP: u32 = 0;
const NF_ACCEPT: u32 = 1;
const LINK_HEADER: u32 = 0;
const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;
/// Key of the expression `ct` for the mark of a flow (NFT_CT_MARK).
const CT_MARK: u32 = 3;
/// Type of interfaces of Ethernet (ARPHRD_ETHER).
const ETHERNET: u16 = 1;
/// Object that counts (NFT_OBJECT_COUNTER).
pub(super) const COUNTER: u32 = 1;
const NFPROTO_IPV4: u8 = 2;
const NFPROTO_IPV6: u8 = 10;

/// Bits of a flow's mark that have the number of the flow's rule; all others are somebody else's.
pub(crate) const FLOW_NUMBER: u32 = 0xff00_0000;

/// Returns the number of a rule as it stands in the mark of a flow.
pub(crate) fn in_mark(number: u8) -> u32 {
    u32::from(number) << 24
}

/// Length of an interface's name, padded with zeros (IFNAMSIZ).
const NAME: usize = 16;

/// Protocol above IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer4 {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Layer4 {
    fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }
}

/// Rule, made of conditions in the order in which they are asked, and of statements.
///
/// It is written down beside as text, in the words of `nft`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    expressions: Vec<ListAttribute<ExpressionAttribute>>,
    text: Vec<String>,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text.join(" "))
    }
}

impl Rule {
    /// Makes a rule that every packet meets, and that does nothing.
    pub fn new() -> Self {
        Self::default()
    }

    fn expression(mut self, name: &str, data: Expressions) -> Self {
        self.expressions.push(ListAttribute::Element(vec![
            ExpressionAttribute::Name(name.into()),
            ExpressionAttribute::Data(data),
        ]));
        self
    }

    fn text(mut self, text: impl Into<String>) -> Self {
        self.text.push(text.into());
        self
    }

    /// Loads a property of the packet, and compares it.
    fn meta(self, key: MetaKey, compare: Operator, value: Vec<u8>) -> Self {
        let load = vec![Meta::DestinationRegister(Register::Reg1), Meta::Key(key)];
        self.expression("meta", Expressions::Meta(load))
            .compare(compare, value)
    }

    fn compare(self, operator: Operator, value: Vec<u8>) -> Self {
        let compare = vec![
            Cmp::SourceRegister(Register::Reg1),
            Cmp::Op(operator),
            Cmp::Data(DataAttribute::Value(value)),
        ];
        self.expression("cmp", Expressions::Cmp(compare))
    }

    fn payload(self, base: u32, offset: u32, length: u32) -> Self {
        let load = vec![
            Payload::DestinationRegister(Register::Reg1),
            Payload::Base(base),
            Payload::Offset(offset),
            Payload::Len(length),
        ];
        self.expression("payload", Expressions::Payload(load))
    }

    fn mask(self, mask: Vec<u8>) -> Self {
        let zeros = vec![0; mask.len()];
        self.bits(mask, zeros)
    }

    /// Clears the bits that `mask` has not, then turns those of `xor` over.
    fn bits(self, mask: Vec<u8>, xor: Vec<u8>) -> Self {
        let bits = vec![
            Bitwise::SourceRegister(Register::Reg1),
            Bitwise::DestinationRegister(Register::Reg1),
            // Of a register: at most 16.
            Bitwise::Length(u32::try_from(mask.len()).unwrap_or(u32::MAX)),
            Bitwise::Mask(DataAttribute::Value(mask)),
            Bitwise::Xor(DataAttribute::Value(xor)),
        ];
        self.expression("bitwise", Expressions::Bitwise(bits))
    }

    fn immediate(self, register: Register, data: DataAttribute) -> Self {
        let put = vec![
            Immediate::DestinationRegister(register),
            Immediate::Data(data),
        ];
        self.expression("immediate", Expressions::Immediate(put))
    }

    fn verdict(self, verdict: Verdict, text: &str) -> Self {
        let code = vec![VerdictAttribute::Code(verdict)];
        self.text(text)
            .immediate(Register::Verdict, DataAttribute::Verdict(code))
    }

    /// Goes on in another chain of the table.
    fn lead_to(self, verdict: Verdict, word: &str, chain: &str) -> Self {
        let to = vec![
            VerdictAttribute::Code(verdict),
            VerdictAttribute::Chain(chain.to_owned()),
        ];
        self.text(format!("{word} {chain}"))
            .immediate(Register::Verdict, DataAttribute::Verdict(to))
    }

    /// Loads the mark of the packet's flow.
    fn flow_mark(self) -> Self {
        let load = vec![number(1, 1), number(2, CT_MARK)];
        self.expression("ct", Expressions::Unknown(load))
    }

    /// Lists the attributes of the message that adds it.
    pub(super) fn attributes(&self, table: &str, chain: &str) -> Vec<RuleAttribute> {
        vec![
            RuleAttribute::Table(table.into()),
            RuleAttribute::Chain(chain.into()),
            RuleAttribute::Expressions(self.expressions.clone()),
        ]
    }
}

fn padded(interface: &str) -> Vec<u8> {
    let mut name = interface.as_bytes().to_vec();
    name.resize(NAME, 0);
    name
}

pub(super) fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().into(),
        IpAddr::V6(ip) => ip.octets().into(),
    }
}
