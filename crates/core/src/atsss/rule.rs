//! ATSSS rules (3GPP TS 24.193 6.1.3.2), in the forms in which they are found.

use std::fmt;

use super::component::Component;
use super::reader::{DecodeError, Reader, wrong};
use super::selection::Selection;
use super::{EncodeError, length16};

/// Octets of the length of a rule.
const LENGTH: usize = 2;
/// Operations of rules.
const SET: u8 = 1;
const DELETE: u8 = 2;

/// Form of rules: how each begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Whether an identity and an operation stand before the precedence, as later versions of the
    /// specification have it (6.1.3.1). The first of Release 16 has none.
    pub numbered: bool,
    /// Whether the length counts its own two octets: public encoders differ there.
    pub inclusive: bool,
}

impl Form {
    /// Forms that are tried, the first of Release 16 in front.
    pub const ALL: [Self; 4] = [
        Self::with(false, false),
        Self::with(true, false),
        Self::with(true, true),
        Self::with(false, true),
    ];

    const fn with(numbered: bool, inclusive: bool) -> Self {
        Self {
            numbered,
            inclusive,
        }
    }

    /// Octets by which the length is more than what follows it.
    fn more(self) -> usize {
        usize::from(self.inclusive) * LENGTH
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbered = if self.numbered { "with" } else { "without" };
        let inclusive = if self.inclusive { "" } else { " not" };
        write!(
            f,
            "{numbered} identities and lengths that do{inclusive} count themselves"
        )
    }
}

/// Entry of the list of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Rule that is added, or takes the place of the one with its identity.
    Set(Rule),
    /// Deletion of the rule with this identity.
    Delete {
        /// Identity.
        identity: u8,
        /// Octets behind the operation, as they came.
        rest: Vec<u8>,
    },
}

impl Entry {
    /// Returns the identity of its rule; `None` in the form without identities.
    pub fn identity(&self) -> Option<u8> {
        match self {
            Self::Set(rule) => rule.identity,
            Self::Delete { identity, .. } => Some(*identity),
        }
    }
}

/// ATSSS rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Identity, where the form has one.
    pub identity: Option<u8>,
    /// Precedence: the rule of the least value is asked first.
    pub precedence: u8,
    /// Traffic descriptor, at least one component.
    pub descriptor: Vec<Component>,
    /// Access selection descriptor.
    pub selection: Selection,
}

/// Reads all rules.
pub(super) fn decode(from: &mut Reader<'_>, form: Form) -> Result<Vec<Entry>, DecodeError> {
    let mut entries = Vec::new();
    while !from.is_empty() {
        let at = from.offset();
        let length = usize::from(from.u16("the length of a rule")?);
        let Some(left) = length.checked_sub(form.more()) else {
            return Err(wrong(
                at,
                format!("{length}: the length of a rule counts itself"),
            ));
        };
        entries.push(Entry::decode(&mut from.part(left, "a rule")?, form)?);
    }
    Ok(entries)
}

impl Entry {
    fn decode(from: &mut Reader<'_>, form: Form) -> Result<Self, DecodeError> {
        if !form.numbered {
            return Rule::decode(from, None).map(Self::Set);
        }
        let identity = from.u8("a rule's identity")?;
        let at = from.offset();
        match from.u8("a rule's operation")? {
            SET => Rule::decode(from, Some(identity)).map(Self::Set),
            DELETE => Ok(Self::Delete {
                identity,
                rest: from.rest().to_vec(),
            }),
            other => Err(wrong(
                at,
                format!("{other}: a rule's operation is {SET} (set) or {DELETE} (delete)"),
            )),
        }
    }

    fn encode(&self, form: Form) -> Result<Vec<u8>, EncodeError> {
        let identity = self.identity();
        let mut out = Vec::new();
        match (identity, form.numbered) {
            (Some(_), false) => return Err(EncodeError::Form("rules have no identity")),
            (None, true) => return Err(EncodeError::Form("each rule has an identity")),
            (None, false) => {}
            (Some(identity), true) => out.extend([
                identity,
                match self {
                    Self::Set(_) => SET,
                    Self::Delete { .. } => DELETE,
                },
            ]),
        }
        match self {
            Self::Set(rule) => rule.encode(&mut out)?,
            Self::Delete { rest, .. } => out.extend(rest),
        }
        Ok(out)
    }
}

impl Rule {
    fn decode(from: &mut Reader<'_>, identity: Option<u8>) -> Result<Self, DecodeError> {
        let precedence = from.u8("a rule's precedence")?;
        let length = from.u16("the length of a traffic descriptor")?;
        let mut part = from.part(length.into(), "a traffic descriptor")?;
        if part.is_empty() {
            return Err(part.wrong("a traffic descriptor has at least one component"));
        }
        let mut descriptor = Vec::new();
        while !part.is_empty() {
            descriptor.push(Component::decode(&mut part)?);
        }
        let selection = Selection::decode(from)?;
        from.end("a rule")?;
        Ok(Self {
            identity,
            precedence,
            descriptor,
            selection,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let mut descriptor = Vec::new();
        for component in &self.descriptor {
            component.encode(&mut descriptor)?;
        }
        out.push(self.precedence);
        out.extend(length16("a traffic descriptor", descriptor.len())?);
        out.extend(descriptor);
        self.selection.encode(out)
    }
}

/// Writes all rules.
pub(super) fn encode(entries: &[Entry], form: Form) -> Result<Vec<u8>, EncodeError> {
    let mut out = Vec::new();
    for entry in entries {
        let contents = entry.encode(form)?;
        out.extend(length16("a rule", contents.len() + form.more())?);
        out.extend(contents);
    }
    Ok(out)
}
