//! Configuration of the ends of Multipath QUIC beside the accesses.

use std::path::PathBuf;

use anyhow::Result;
use braid_core::api::Role;
use braid_mpquic::tls::{Identity, Pin};
use serde_json::{Value, json};

use super::Context;
use super::apps::{FORWARDED, PORT};
use crate::scenario::{Case, Engine};
use braid_netns::Topology;

/// Keys of both ends, made for this run.
pub(super) struct Keys {
    proxy: (PathBuf, PathBuf, Pin),
    device: (PathBuf, PathBuf, Pin),
}

/// Makes them, for a case that needs them.
pub(super) fn keys(context: &Context<'_>, case: &Case) -> Result<Option<Keys>> {
    if !matches!(case.engine, Engine::Mpquic { .. }) {
        return Ok(None);
    }
    let make = |end: &str| -> Result<_> {
        let dir = context.run.dir();
        let files = (
            dir.join(format!("{end}.crt")),
            dir.join(format!("{end}.key")),
        );
        // Those of the case before.
        let _ = std::fs::remove_file(&files.0);
        let _ = std::fs::remove_file(&files.1);
        let pin = Identity::create("braid", &files.0, &files.1)?.pin();
        Ok((files.0, files.1, pin))
    };
    Ok(Some(Keys {
        proxy: make("proxy")?,
        device: make("device")?,
    }))
}

/// `[mpquic]` of an end.
pub(super) fn section(keys: &Keys, case: &Case, topology: &Topology, role: Role) -> Value {
    let (own, other) = match role {
        Role::Device => (&keys.device, &keys.proxy),
        Role::Proxy => (&keys.proxy, &keys.device),
    };
    let mut all = json!({
        "certificate": own.0,
        "key": own.1,
        "pins": [other.2.to_string()],
        "cc": case.cc.as_deref().unwrap_or("cubic"),
    });
    if let Engine::Mpquic {
        lane,
        reinject,
        resume,
        acks,
        send_window,
    } = &case.engine
    {
        all["resume"] = json!(resume);
        all["lane"] = json!(lane);
        all["reinject"] = json!(reinject);
        all["acks"] = json!(acks);
        all["send_window"] = json!(send_window);
    }
    let service = topology.service;
    match role {
        Role::Device => {
            let to = std::net::SocketAddr::new(service, PORT);
            all["forward"] = json!([{ "listen": FORWARDED, "to": to }]);
        }
        Role::Proxy => all["allow"] = json!([service.to_string()]),
    }
    all
}
