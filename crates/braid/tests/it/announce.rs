//! Accesses that do not reach the address that was connected to.

use std::net::{IpAddr, SocketAddr};

use crate::support::daemon::Daemon;
use crate::support::traffic::{PROXY, Traffic, runs_on};
use braid_api::Connections;
use braid_mptcp::pm::{Endpoint, EndpointFlags, PathManager};
use braid_netns::world::{SERVICE, SERVICE6, World, device4, eventually};
use nix::sys::signal::Signal;

/// One access with IPv6 alone, and one with IPv4.
const DEVICE: &str = r#"proxy = ["10.77.0.1", "fd77::1"]
manager = { mesh = "full", max_addresses_per_interface = 1 }
[access.nr]
interface = "d1"
address = "fd77:0:1::2"
[access.wifi]
interface = "d2"
address = "10.77.2.2"
"#;

fn announced(w: &World) -> Vec<IpAddr> {
    let all = w
        .proxy
        .run(|| PathManager::open().unwrap().endpoints().unwrap());
    let signal = |e: &&Endpoint| e.flags.contains(EndpointFlags::SIGNAL);
    all.iter().filter(signal).map(|e| e.address).collect()
}

#[test]
fn an_access_of_another_family_joins_by_an_address_that_is_announced() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let with = |list: &str| format!("announce = [{list}]\n{PROXY}");
    // The one that was connected to as well: it is no further path.
    let all = "\"10.77.0.1\", \"fd77::1\"";
    let mut proxy = Daemon::start(&w.proxy, t.path(), "proxy", &with(""));
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let any: SocketAddr = "[::]:80".parse().unwrap();
    let six = SocketAddr::new(SERVICE6.into(), 80);
    let traffic = Traffic::with_server_at(&w, any, six, 400_000);
    let first: IpAddr = "fd77:0:1::2".parse().unwrap();
    runs_on(&device, &[first]);
    // Connections that live are told, too.
    std::fs::write(&proxy.config, with(all)).unwrap();
    proxy.signal(Signal::SIGHUP);
    let both = [first, device4(2)];
    runs_on(&device, &both);
    traffic.goes_on();
    let now: Connections = device.get("/v1/connections");
    let counts = now.connections.iter().map(|c| c.subflows.len());
    assert_eq!(counts.collect::<Vec<_>>(), [2]);
    assert_eq!(proxy.end(Signal::SIGKILL), None);
    traffic.goes_on();
    let there: Vec<IpAddr> = vec![SERVICE.into(), SERVICE6.into()];
    assert_eq!(announced(&w), there);
    let mut proxy = Daemon::start(&w.proxy, t.path(), "proxy", &with(all));
    runs_on(&device, &both);
    assert_eq!(announced(&w), there);
    // What a killed one announced is not announced for ever.
    assert_eq!(proxy.end(Signal::SIGKILL), None);
    let mut proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    traffic.goes_on();
    // But as long as a connection is on it.
    assert_eq!(announced(&w), there);
    runs_on(&device, &both);
    assert_eq!(proxy.end(Signal::SIGTERM), Some(0));
    traffic.goes_on();
    let mut proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    traffic.goes_on();
    traffic.stop();
    eventually("nothing announced", || {
        announced(&w).is_empty().then_some(())
    });
    assert_eq!(proxy.end(Signal::SIGTERM), Some(0));
}
