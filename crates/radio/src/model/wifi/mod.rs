//! IEEE 802.11 with the distributed coordination function (DCF, and EDCA with
//! best effort only): a [`Medium`](super::Medium) whose stations contend.
//!
//! What is modelled and what is not: `docs/wifi.md`.

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
