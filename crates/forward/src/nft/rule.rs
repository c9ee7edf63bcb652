//! Rules: conditions that a packet is to meet, then what is done with it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use netlink_packet_core::{DefaultNla, NLA_F_NESTED};
use netlink_packet_netfilter::nftables::{
    Bitwise, Cmp, DataAttribute, ExpressionAttribute, Expressions, Immediate, ListAttribute, Meta,
    MetaKey, Operator, Payload, Register, RuleAttribute, Verdict, VerdictAttribute,
};

// include/uapi/linux/netfilter.h, .../nf_tables.h: what the message crate has no names for.
const NF_DROP: u32 = 0;
const NF_ACCEPT: u32 = 1;
const NETWORK_HEADER: u32 = 1;
const TRANSPORT_HEADER: u32 = 2;
const NFPROTO_IPV4: u8 = 2;
const NFPROTO_IPV6: u8 = 10;

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
        let bits = vec![
            Bitwise::SourceRegister(Register::Reg1),
            Bitwise::DestinationRegister(Register::Reg1),
            // Of a register: at most 16.
            Bitwise::Length(u32::try_from(mask.len()).unwrap_or(u32::MAX)),
            Bitwise::Mask(DataAttribute::Value(mask)),
            Bitwise::Xor(DataAttribute::Value(zeros)),
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

    /// Packets that arrive on an interface.
    #[must_use]
    pub fn arriving_on(self, interface: &str) -> Self {
        self.text(format!("iifname \"{interface}\"")).meta(
            MetaKey::Iifname,
            Operator::Equal,
            padded(interface),
        )
    }

    /// Packets that leave by another interface than this.
    #[must_use]
    pub fn not_leaving_by(self, interface: &str) -> Self {
        self.text(format!("oifname != \"{interface}\"")).meta(
            MetaKey::Oifname,
            Operator::NotEqual,
            padded(interface),
        )
    }

    /// Packets that leave by an interface.
    #[must_use]
    pub fn leaving_by(self, interface: &str) -> Self {
        self.text(format!("oifname \"{interface}\"")).meta(
            MetaKey::Oifname,
            Operator::Equal,
            padded(interface),
        )
    }

    /// Packets of IPv4 or of IPv6.
    #[must_use]
    pub fn family(self, v4: bool) -> Self {
        let (text, number) = match v4 {
            true => ("meta nfproto ipv4", NFPROTO_IPV4),
            false => ("meta nfproto ipv6", NFPROTO_IPV6),
        };
        self.text(text)
            .meta(MetaKey::Nfproto, Operator::Equal, vec![number])
    }

    /// Packets of a protocol.
    #[must_use]
    pub fn protocol(self, protocol: Layer4) -> Self {
        let text = match protocol {
            Layer4::Tcp => "meta l4proto tcp",
            Layer4::Udp => "meta l4proto udp",
        };
        let number = vec![protocol.number()];
        self.text(text)
            .meta(MetaKey::L4Proto, Operator::Equal, number)
    }

    /// Packets of a protocol to a port.
    #[must_use]
    pub fn to_port(self, protocol: Layer4, port: u16) -> Self {
        self.protocol(protocol)
            .text(format!("th dport {port}"))
            .payload(TRANSPORT_HEADER, 2, 2)
            .compare(Operator::Equal, port.to_be_bytes().into())
    }

    /// Packets to one of the addresses of a network, of its family alone.
    #[must_use]
    pub fn to(self, net: IpNet) -> Self {
        self.address("daddr", net, [16, 24])
    }

    /// Packets from one of the addresses of a network, of its family alone.
    #[must_use]
    pub fn from(self, net: IpNet) -> Self {
        self.address("saddr", net, [12, 8])
    }

    /// `at`: where the address stands in the header of IPv4, and in that of IPv6.
    fn address(self, word: &str, net: IpNet, at: [u32; 2]) -> Self {
        let (family, offset) = match net {
            IpNet::V4(_) => ("ip", at[0]),
            IpNet::V6(_) => ("ip6", at[1]),
        };
        let address = octets(net.network());
        // Of an address: 4 or 16.
        let length = u32::try_from(address.len()).unwrap_or(u32::MAX);
        let rule = self
            .family(matches!(net, IpNet::V4(_)))
            .text(format!("{family} {word} {net}"))
            .payload(NETWORK_HEADER, offset, length);
        let rule = match net.prefix_len() == net.max_prefix_len() {
            true => rule,
            false => rule.mask(octets(net.netmask())),
        };
        rule.compare(Operator::Equal, address)
    }

    /// Packets to an address of this machine.
    #[must_use]
    pub fn to_this_machine(self) -> Self {
        // Flags: by the destination; result: its type, which is to be RTN_LOCAL.
        let lookup = vec![number(1, 1), number(2, 3), number(3, 2)];
        self.text("fib daddr type local")
            .expression("fib", Expressions::Unknown(lookup))
            .compare(Operator::Equal, 2_u32.to_ne_bytes().into())
    }

    /// Packets to destinations that this machine's routes lead to by an interface.
    #[must_use]
    pub fn routed_by(self, interface: &str) -> Self {
        // Flags: by the destination; result: the name of the interface.
        let lookup = vec![number(1, 1), number(2, 2), number(3, 2)];
        self.text(format!("fib daddr oifname \"{interface}\""))
            .expression("fib", Expressions::Unknown(lookup))
            .compare(Operator::Equal, padded(interface))
    }

    /// Packets to multicast or broadcast addresses, which stay on their link.
    #[must_use]
    pub fn to_many(self) -> Self {
        // As meta pkttype: PACKET_HOST is 0.
        self.text("meta pkttype != host")
            .meta(MetaKey::PacketType, Operator::NotEqual, vec![0])
    }

    /// Packets with this mark.
    #[must_use]
    pub fn marked(self, mark: u32) -> Self {
        self.text(format!("meta mark {mark:#x}")).meta(
            MetaKey::Mark,
            Operator::Equal,
            mark.to_ne_bytes().into(),
        )
    }

    /// Packets of connections that have begun the other way, and what belongs to these.
    #[must_use]
    pub fn established(self) -> Self {
        // Bits of the state: established, related.
        let load = vec![number(1, 1), number(2, 0)];
        self.text("ct state established,related")
            .expression("ct", Expressions::Unknown(load))
            .mask(6_u32.to_ne_bytes().into())
            .compare(Operator::NotEqual, vec![0; 4])
    }

    /// Counts packets and bytes.
    #[must_use]
    pub fn counted(self) -> Self {
        self.text("counter")
            .expression("counter", Expressions::Unknown(vec![]))
    }

    /// Gives packets a mark.
    #[must_use]
    pub fn mark(self, mark: u32) -> Self {
        let store = vec![
            Meta::Key(MetaKey::Mark),
            Meta::SourceRegister(Register::Reg1),
        ];
        self.text(format!("meta mark set {mark:#x}"))
            .immediate(
                Register::Reg1,
                DataAttribute::Value(mark.to_ne_bytes().into()),
            )
            .expression("meta", Expressions::Meta(store))
    }

    /// Hands packets of a family and a protocol to the socket at a port of the loopback, whatever
    /// their destination (TPROXY). Without such a socket the rule is not met.
    #[must_use]
    pub fn to_socket(self, v4: bool, protocol: Layer4, port: u16) -> Self {
        let (text, family, address): (_, _, IpAddr) = match v4 {
            true => ("ip", NFPROTO_IPV4, Ipv4Addr::LOCALHOST.into()),
            false => ("ip6", NFPROTO_IPV6, Ipv6Addr::LOCALHOST.into()),
        };
        // Registers of the address and of the port.
        let tproxy = vec![number(1, family.into()), number(2, 1), number(3, 2)];
        let port = port.to_be_bytes();
        self.family(v4)
            .protocol(protocol)
            .text(format!("tproxy {text} to :{}", u16::from_be_bytes(port)))
            .immediate(Register::Reg1, DataAttribute::Value(octets(address)))
            .immediate(Register::Reg2, DataAttribute::Value(port.into()))
            .expression("tproxy", Expressions::Unknown(tproxy))
    }

    /// Gives packets the address of the interface by which they leave as their source.
    #[must_use]
    pub fn masquerade(self) -> Self {
        self.text("masquerade")
            .expression("masq", Expressions::Unknown(vec![]))
    }

    /// Accepts packets in this chain.
    #[must_use]
    pub fn accept(self) -> Self {
        self.verdict(Verdict::Other(NF_ACCEPT), "accept")
    }

    /// Drops packets.
    #[must_use]
    pub fn drop(self) -> Self {
        self.verdict(Verdict::Other(NF_DROP), "drop")
    }

    /// Resets the connections that packets belong to, which are TCP's by a condition before.
    #[must_use]
    pub fn reset(self) -> Self {
        self.text("reject with tcp reset")
            .expression("reject", Expressions::Unknown(vec![number(1, 1)]))
    }

    /// Refuses packets: their senders are told that this is prohibited (ICMP).
    #[must_use]
    pub fn prohibit(self) -> Self {
        let code = DefaultNla::new(2, vec![3]);
        self.text("reject with icmpx admin-prohibited")
            .expression("reject", Expressions::Unknown(vec![number(1, 2), code]))
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

/// Attribute with a number in network order.
fn number(kind: u16, value: u32) -> DefaultNla {
    debug_assert_eq!(kind & NLA_F_NESTED, 0);
    DefaultNla::new(kind, value.to_be_bytes().into())
}

fn padded(interface: &str) -> Vec<u8> {
    let mut name = interface.as_bytes().to_vec();
    name.resize(NAME, 0);
    name
}

fn octets(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => ip.octets().into(),
        IpAddr::V6(ip) => ip.octets().into(),
    }
}
