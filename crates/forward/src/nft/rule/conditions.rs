//! Conditions that a packet is to meet.

use ipnet::IpNet;
use netlink_packet_netfilter::nftables::{Expressions, Lookup, Meta, MetaKey, Operator, Register};

use super::{
    ETHERNET, FLOW_NUMBER, LINK_HEADER, Layer4, NETWORK_HEADER, NFPROTO_IPV4, NFPROTO_IPV6, Rule,
    TRANSPORT_HEADER, in_mark, octets, padded,
};
use crate::nft::attributes::{number, value};

/// Where a destination stands in the header of IPv4 and in that of IPv6, and its length.
const DESTINATION_V4: (u32, u32) = (16, 4);
const DESTINATION_V6: (u32, u32) = (24, 16);

impl Rule {
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

    /// Packets of the protocol of this number (IANA).
    #[must_use]
    pub fn protocol_number(self, number: u8) -> Self {
        self.text(format!("meta l4proto {number}")).meta(
            MetaKey::L4Proto,
            Operator::Equal,
            vec![number],
        )
    }

    /// Packets to the ports from `first` to `last`, of a protocol that has ports: that is asked
    /// before.
    #[must_use]
    pub fn to_ports(self, first: u16, last: u16) -> Self {
        // Operator: within the range.
        let range = vec![
            number(1, 1),
            number(2, 0),
            value(3, first.to_be_bytes().into()),
            value(4, last.to_be_bytes().into()),
        ];
        self.text(format!("th dport {first}-{last}"))
            .payload(TRANSPORT_HEADER, 2, 2)
            .expression("range", Expressions::Unknown(range))
    }

    /// Packets from the interface with this address, of Ethernet (EUI-48).
    #[must_use]
    pub fn from_mac(self, mac: [u8; 6]) -> Self {
        let octets = mac.map(|o| format!("{o:02x}"));
        self.meta(
            MetaKey::Iftype,
            Operator::Equal,
            ETHERNET.to_ne_bytes().into(),
        )
        .text(format!("ether saddr {}", octets.join(":")))
        .payload(LINK_HEADER, 6, 6)
        .compare(Operator::Equal, mac.into())
    }

    /// Packets of sockets of this machine that a user has, by its number (uid).
    #[must_use]
    pub fn of_user(self, uid: u32) -> Self {
        self.text(format!("meta skuid {uid}")).meta(
            MetaKey::SocketUserId,
            Operator::Equal,
            uid.to_ne_bytes().into(),
        )
    }

    /// Packets of sockets of this machine that were made in a control group (version 2), or in one below
    /// it: by its number, and its depth below the uppermost.
    #[must_use]
    pub fn of_group(self, id: u64, level: u32) -> Self {
        // Key: the ancestor of that level; result.
        let lookup = vec![number(1, 3), number(2, 1), number(3, level)];
        self.text(format!("socket cgroupv2 level {level} {id}"))
            .expression("socket", Expressions::Unknown(lookup))
            .compare(Operator::Equal, id.to_ne_bytes().into())
    }

    /// Packets of a family with this code point of differentiated services, up to 63.
    #[must_use]
    pub fn dscp(self, v4: bool, dscp: u8) -> Self {
        let rule = self.family(v4);
        match v4 {
            // The upper bits of the second byte.
            true => rule
                .text(format!("ip dscp {dscp}"))
                .payload(NETWORK_HEADER, 1, 1)
                .mask(vec![0xfc])
                .compare(Operator::Equal, vec![dscp << 2]),
            // Behind the version.
            false => rule
                .text(format!("ip6 dscp {dscp}"))
                .payload(NETWORK_HEADER, 0, 2)
                .mask(vec![0x0f, 0xc0])
                .compare(Operator::Equal, (u16::from(dscp) << 6).to_be_bytes().into()),
        }
    }

    /// Packets of connections that a transparent socket of this machine has.
    #[must_use]
    pub fn of_transparent_socket(self) -> Self {
        // Key: transparent; result.
        let lookup = vec![number(1, 0), number(2, 1)];
        self.text("socket transparent 1")
            .expression("socket", Expressions::Unknown(lookup))
            .compare(Operator::Equal, vec![1])
    }

    /// Packets, both ways, of flows that have this number in the upper byte of their mark
    /// ([`Rule::number_flow`]).
    #[must_use]
    pub fn of_flow(self, of: u8) -> Self {
        self.text(format!("ct mark & {FLOW_NUMBER:#x} == {:#x}", in_mark(of)))
            .flow_mark()
            .mask(FLOW_NUMBER.to_ne_bytes().into())
            .compare(Operator::Equal, in_mark(of).to_ne_bytes().into())
    }

    /// Packets with a mark of which the bits in `mask` are these.
    #[must_use]
    pub fn marked_within(self, mark: u32, mask: u32) -> Self {
        let load = vec![
            Meta::DestinationRegister(Register::Reg1),
            Meta::Key(MetaKey::Mark),
        ];
        self.text(format!("meta mark & {mask:#x} == {mark:#x}"))
            .expression("meta", Expressions::Meta(load))
            .mask(mask.to_ne_bytes().into())
            .compare(Operator::Equal, mark.to_ne_bytes().into())
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
        self.address("daddr", net, [DESTINATION_V4.0, DESTINATION_V6.0])
    }

    /// Packets to one of the addresses of a set, which is of IPv4 or of IPv6.
    #[must_use]
    pub fn to_one_of(self, set: &str, v4: bool) -> Self {
        let (family, (offset, length)) = match v4 {
            true => ("ip", DESTINATION_V4),
            false => ("ip6", DESTINATION_V6),
        };
        let lookup = vec![
            Lookup::Set(set.to_owned()),
            Lookup::SourceRegister(Register::Reg1),
        ];
        self.family(v4)
            .text(format!("{family} daddr @{set}"))
            .payload(NETWORK_HEADER, offset, length)
            .expression("lookup", Expressions::Lookup(lookup))
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

    /// Packets that no route leads out, by their mark.
    #[must_use]
    pub fn unrouted(self) -> Self {
        // Flags: by the destination and the mark; result: the index of the interface, 0 for none.
        let lookup = vec![number(1, 1), number(2, 1), number(3, 6)];
        self.text("fib daddr . mark oif missing")
            .expression("fib", Expressions::Unknown(lookup))
            .compare(Operator::Equal, vec![0; 4])
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
}
