//! The accesses of a connection, and what is to be sent on each.

use std::net::{IpAddr, Ipv4Addr};

use braid_api::Expected;
use braid_core::Rate;
use ipnet::IpNet;

use crate::Error;

/// An access, as far as a connection needs it.
#[derive(Clone, Debug, PartialEq)]
pub struct Access {
    /// Its name.
    pub name: String,
    /// The interface that its packets leave by, at the device: a name, or a pattern such as
    /// `wwan*`, of whose interfaces one is used at a time. None where the routes say that, and at
    /// the proxy.
    pub interface: Option<String>,
    /// The address that leads over it: our own at the device, the device's, or a prefix
    /// of those, at the proxy. None where there is none now.
    pub address: Option<IpNet>,
    /// The device has a link on it. Always so at the proxy.
    pub up: bool,
    /// Its share, 0 or more, divided equally among its paths.
    pub weight: f64,
    /// Its place in an order, the least first.
    pub priority: u32,
    /// To be used only while no other can be.
    pub backup: bool,
    /// Rates that it is expected to carry, bits per second each way; at the device, which tells
    /// the proxy. New paths then begin with half of that, and not with ten packets.
    pub expected: Expected,
    /// Greatest rate at which this end sends on it, in bits per second of the IP layer; `None`: any.
    pub limit: Option<Rate>,
    /// Whether the device has named it, and no configuration. Its paths are told by their
    /// identifiers.
    pub registered: bool,
}

impl Access {
    /// One that is up, with weight 1.
    pub fn new(name: &str, address: IpAddr) -> Self {
        Self {
            address: Some(address.into()),
            ..Self::named(name)
        }
    }

    /// One whose interface is followed.
    pub fn on(name: &str, interface: &str) -> Self {
        Self {
            interface: Some(interface.to_owned()),
            ..Self::named(name)
        }
    }

    fn named(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            interface: None,
            address: None,
            up: true,
            weight: 1.0,
            priority: 0,
            backup: false,
            expected: Expected::default(),
            limit: None,
            registered: false,
        }
    }

    /// Whether packets can leave on it.
    pub(crate) fn usable(&self) -> bool {
        self.up && self.address.is_some()
    }
}

/// Changes to make to an access; what is none stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccessChange {
    /// See [`Access::priority`].
    pub priority: Option<u32>,
    /// See [`Access::backup`].
    pub backup: Option<bool>,
    /// See [`Access::expected`].
    pub expected: Option<Expected>,
    /// See [`Access::limit`].
    pub limit: Option<Option<Rate>>,
}

/// The address that QUIC is told for access number `i` of a device, whatever the real one
/// is (RFC 5737): a change of that is then to QUIC what a NAT's rebinding is, and a path
/// that is the last one lives on (RFC 9000 9).
pub(crate) fn label(i: usize) -> IpAddr {
    let i = u8::try_from(i).unwrap_or(u8::MAX);
    Ipv4Addr::new(192, 0, 2, i).into()
}

/// The number of the access that was told as `label`.
pub(crate) fn labelled(label: IpAddr) -> Option<usize> {
    match label {
        IpAddr::V4(v4) => match v4.octets() {
            [192, 0, 2, i] => Some(i.into()),
            _ => None,
        },
        IpAddr::V6(_) => None,
    }
}

/// Sets weights by name; those that are not named stay.
///
/// # Errors
/// [`Error::UnknownAccess`]; [`Error::BadWeights`] where one is negative or no finite
/// number, or none would be above zero. Nothing is changed then.
pub(crate) fn set_weights(all: &mut [Access], weights: &[(String, f64)]) -> Result<(), Error> {
    let mut after: Vec<f64> = all.iter().map(|a| a.weight).collect();
    for (name, weight) in weights {
        let i = find(all, name)?;
        after[i] = *weight;
    }
    let sound = |w: &f64| w.is_finite() && *w >= 0.0;
    if !after.iter().all(sound) || !after.iter().any(|w| *w > 0.0) {
        let shown = all.iter().zip(&after);
        let shown: Vec<String> = shown.map(|(a, w)| format!("{}={w}", a.name)).collect();
        return Err(Error::BadWeights {
            weights: shown.join(" "),
        });
    }
    for (a, weight) in all.iter_mut().zip(after) {
        a.weight = weight;
    }
    Ok(())
}

/// The number of the access called `name`.
pub(crate) fn find(all: &[Access], name: &str) -> Result<usize, Error> {
    let found = all.iter().position(|a| a.name == name);
    found.ok_or_else(|| Error::UnknownAccess {
        name: name.to_owned(),
        known: names(all),
    })
}

/// Their names, for messages.
pub(crate) fn names(all: &[Access]) -> String {
    let names: Vec<&str> = all.iter().map(|a| a.name.as_str()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_weights_change_nothing() {
        let address = IpAddr::from([10, 0, 0, 1]);
        let before = ["nr", "wifi"].map(|n| Access::new(n, address));
        let mut all = before.clone();
        let mut set = |w: &[(&str, f64)]| {
            let named: Vec<_> = w.iter().map(|(n, w)| ((*n).to_owned(), *w)).collect();
            set_weights(&mut all, &named).map_err(|e| e.to_string())
        };
        let none = set(&[("nr", 0.0), ("wifi", 0.0)]).unwrap_err();
        assert_eq!(
            none,
            "weights nr=0 wifi=0: each is 0 or more, and one at least above 0"
        );
        assert!(set(&[("nr", -1.0)]).is_err() && set(&[("nr", f64::NAN)]).is_err());
        let unknown = set(&[("nr", 3.0), ("lte", 1.0)]).unwrap_err();
        assert_eq!(unknown, "there is no access \"lte\": there are nr, wifi");
        assert_eq!(all, before);
        set_weights(&mut all, &[("wifi".to_owned(), 0.0)]).unwrap();
        assert_eq!((all[0].weight, all[1].weight), (1.0, 0.0));
    }
}
