//! Form of a rule in configurations and in the API: one table, with its criteria and its outcome.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use ipnet::IpNet;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::values::{Client, Dscp, Ports, Protocol, Unit, User, network, written};
use super::{Descriptor, MAX_VALUES, Outcome, Rule};
use crate::domain::Domain;

/// Rule as it is written: values are right, and whether together they are a rule,
/// [`Rule::try_from`] says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Written {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "List::is_empty")]
    client: List<Client>,
    #[serde(skip_serializing_if = "List::is_empty")]
    user: List<User>,
    #[serde(skip_serializing_if = "List::is_empty")]
    unit: List<Unit>,
    #[serde(skip_serializing_if = "List::is_empty")]
    to: List<Network>,
    #[serde(skip_serializing_if = "List::is_empty")]
    domain: List<Domain>,
    #[serde(skip_serializing_if = "List::is_empty")]
    protocol: List<Protocol>,
    #[serde(skip_serializing_if = "List::is_empty")]
    port: List<Ports>,
    #[serde(skip_serializing_if = "List::is_empty")]
    dscp: List<Dscp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(skip_serializing_if = "List::is_empty")]
    direct: List<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    block: bool,
}

impl TryFrom<Written> for Rule {
    type Error = String;

    fn try_from(w: Written) -> Result<Self, String> {
        let outcomes = [w.class.is_some(), !w.direct.0.is_empty(), w.block];
        if outcomes.iter().filter(|there| **there).count() != 1 {
            return Err(
                "a rule has one outcome: class = \"default\", direct = \"ACCESS\", or block = true"
                    .into(),
            );
        }
        let outcome = match w.class {
            Some(class) => Outcome::Class(class),
            None if w.block => Outcome::Block,
            None => Outcome::Direct(w.direct.0),
        };
        if w.name.as_ref().is_some_and(|n| n.trim().is_empty()) {
            return Err("a rule's `name` has letters, where there is one".into());
        }
        let descriptor = Descriptor {
            client: w.client.0,
            user: w.user.0,
            unit: w.unit.0,
            to: w.to.0.into_iter().map(|n| n.0).collect(),
            domain: w.domain.0,
            protocol: w.protocol.0,
            port: w.port.0,
            dscp: w.dscp.0,
        };
        if !descriptor.is_of_hosts() && !descriptor.is_of_device() {
            return Err(
                "`client` is for hosts behind the device, `user` and `unit` for programs on it: make it \
                 two rules"
                    .into(),
            );
        }
        let with_ports = |p: &Protocol| [Protocol::Number(6), Protocol::Number(17)].contains(p);
        if !descriptor.port.is_empty()
            && let Some(other) = descriptor.protocol.iter().find(|p| !with_ports(p))
        {
            return Err(format!(
                "`port` is for tcp and udp, and this rule names the protocol {other}, too: make it two rules"
            ));
        }
        Ok(Self {
            name: w.name,
            descriptor,
            outcome,
        })
    }
}

impl From<Rule> for Written {
    fn from(rule: Rule) -> Self {
        let d = rule.descriptor;
        let mut written = Self {
            name: rule.name,
            client: List(d.client),
            user: List(d.user),
            unit: List(d.unit),
            to: List(d.to.into_iter().map(Network).collect()),
            domain: List(d.domain),
            protocol: List(d.protocol),
            port: List(d.port),
            dscp: List(d.dscp),
            ..Self::default()
        };
        match rule.outcome {
            Outcome::Class(class) => written.class = Some(class),
            Outcome::Direct(accesses) => written.direct = List(accesses),
            Outcome::Block => written.block = true,
        }
        written
    }
}

/// Network as an address or a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Network(IpNet);

impl FromStr for Network {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let net = network(s).ok_or_else(|| format!("\"{s}\" is no address and no prefix"))?;
        Ok(Self(net))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&written(self.0))
    }
}

/// Values, written as one or as a list of them: each as text, or as a number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct List<T>(Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> List<T> {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: fmt::Display> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self.0.iter().map(ToString::to_string))
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for List<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(OneOrMore(PhantomData)).map(Self)
    }
}

struct OneOrMore<T>(PhantomData<T>);

impl<T: FromStr<Err: fmt::Display>> OneOrMore<T> {
    fn one<E: Error>(text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }
}

impl<'de, T: FromStr<Err: fmt::Display>> Visitor<'de> for OneOrMore<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, or a list of values")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
        Ok(vec![Self::one(text)?])
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Vec<T>, E> {
        Ok(vec![Self::one(&number.to_string())?])
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Vec<T>, E> {
        Ok(vec![Self::one(&number.to_string())?])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
        let mut all = Vec::new();
        while let Some(One(text)) = seq.next_element()? {
            if all.len() == MAX_VALUES {
                return Err(A::Error::custom(format!(
                    "expected {MAX_VALUES} values at most"
                )));
            }
            all.push(Self::one(&text)?);
        }
        match all.is_empty() {
            true => Err(A::Error::custom(
                "expected at least one value: leave it out for any",
            )),
            false => Ok(all),
        }
    }
}

/// Value in a list, as text.
struct One(String);

impl<'de> Deserialize<'de> for One {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = One;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, or a number")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<One, E> {
                Ok(One(text.to_owned()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<One, E> {
                Ok(One(number.to_string()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<One, E> {
                Ok(One(number.to_string()))
            }
        }
        d.deserialize_any(Text)
    }
}
