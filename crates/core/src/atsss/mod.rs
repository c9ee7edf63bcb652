//! ATSSS parameters as a core network gives them to a device (3GPP TS 24.193 6.1.2 to 6.1.5): octets
//! to values and back.
//!
//! Release 16 is here whole. Octets of later releases are kept as they came where a length says how
//! many there are ([`Mode::Other`], [`Selection::later`], [`Component::Other`], [`Parameter::Other`]),
//! and written again; [`Selection`] says how little of those could be read. The public encoders
//! differ in how a rule begins: [`Form`] tells the forms apart, and [`Container::decode`] finds out.
//!
//! Spare bits are not looked at (TS 24.007 11.2), and are written as zero.

mod component;
mod parameters;
mod reader;
mod rule;
mod selection;
#[cfg(test)]
mod tests;

pub use component::Component;
pub use parameters::{Addresses, Measurement, NetworkSteering, Proxy};
pub use reader::DecodeError;
pub use rule::{Entry, Form, Rule};
pub use selection::{Functionality, Mode, Selection, Side};

use reader::Reader;

/// Octets of a container at most: its length has two octets (TS 24.501 9.11.4.22).
pub const MAX_BYTES: usize = 65_535;
/// Identifiers of parameters (table 6.1.2-1).
const RULES: u8 = 1;
const NETWORK: u8 = 2;
const MEASUREMENT: u8 = 3;

/// Contents of an ATSSS container: parameters in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container(pub Vec<Parameter>);

/// Parameter of a container (figure 6.1.2-2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// ATSSS rules.
    Rules(Vec<Entry>),
    /// Network steering functionalities information.
    Network(NetworkSteering),
    /// Measurement assistance information.
    Measurement(Measurement),
    /// Parameter that this codec does not know, as it came.
    Other {
        /// Identifier.
        identifier: u8,
        /// Contents.
        contents: Vec<u8>,
    },
}

/// Reason why values have no octets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A length does not fit into its field.
    #[error("{what} has {bytes} octets: at most {max} fit")]
    TooLong {
        /// Field.
        what: &'static str,
        /// Octets of its contents.
        bytes: usize,
        /// Octets that its length can say.
        max: usize,
    },
    /// A value is not one that its field can have.
    #[error("{what}: {value} has no octets")]
    Value {
        /// Field.
        what: &'static str,
        /// Value.
        value: u32,
    },
    /// A rule has an identity, or none, where the form asks for the other.
    #[error("in this form {0}")]
    Form(&'static str),
}

impl Container {
    /// Reads a container. Finds out in which form its rules are: the lengths in them fit in one alone,
    /// but for descriptors of 256 octets and more.
    ///
    /// # Errors
    /// The octets are no container in any form: the place of the first that fits in none.
    pub fn decode(bytes: &[u8]) -> Result<(Self, Form), DecodeError> {
        let mut furthest: Option<DecodeError> = None;
        let mut read: Option<(Self, Form)> = None;
        for form in Form::ALL {
            match (Self::decode_as(bytes, form), &read) {
                (Ok(container), None) => read = Some((container, form)),
                // Without rules all forms are the same.
                (Ok(container), Some((before, _))) if container == *before => {}
                (Ok(_), Some((_, before))) => {
                    let what = format!("its rules can be read {before} and {form}");
                    return Err(DecodeError { offset: 0, what });
                }
                (Err(e), _) => {
                    if furthest.as_ref().is_none_or(|f| e.offset > f.offset) {
                        furthest = Some(e);
                    }
                }
            }
        }
        match (read, furthest) {
            (Some(read), _) => Ok(read),
            (None, Some(e)) => Err(e),
            (None, None) => Err(reader::wrong(0, "there is no form to read it in")),
        }
    }

    /// Reads a container whose rules are in this form.
    ///
    /// # Errors
    /// The place of the first octet that is not as it has to be, and what was expected.
    pub fn decode_as(bytes: &[u8], form: Form) -> Result<Self, DecodeError> {
        if bytes.len() > MAX_BYTES {
            let what = format!("a container has at most {MAX_BYTES} octets");
            return Err(reader::wrong(MAX_BYTES, what));
        }
        let mut all = Reader::new(bytes);
        if all.is_empty() {
            return Err(all.wrong("a container has at least one parameter"));
        }
        let mut parameters = Vec::new();
        while !all.is_empty() {
            let identifier = all.u8("a parameter identifier")?;
            let length = all.u16("the length of a parameter")?;
            let mut contents = all.part(length.into(), "a parameter")?;
            let parameter = match identifier {
                RULES => Parameter::Rules(rule::decode(&mut contents, form)?),
                NETWORK => Parameter::Network(NetworkSteering::decode(&mut contents)?),
                MEASUREMENT => Parameter::Measurement(Measurement::decode(&mut contents)?),
                _ => Parameter::Other {
                    identifier,
                    contents: contents.rest().to_vec(),
                },
            };
            parameters.push(parameter);
        }
        Ok(Self(parameters))
    }

    /// Writes a container with its rules in this form.
    ///
    /// # Errors
    /// Something is too long, or has a value that no octets have.
    pub fn encode(&self, form: Form) -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::new();
        for parameter in &self.0 {
            let (identifier, contents) = match parameter {
                Parameter::Rules(entries) => (RULES, rule::encode(entries, form)?),
                Parameter::Network(network) => (NETWORK, network.encode()?),
                Parameter::Measurement(measurement) => (MEASUREMENT, measurement.encode()),
                Parameter::Other {
                    identifier,
                    contents,
                } => (*identifier, contents.clone()),
            };
            out.push(identifier);
            out.extend(length16("a parameter", contents.len())?);
            out.extend(contents);
        }
        match out.len() <= MAX_BYTES {
            true => Ok(out),
            false => Err(EncodeError::TooLong {
                what: "the container",
                bytes: out.len(),
                max: MAX_BYTES,
            }),
        }
    }

    /// Returns the rules that are in force when all entries are done in their order, the one of the
    /// least precedence value in front; it is asked first (TS 24.193 6.1.3.1).
    pub fn rules(&self) -> Vec<&Rule> {
        let mut all: Vec<&Rule> = Vec::new();
        for parameter in &self.0 {
            let Parameter::Rules(entries) = parameter else {
                continue;
            };
            for entry in entries {
                let identity = entry.identity();
                all.retain(|r| r.identity.is_none() || r.identity != identity);
                if let Entry::Set(rule) = entry {
                    all.push(rule);
                }
            }
        }
        all.sort_by_key(|r| r.precedence);
        all
    }
}

/// Returns a length of two octets.
fn length16(what: &'static str, bytes: usize) -> Result<[u8; 2], EncodeError> {
    let max = usize::from(u16::MAX);
    let length = u16::try_from(bytes).map_err(|_| EncodeError::TooLong { what, bytes, max })?;
    Ok(length.to_be_bytes())
}

/// Returns a length of one octet.
fn length8(what: &'static str, bytes: usize) -> Result<u8, EncodeError> {
    let max = usize::from(u8::MAX);
    u8::try_from(bytes).map_err(|_| EncodeError::TooLong { what, bytes, max })
}
