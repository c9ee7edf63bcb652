//! Directions of traffic between device and proxy.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Direction of traffic, seen from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// From the proxy to the device.
    Down,
    /// From the device to the proxy.
    Up,
}

impl Direction {
    /// Both directions, in the order in which they are written.
    pub const ALL: [Self; 2] = [Self::Down, Self::Up];
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Down => "down",
            Self::Up => "up",
        })
    }
}

/// One value for each direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PerDirection<T> {
    /// Value from the proxy to the device.
    pub down: T,
    /// Value from the device to the proxy.
    pub up: T,
}

impl<T> PerDirection<T> {
    /// Computes the value of each direction.
    pub fn from_fn(mut value: impl FnMut(Direction) -> T) -> Self {
        Self {
            down: value(Direction::Down),
            up: value(Direction::Up),
        }
    }

    /// Returns the value of `direction`.
    pub fn get(&self, direction: Direction) -> &T {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }

    /// Returns the value of `direction`, to change it.
    pub fn get_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Down => &mut self.down,
            Direction::Up => &mut self.up,
        }
    }
}
