//! Values of traffic descriptors, each read from text and written as text.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

/// Address of an interface of Ethernet (EUI-48).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mac(pub [u8; 6]);

impl FromStr for Mac {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let wrong = || format!("\"{s}\" is no MAC address, such as 02:00:5e:10:00:01");
        let mut octets = [0; 6];
        let mut parts = s.split([':', '-']);
        for octet in &mut octets {
            let part = parts.next().filter(|p| p.len() == 2).ok_or_else(wrong)?;
            *octet = u8::from_str_radix(part, 16).map_err(|_| wrong())?;
        }
        match parts.next() {
            None => Ok(Self(octets)),
            Some(_) => Err(wrong()),
        }
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let octets = self.0.map(|o| format!("{o:02x}"));
        f.write_str(&octets.join(":"))
    }
}

/// Hosts behind the device: one by its interface, or those of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    /// Host with this interface, whatever its address.
    Mac(Mac),
    /// Hosts with addresses of this network.
    Network(IpNet),
}

impl FromStr for Client {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        if let Ok(mac) = s.parse() {
            return Ok(Self::Mac(mac));
        }
        let net = network(s)
            .ok_or_else(|| format!("\"{s}\" is no address, no prefix and no MAC address"))?;
        Ok(Self::Network(net))
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mac(mac) => mac.fmt(f),
            Self::Network(net) => written(*net).fmt(f),
        }
    }
}

/// User of the device, whose programs send.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum User {
    /// User of this name, whatever number the device gives it.
    Name(String),
    /// User of this number (uid).
    Id(u32),
}

/// Longest name of a user (useradd(8)).
const MAX_USER: usize = 32;

impl FromStr for User {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        if let Ok(id) = s.parse() {
            return Ok(Self::Id(id));
        }
        let letter = |c: char| c.is_ascii_alphanumeric() || "._-$".contains(c);
        let is_name = !s.is_empty() && s.len() <= MAX_USER && s.chars().all(letter);
        let begins = |c: &u8| c.is_ascii_alphabetic() || *c == b'_';
        match is_name && s.as_bytes().first().is_some_and(begins) {
            true => Ok(Self::Name(s.to_owned())),
            false => Err(format!(
                "\"{s}\" is no user: expected a name, such as backup, or its number"
            )),
        }
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Id(id) => id.fmt(f),
        }
    }
}

/// Unit of the device, whose programs send: a control group of version 2, and those below it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Unit(String);

/// Longest path of a unit.
const MAX_UNIT: usize = 512;

impl Unit {
    /// Returns its name, or its path below the uppermost group.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is named by its path.
    pub fn is_path(&self) -> bool {
        self.0.contains('/')
    }

    /// Whether a group with this path, or this name, is one of its.
    pub fn includes(&self, path: &str) -> bool {
        let mut parts = path.split('/');
        match self.is_path() {
            true => path
                .strip_prefix(&self.0)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
            false => parts.any(|part| part == self.0),
        }
    }
}

impl FromStr for Unit {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let is_part = |part: &str| {
            let plain = |c: char| c.is_ascii_graphic() && c != '"';
            !part.is_empty() && part != "." && part != ".." && part.chars().all(plain)
        };
        match s.len() <= MAX_UNIT && s.split('/').all(is_part) {
            true => Ok(Self(s.to_owned())),
            false => Err(format!(
                "\"{s}\" is no unit: expected its name, such as transmission.service, or the path of \
                 its control group, such as system.slice/transmission.service"
            )),
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads an address or a prefix; what stands behind the length of a prefix counts as zero.
pub(super) fn network(s: &str) -> Option<IpNet> {
    let address = || s.parse::<IpAddr>().ok().map(IpNet::from);
    s.parse().ok().or_else(address).map(|n: IpNet| n.trunc())
}

/// Returns the text of a network: that of its address where it has one alone.
pub(super) fn written(net: IpNet) -> String {
    match net.prefix_len() == net.max_prefix_len() {
        true => net.addr().to_string(),
        false => net.to_string(),
    }
}

/// Protocol above IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// ICMP, of IPv4 and of IPv6.
    Icmp,
    /// Protocol of this number (IANA).
    Number(u8),
}

/// Names of protocols.
const PROTOCOLS: [(&str, Protocol); 7] = [
    ("icmp", Protocol::Icmp),
    ("tcp", Protocol::Number(6)),
    ("udp", Protocol::Number(17)),
    ("gre", Protocol::Number(47)),
    ("esp", Protocol::Number(50)),
    ("ah", Protocol::Number(51)),
    ("sctp", Protocol::Number(132)),
];

impl Protocol {
    /// Returns the numbers that it has, over IPv4 or IPv6.
    pub fn numbers(self) -> impl Iterator<Item = u8> {
        let (first, second) = match self {
            Self::Icmp => (1, Some(58)),
            Self::Number(n) => (n, None),
        };
        std::iter::once(first).chain(second)
    }

