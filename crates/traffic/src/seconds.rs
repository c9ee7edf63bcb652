//! Durations as seconds, with a fraction: how a specification writes them.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serializer, de};

pub(crate) fn serialize<S: Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_f64(d.as_secs_f64())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Duration, D::Error> {
    /// 30 days: times computed from it stay far from overflow.
    const MOST: f64 = 30.0 * 86_400.0;
    let v = f64::deserialize(d)?;
    if (0.0..=MOST).contains(&v) {
        Ok(Duration::from_secs_f64(v))
    } else {
        Err(de::Error::custom(format!(
            "{v} is not valid: expected seconds from 0 to {MOST}"
        )))
    }
}
