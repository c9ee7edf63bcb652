//! Statements: what is done with packets that have met the conditions of a rule.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::DefaultNla;
use netlink_packet_netfilter::nftables::{
    DataAttribute, Expressions, Meta, MetaKey, Register, Verdict,
};

use super::{
    COUNTER, CT_MARK, FLOW_NUMBER, Layer4, NF_ACCEPT, NF_DROP, NFPROTO_IPV4, NFPROTO_IPV6, Rule,
    in_mark, octets,
};
use crate::nft::attributes::{number, text};

impl Rule {
    /// Counts packets and bytes.
    #[must_use]
    pub fn counted(self) -> Self {
        self.text("counter")
            .expression("counter", Expressions::Unknown(vec![]))
    }

    /// Counts packets and bytes in the counter of this name ([`Counter`](crate::nft::Counter)).
    #[must_use]
    pub fn counted_as(self, name: &str) -> Self {
        let counter = vec![number(1, COUNTER), text(2, name)];
        self.text(format!("counter name \"{name}\""))
            .expression("objref", Expressions::Unknown(counter))
    }

    /// Puts a number into the upper byte of the mark of the flow; what else the mark has stays.
    #[must_use]
    pub fn number_flow(self, number_of: u8) -> Self {
        let store = vec![number(2, CT_MARK), number(4, 1)];
        let (mark, rest) = (in_mark(number_of), !FLOW_NUMBER);
        self.text(format!("ct mark set ct mark & {rest:#x} | {mark:#x}"))
            .flow_mark()
            .bits(rest.to_ne_bytes().into(), mark.to_ne_bytes().into())
            .expression("ct", Expressions::Unknown(store))
    }

    /// Asks the rules of a chain, and goes on here where none of these decides.
    #[must_use]
    pub fn jump(self, chain: &str) -> Self {
        self.lead_to(Verdict::Jump, "jump", chain)
    }

    /// Goes back to where the chain was asked ([`Rule::jump`]).
    #[must_use]
    pub fn back(self) -> Self {
        self.verdict(Verdict::Return, "return")
    }

    /// Goes on with the rules of a chain, and does not come back.
    #[must_use]
    pub fn goto(self, chain: &str) -> Self {
        self.lead_to(Verdict::Goto, "goto", chain)
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
}
