//! `expected` of an access.

use braid_core::Rate;
use braid_core::api::{Engine, Expected, Role};
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
            let Some(text) = text else { return Ok(None) };
            let rate: Rate = text.parse().map_err(|e| format!("{way}: {e}"))?;
            match rate == Rate::ZERO {
                true => Err(format!(
                    "{way}: a rate above 0; leave it out if it is unknown"
                )),
                false => Ok(Some(rate)),
            }
        };
        let expected = Expected {
            down: rate("down", &self.down)?,
            up: rate("up", &self.up)?,
        };
        match (expected.is_unknown(), role, engine) {
            (true, ..) | (false, Role::Device, Engine::Mpquic) => Ok(expected),
            (false, Role::Proxy, _) => {
                Err("what an access carries the device knows: set it there".to_owned())
            }
            (false, Role::Device, _) => Err(super::super::KERNEL_WINDOWS.to_owned()),
        }
    }
}
