//! Engines that the lab runs, and what their daemons are told.

pub(crate) mod expected;
