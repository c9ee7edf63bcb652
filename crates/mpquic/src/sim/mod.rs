//! Both ends in memory, over the link models of `braid-radio`, in simulated time: the
//! same seed gives the same run to the byte.

mod air;
mod app;
mod attacker;
mod backup;
mod cells;
mod classes;
mod draws;
mod ends;
mod hostile;
mod idle;
mod late_access;
mod limits;
pub(crate) mod null;
mod one_way;
mod outages;
mod packets;
mod random;
mod reordering;
mod resends;
mod restored;
mod script;
mod service;
mod shares;
mod soak;
mod stage;
mod swing;
mod tunnel;
mod world;
