//! Answers of a daemon about itself, read leniently: fields that an older one does
//! not have, and words that a newer one has, are no errors.

use std::collections::BTreeMap;
use std::net::IpAddr;

use braid_api::{AccessEnergy, Connections, LanStatus, PowerCounter};
use serde::{Deserialize, Serialize};

/// `GET /v1/status`, as far as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct View {
    pub(super) role: String,
    pub(super) engine: String,
    /// Every engine, where the daemon tells.
    pub(super) engines: Vec<String>,
    pub(super) accesses: Vec<AccessView>,
    pub(super) scheduler: Option<String>,
    pub(super) default_congestion_control: String,
    pub(super) scheduling: Option<Scheduling>,
    pub(super) ignored: Vec<Ignored>,
    pub(super) config_error: Option<String>,
    pub(super) proxy_unreachable: Option<String>,
    pub(super) down_weights: Option<BTreeMap<String, f64>>,
    pub(super) lan: Option<LanStatus>,
    pub(super) power: Vec<PowerCounter>,
    pub(super) notes: Vec<String>,
    /// Absent in the answer of a daemon of before.
    pub(super) connections: Option<Connections>,
}

/// Scheduling in force.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Scheduling {
    pub(super) name: String,
    pub(super) wrr_mode: Option<String>,
    pub(super) weights_act: bool,
    pub(super) congestion_control: Option<String>,
}

impl View {
    /// Returns it; of a daemon that does not tell, what its kernel is set to.
    pub(super) fn scheduling(&self) -> Scheduling {
        self.scheduling.clone().unwrap_or_else(|| Scheduling {
            name: self.scheduler.clone().unwrap_or_default(),
            wrr_mode: None,
            weights_act: true,
            congestion_control: Some(self.default_congestion_control.clone()),
        })
    }
}

/// One access of it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct AccessView {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) interface: Option<String>,
    address: Option<IpAddr>,
    addresses: Vec<Address>,
    up: Option<bool>,
    has_address: Option<bool>,
    pub(super) enabled: Option<bool>,
    pub(super) backup: bool,
    pub(super) weight: Option<f64>,
    pub(super) priority: Option<u16>,
    endpoint_id: Option<u8>,
    state: Option<String>,
    why: Option<String>,
    pub(super) note: Option<String>,
    pub(super) sent_bytes: Option<u64>,
    pub(super) received_bytes: Option<u64>,
    pub(super) energy: Option<AccessEnergy>,
}

/// An address of an access.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Address {
    address: IpAddr,
    #[serde(default)]
    endpoint_id: Option<u8>,
}

/// An interface that serves as no access.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub(super) struct Ignored {
    pub(super) interface: String,
    pub(super) why: String,
}

impl AccessView {
    /// All its addresses, the preferred one first.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        match &self.addresses[..] {
            [] => self.address.into_iter().collect(),
            all => all.iter().map(|a| a.address).collect(),
        }
    }

    /// The ids of its endpoints.
    pub(super) fn endpoints(&self) -> Vec<u8> {
        match &self.addresses[..] {
            [] => self.endpoint_id.into_iter().collect(),
            all => all.iter().filter_map(|a| a.endpoint_id).collect(),
        }
    }

    /// The word for how it is used, and what keeps it from being used, if anything.
    pub(super) fn state(&self) -> (&str, Option<&str>) {
        if let Some(state) = &self.state {
            // What is as it should be needs no reason; a backup that was not asked for has one.
            let why = self.why.as_deref().filter(|w| !w.is_empty());
            let wanted = match state.as_str() {
                "backup" => self.backup,
                "init" => false,
                other => is_used(other),
            };
            return (state, why.filter(|_| !wanted));
        }
        // A daemon that tells no state tells what it follows from.
        if self.up == Some(false) {
            (
                "down",
                Some("its interface is down, without carrier, or gone"),
            )
        } else if self.has_address == Some(false) {
            (
                "no-address",
                Some("its interface does not have its address"),
            )
        } else if self.enabled == Some(false) {
            ("ignored", Some("switched off by a request"))
        } else if self.backup {
            ("backup", None)
        } else {
            ("active", None)
        }
    }
}

/// Whether an access in this state carries traffic, or would at once.
pub(super) fn is_used(state: &str) -> bool {
    matches!(state, "active" | "init" | "backup")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(json: &str) -> AccessView {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_daemon_without_states_is_understood() {
        for (json, state) in [
            (
                "{\"up\": true, \"has_address\": true, \"enabled\": true}",
                "active",
            ),
            (
                "{\"up\": true, \"enabled\": true, \"backup\": true}",
                "backup",
            ),
            ("{\"up\": false, \"has_address\": true}", "down"),
            ("{\"up\": true, \"has_address\": false}", "no-address"),
            ("{\"up\": true, \"enabled\": false}", "ignored"),
            ("{}", "active"),
        ] {
            let a = access(json);
            assert_eq!(a.state().0, state, "{json}");
            assert_eq!(a.state().1.is_some(), !is_used(state), "{json}");
        }
        let a = access("{\"address\": \"10.0.0.2\", \"endpoint_id\": 3}");
        assert_eq!(a.addresses(), ["10.0.0.2".parse::<IpAddr>().unwrap()]);
        assert_eq!(a.endpoints(), [3]);
    }

    #[test]
    fn a_daemon_with_states_is_believed() {
        let a = access(
            "{\"up\": true, \"state\": \"silent\", \"why\": \"nothing came back\",
              \"something\": \"new\", \"address\": \"10.0.0.2\",
              \"addresses\": [{\"address\": \"10.0.0.2\", \"interface\": \"w\", \"endpoint_id\": 1},
                              {\"address\": \"fd00::2\", \"interface\": \"w\", \"endpoint_id\": null}]}",
        );
        assert_eq!(a.state(), ("silent", Some("nothing came back")));
        assert_eq!((a.addresses().len(), a.endpoints()), (2, vec![1]));
        let a = access("{\"state\": \"backup\", \"why\": \"its weight is 0\"}");
        assert_eq!(a.state(), ("backup", Some("its weight is 0")));
        let a = access("{\"state\": \"backup\", \"why\": \"as set\", \"backup\": true}");
        assert_eq!(a.state(), ("backup", None));
        let a = access("{\"state\": \"init\", \"why\": \"nothing has come back\"}");
        assert_eq!(a.state(), ("init", Some("nothing has come back")));
        let a = access("{\"state\": \"active\", \"why\": \"it is fine\"}");
        assert_eq!(a.state(), ("active", None));
    }
}
