//! Braid's vocabulary and pure logic: no sockets, no clock, no threads.
//!
//! Time is passed in as [`Time`], randomness comes from a seed ([`seed`]), so
//! the same code runs in tests, in the emulator and in production.

pub mod access;
pub mod atsss;
pub mod cc;
pub mod class;
pub mod control;
pub mod control_loop;
pub mod domain;
pub mod end;
pub mod energy;
pub mod estimate;
pub mod journal;
pub mod mutate;
pub mod overhead;
pub mod pattern;
pub mod policy;
pub mod rate;
pub mod replay;
pub mod rules;
pub mod sched;
pub mod seed;
pub mod stats;
pub mod time;
pub mod units;
pub mod weight;

pub use access::{AccessKind, AccessState};
pub use end::{Engine, Role};
pub use pattern::Pattern;
pub use rate::Rate;
pub use time::Time;
