//! `expected` of an access.

use braid_api::{Engine, Expected, Role};
use braid_core::Rate;
use serde::Deserialize;

/// As it is written: rates with their units.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawExpected {
    down: Option<String>,
    up: Option<String>,
}

impl RawExpected {
    pub(super) fn check(&self, role: Role, engine: Engine) -> Result<Expected, String> {
        let rate = |way: &str, text: &Option<String>| {
            let parsed = text.as_ref().map(|t| t.parse::<Rate>());
            parsed.transpose().map_err(|e| format!("{way}: {e}"))
        };
        let expected = Expected {
            down: rate("down", &self.down)?,
            up: rate("up", &self.up)?,
        };
        expected.check()?;
        match (expected.is_unknown(), role, engine) {
            (true, ..) | (false, Role::Device, Engine::Mpquic) => Ok(expected),
            (false, Role::Proxy, _) => {
                Err("what an access carries the device knows: set it there".to_owned())
            }
            (false, Role::Device, _) => Err(super::super::KERNEL_WINDOWS.to_owned()),
        }
    }
}
