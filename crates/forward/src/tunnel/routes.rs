//! Route into the tunnel, and the rule by which the mark of packets leads to it.

use crate::divert::routes::{Hop, Marked, RouteError};

/// Table of the route, and priority of the rule: before those of others, which know nothing of its
/// mark.
const INTO: Marked = Marked {
    mark: super::MARK,
    table: 76_999_998,
    priority: 771,
};

/// Leads marked packets of one family to the interface.
pub(super) async fn add(v4: bool, interface: u32) -> Result<(), RouteError> {
    INTO.add(v4, Hop::Link(interface)).await
}

/// Removes the rules of both families. The routes go with the interface.
pub(crate) async fn remove() -> Result<(), RouteError> {
    INTO.remove_rules().await
}
