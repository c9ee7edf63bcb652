//! PDCP of one data radio bearer: a transmitting and a receiving entity.
//!
//! The state machine is that of TS 38.323 (5.2, 5.3, 5.4, 5.5), whose COUNT arithmetic is simpler
//! than TS 36.323's; the PDUs are those of TS 36.323. Both entities are passive: time is passed
//! in, packets are pushed and taken out.

mod keys;
mod missing;
mod receive;
mod settings;
#[cfg(test)]
mod tests;
mod transmit;

pub use keys::KeyError;
pub use receive::{Late, Received, Receiver, ReceiverConfig, ReceiverStats};
pub use settings::{PushError, TransmitterConfig, TransmitterStats};
pub use transmit::{Prepared, Transmitter};
