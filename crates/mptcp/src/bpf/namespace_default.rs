//! A congestion control as the default of a network namespace, which outlives the
//! process: connections find it by its name when a subflow joins, so that it has to stay
//! registered for all of a connection's subflows to have it.

use libbpf_rs::MapHandle;

use super::{Algorithm, CongestionControl, Pins, Registered, load, map_of, pinned, plain, require};
use crate::error::{Error, Result};

/// One that is registered.
#[derive(Debug)]
pub struct NamespaceDefault {
    /// First to go: the link is gone with the last that holds it.
    pins: Option<Pins>,
    algorithm: CongestionControl,
    registered: Registered,
    /// The kernel's own, which the link is attached to.
    ops: MapHandle,
}

impl NamespaceDefault {
    /// [`super::register`], but plain TCP, which the default of a namespace reaches as well,
    /// gets `plain_tcp` in its place.
    ///
    /// # Errors
    /// As [`super::register`].
    pub fn register(algorithm: CongestionControl, name: &str, plain_tcp: &str) -> Result<Self> {
        let of = Algorithm::CongestionControl(algorithm);
        let (object, registered) = load(of, name, &[plain(plain_tcp)])?;
        Ok(Self {
            pins: None,
            algorithm,
            registered,
            ops: map_of(&object, algorithm.name(), name)?,
        })
    }

    /// Returns the name that the kernel knows it by.
    pub fn name(&self) -> &str {
        self.registered.name()
    }

    /// Pins it, so that it outlives this process if that is killed; dropped, it takes all with it.
    ///
    /// # Errors
    /// The kernel's; nothing is pinned then.
    pub fn pin(&mut self, pins: Pins) -> Result<()> {
        let directory = pins.of(Algorithm::CongestionControl(self.algorithm).object());
        let maps = &mut [(self.algorithm.name(), &mut self.ops)];
        pinned::pin(&directory, maps, &mut self.registered)?;
        self.pins = Some(pins);
        Ok(())
    }

    /// Whether it outlives this process if that is killed.
    pub fn is_pinned(&self) -> bool {
        self.pins.is_some()
    }

    /// Unpins it: it ends with this process again.
    pub fn unpin(&mut self) {
        self.pins = None;
    }

    /// Goes on with what another process has left there, if it is `algorithm` of this
    /// version of Braid.
    ///
    /// # Errors
    /// It is not, or the process may not have it. What was there is taken away then.
    pub fn adopt(algorithm: CongestionControl, pins: Pins) -> Result<Self> {
        require()?;
        let attempted = format!("go on with {}", pins.directory().display());
        let directory = pins.of(Algorithm::CongestionControl(algorithm).object());
        if !directory.is_dir() {
            let what = format!(
                "it is not {}, or was left by another version of braid, or before it was complete",
                algorithm.name()
            );
            return Err(Error::left(attempted, what));
        }
        let (ops, registered) = pinned::registered(&directory, &attempted, algorithm.name())?;
        Ok(Self {
            pins: Some(pins),
            algorithm,
            registered,
            ops,
        })
    }
}
