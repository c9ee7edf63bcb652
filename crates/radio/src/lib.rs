//! Emulated radio links: pure models, and the real-time loop that joins
//! network namespaces over them.

pub mod emulator;
pub mod model;
pub mod swing;
