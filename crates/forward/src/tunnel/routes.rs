//! Route into the tunnel, and the rule by which the mark of packets leads to it.

use braid_core::class::DEFAULT_NUMBER;

use crate::divert;
use crate::divert::routes::{Hop, Marked, RouteError};

/// Table of the route of the default class.
const TABLE: u32 = 76_999_998;
/// Table of class 0, beside which those of the others follow.
const CLASS_TABLE: u32 = 76_999_940;
/// Priority of the rules: before those of others, which know nothing of the marks.
const PRIORITY: u32 = 771;

fn into(class: u8) -> Marked {
    Marked {
        mark: super::mark(class),
        table: match class {
            DEFAULT_NUMBER => TABLE,
            _ => CLASS_TABLE + u32::from(class),
        },
        priority: PRIORITY,
    }
}

/// Questions to resolvers, which go into the interface of the default class while they can.
const RESOLVING: Marked = Marked {
    mark: divert::RESOLVING,
    table: TABLE,
    priority: PRIORITY,
};

/// Leads marked packets of one family into the interface of the default class.
pub(super) async fn add(v4: bool, interface: u32) -> Result<(), RouteError> {
    into(DEFAULT_NUMBER).add(v4, Hop::Link(interface)).await?;
    RESOLVING.add_rule(v4).await
}

/// Leads marked packets of one family and class into the interface of the default, while there is
/// none of the class.
pub(super) async fn fall_back(v4: bool, class: u8, default: u32) -> Result<(), RouteError> {
    into(class).add(v4, Hop::LastLink(default)).await
}

/// Leads marked packets of one family and class into the interface of the class.
pub(super) async fn add_class(v4: bool, class: u8, interface: u32) -> Result<(), RouteError> {
    into(class).set(v4, None, Hop::Link(interface)).await
}

/// Removes the rules of both families and all classes. The routes go with the interfaces.
pub(crate) async fn remove() -> Result<(), RouteError> {
    for class in super::classes() {
        into(class).remove_rules().await?;
    }
    RESOLVING.remove_rules().await
}
