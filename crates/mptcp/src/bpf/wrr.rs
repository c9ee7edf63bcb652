//! Weighted round robin on a kernel whose scheduler knows no weights: the
//! congestion control sets pacing rates in their ratio (`bpf/wrr_rate.h`).

mod pinned;

use std::collections::BTreeMap;

use ipnet::IpNet;
use libbpf_rs::{MapCore, MapFlags, MapHandle};

use super::{Algorithm, Pins, Registered, Skip, load, map_of};
use crate::error::{Error, Result};
use crate::weights::{ACCESSES, Rule, whole};

pub use pinned::notes;

/// The name of the `struct_ops` in the object.
const OPS: &str = "wrr";

/// `struct weight_key`: how many bits count of the rest; a connection's token, 0 for
/// all; the address, IPv4 mapped.
type Key = [u8; 24];

/// `struct weight`: the weight, and the number of the access.
type Weight = [u16; 2];

/// The longest note, in bytes (`struct note`).
pub const NOTE_MAX: usize = 65_532;
/// The most entries that `weights` takes.
const WEIGHTS_MAX: u32 = 4096;

/// A registered weighted round robin and its table.
#[derive(Debug)]
pub struct Wrr {
    /// First to go: the link is gone with the last that holds it.
    pins: Option<Pins>,
    registered: Registered,
    /// The kernel's own, which the link is attached to.
    ops: MapHandle,
    weights: MapHandle,
    settings: MapHandle,
    note: MapHandle,
    /// Entries that `weights` holds.
    set: BTreeMap<Key, Weight>,
    strict: bool,
    version: u32,
}

impl Wrr {
    /// Registers it under `name` (see [`super::NamespaceDefault::register`]), work-conserving and
    /// with equal weights.
    ///
    /// # Errors
    /// As [`super::register`].
    pub fn register(name: &str, plain: &str) -> Result<Self> {
        Self::register_skipping(name, plain, Skip::NONE)
    }

    /// [`Self::register`] with hooks skipped as some kernels do, for tests.
    ///
    /// # Errors
    /// As [`super::register`].
    #[doc(hidden)]
    pub fn register_skipping(name: &str, plain: &str, skip: Skip) -> Result<Self> {
        let constants = [skip.constant(), super::plain(plain)];
        let (object, registered) = load(Algorithm::Wrr, name, &constants)?;
        let map = |wanted| map_of(&object, wanted, name);
        let mut wrr = Self {
            pins: None,
            ops: map(OPS)?,
            weights: map("weights")?,
            settings: map("settings")?,
            note: map("note")?,
            registered,
            set: BTreeMap::new(),
            strict: false,
            version: 0,
        };
        wrr.apply()?;
        Ok(wrr)
    }

    /// Returns the name that the kernel knows it by.
    pub fn name(&self) -> &str {
        self.registered.name()
    }

    /// Whether the ratio holds, so that the access that can do least for its
    /// weight limits the rest.
    pub fn is_strict(&self) -> bool {
        self.strict
    }

    /// Sets whether the ratio holds (strict) or every path carries what it can
    /// (work-conserving), from now on and in all connections.
    ///
    /// # Errors
    /// The kernel's.
    pub fn set_strict(&mut self, strict: bool) -> Result<()> {
        self.strict = strict;
        self.apply()
    }

    /// Replaces all weights, from now on and in all connections: the general ones,
    /// and those of connections, by token, which hold for these alone. Paths
    /// without a rule have weight 1. Those with weight 0 are to be made backups by
    /// the path manager: here they count as 0 in the ratio, and carry what they are
    /// given.
    ///
    /// # Errors
    /// The kernel's, as where there are too many; the table may then be between the
    /// old one and the new.
    pub fn set_weights(
        &mut self,
        general: &[Rule],
        connections: &BTreeMap<u32, Vec<Rule>>,
    ) -> Result<()> {
        let mut wanted = BTreeMap::new();
        let own = connections
            .iter()
            .map(|(token, rules)| (*token, &rules[..]));
        for (token, rules) in own.chain([(0, general)]) {
            let values: Vec<f64> = rules.iter().map(|r| r.weight).collect();
            let weights = whole(&values).into_iter().zip(rules);
            wanted.extend(weights.map(|(w, r)| {
                let access = u16::from(r.access.min(ACCESSES));
                (key(token, r.net), [w as u16, access])
            }));
        }
        if wanted == self.set {
            return Ok(());
        }
        let attempted = || format!("set weights of {}", self.registered.name());
        // First what is gone: it makes room.
        let gone = self.set.keys().filter(|k| !wanted.contains_key(*k));
        for key in gone.copied().collect::<Vec<_>>() {
            self.weights
                .delete(&key)
                .map_err(|e| Error::bpf(attempted(), e))?;
            self.set.remove(&key);
        }
        for (key, weight) in wanted {
            if self.set.get(&key) != Some(&weight) {
                self.weights
                    .update(&key, &bytes(weight), MapFlags::ANY)
                    .map_err(|e| Error::bpf(attempted(), e))?;
                self.set.insert(key, weight);
            }
        }
        self.apply()
    }

    fn apply(&mut self) -> Result<()> {
        self.version = self.version.wrapping_add(1);
        let mut value = [0; 8];
        value[..4].copy_from_slice(&u32::from(self.strict).to_ne_bytes());
        value[4..].copy_from_slice(&self.version.to_ne_bytes());
        self.settings
            .update(&0u32.to_ne_bytes(), &value, MapFlags::ANY)
            .map_err(|e| Error::bpf(format!("set up {}", self.registered.name()), e))
    }
}

fn bytes([weight, access]: Weight) -> [u8; 4] {
    let mut value = [0; 4];
    value[..2].copy_from_slice(&weight.to_ne_bytes());
    value[2..].copy_from_slice(&access.to_ne_bytes());
    value
}

fn key(token: u32, net: IpNet) -> Key {
    let (address, bits) = match net.trunc() {
        IpNet::V4(n) => (n.addr().to_ipv6_mapped(), 96 + n.prefix_len()),
        IpNet::V6(n) => (n.addr(), n.prefix_len()),
    };
    let mut key = [0; 24];
    key[..4].copy_from_slice(&(32 + u32::from(bits)).to_ne_bytes());
    key[4..8].copy_from_slice(&token.to_ne_bytes());
    key[8..].copy_from_slice(&address.octets());
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn keys_are_as_the_program_reads_them() {
        let four = key(7, "10.77.1.2/24".parse().unwrap());
        assert_eq!(four[..4], (32u32 + 96 + 24).to_ne_bytes());
        assert_eq!(four[4..8], 7u32.to_ne_bytes());
        assert_eq!(
            four[8..],
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 1, 0]
        );
        let host: IpAddr = "fd77::2".parse().unwrap();
        let six = key(0, host.into());
        assert_eq!(six[..4], 160u32.to_ne_bytes());
        assert_eq!(six[8..11], [0xfd, 0x77, 0]);
        assert_eq!(six[23], 2);
    }
}