    /// Whether it is the protocol of this number.
    pub fn includes(self, number: u8) -> bool {
        self.numbers().any(|n| n == number)
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        if let Some((_, known)) = PROTOCOLS.iter().find(|(name, _)| *name == s) {
            return Ok(*known);
        }
        s.parse().map(Self::Number).map_err(|_| {
            let names = PROTOCOLS.map(|(name, _)| name);
            format!(
                "\"{s}\" is no protocol: expected {}, or its number, 0 to 255",
                names.join(", ")
            )
        })
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (PROTOCOLS.iter().find(|(_, known)| known == self), self) {
            (Some((name, _)), _) => f.write_str(name),
            (None, Self::Number(n)) => n.fmt(f),
            (None, Self::Icmp) => f.write_str("icmp"),
        }
    }
}

/// Range of ports: one, or from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ports {
    /// Least one.
    pub first: u16,
    /// Greatest one, not below `first`.
    pub last: u16,
}

impl Ports {
    /// Whether it has a port.
    pub fn contains(self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

impl FromStr for Ports {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let wrong =
            || format!("\"{s}\" is no port and no range of ports, such as 443 or 5000-5999");
        let (first, last) = s.split_once('-').unwrap_or((s, s));
        let port = |text: &str| {
            text.trim()
                .parse()
                .ok()
                .filter(|p| *p > 0)
                .ok_or_else(wrong)
        };
        let ports = Self {
            first: port(first)?,
            last: port(last)?,
        };
        match ports.first <= ports.last {
            true => Ok(ports),
            false => Err(wrong()),
        }
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => self.first.fmt(f),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

/// Differentiated services code point (RFC 2474), 0 to 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dscp(u8);

/// Names of code points: RFC 2474, 2597, 3246, 5865, 8622.
const CODE_POINTS: [(&str, u8); 23] = [
    ("cs0", 0),
    ("le", 1),
    ("cs1", 8),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("cs2", 16),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("cs3", 24),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("cs4", 32),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs5", 40),
    ("va", 44),
    ("ef", 46),
    ("cs6", 48),
    ("cs7", 56),
];

impl Dscp {
    /// Returns the code point of this value, up to 63.
    pub fn new(value: u8) -> Option<Self> {
        (value < 64).then_some(Self(value))
    }

    /// Returns its value.
    pub fn value(self) -> u8 {
        self.0
    }
}

impl FromStr for Dscp {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let known = CODE_POINTS.iter().find(|(name, _)| *name == s);
        let value = known.map(|(_, value)| *value).or_else(|| s.parse().ok());
        value.and_then(Self::new).ok_or_else(|| {
            format!("\"{s}\" is no code point: expected one of 0 to 63, or a name such as ef, cs5 or af41")
        })
    }
}

impl fmt::Display for Dscp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match CODE_POINTS.iter().find(|(_, value)| *value == self.0) {
            Some((name, _)) => f.write_str(name),
            None => self.0.fmt(f),
        }
    }
}
