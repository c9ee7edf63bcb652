//! IEEE 802.11 with the distributed coordination function (DCF, and EDCA with
//! best effort only): a [`Medium`](super::Medium) whose stations contend.
//!
//! What is modelled and what is not: `docs/wifi.md`.
//!
//! ```
//! use braid_core::Time;
//! use braid_radio::model::Medium;
//! use braid_radio::model::wifi::{Dcf, Queues, Standard, WifiSpec};
//!
//! // An access point that always has a packet for a device, and the device likewise.
//! let mut queues = Queues::new(2, 1);
//! queues.saturate(0, 0, 1500);
//! queues.saturate(1, 0, 1500);
//! let mut channel = Dcf::new(&WifiSpec::new(Standard::G), 2, 1)?;
//! channel.advance(Time::from_nanos(10_000_000_000), &mut queues);
//! let stats = channel.stats();
//! assert!(stats.collisions as f64 / stats.rounds as f64 > 0.04);
//! assert!((0.79..0.82).contains(&(stats.busy.as_secs_f64() / 10.0)));
//! # Ok::<(), braid_radio::model::wifi::WifiError>(())
//! ```

mod dcf;
mod modes;
mod phy;
mod queues;
mod saturation;
mod spec;
#[cfg(test)]
mod tests;
mod window;

pub use dcf::Dcf;
pub use queues::{Delivery, Queues};
pub use saturation::{Saturation, Theory, heusse, saturation};
pub use spec::{Band, Standard, WifiError, WifiSpec};

impl WifiSpec {
    /// The rates that a receiver may have on this channel, Mbit/s, ascending.
    /// A medium takes the fastest of them not above what
    /// [`Head::phy_mbps`](super::Head::phy_mbps) says.
    ///
    /// # Errors
    /// A setting that the standard does not allow.
    pub fn rates(&self) -> Result<Vec<f64>, WifiError> {
        Ok(phy::Phy::new(self)?.rates().collect())
    }
}
