//! Configuration of the daemons of a case, as their files have it.

use serde_json::Value;

/// Section of an engine's own, at either end.
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) device: Value,
    pub(crate) proxy: Value,
}
