//! Builds real topologies and sends packets through them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpListener;

use braid_netns::{Family, HostsSpec, Namespace, PortChoice, Topology, TopologySpec};
use braid_radio::emulator::PortKind;

use braid_netns::world::topology::{
    Wire, can_build, connect, device, device_named, eventually, interfaces, left_by, send, users_of,
};

/// Every family and kind of port that this machine has.
fn each_kind(accesses: &[&str], mut check: impl FnMut(TopologySpec)) {
    if !can_build() {
        return;
    }
    for family in [Family::Ipv4, Family::Ipv6] {
        for ports in [PortChoice::Tun, PortChoice::Packet] {
            if ports == PortChoice::Tun && braid_netns::tun_usable().is_err() {
                println!("skipped for TUN: /dev/net/tun cannot be opened");
                continue;
            }
            println!("{family:?} over {ports:?}");
            check(TopologySpec {
                family,
                ports,
                ..TopologySpec::new("test", device(accesses))
            });
        }
    }
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|n| (*n).to_string()).collect()
}

#[test]
fn each_source_address_leaves_by_its_own_access() {
    each_kind(&["nr", "wifi", "lifi"], |spec| {
        let topology = Topology::build(&spec).unwrap();
        assert_eq!(topology.notes, Vec::<String>::new());
        let cpe = &topology.devices[0];
        left_by(&topology);
        for access in &cpe.accesses {
            send(&cpe.namespace, Some(access.device.addr), topology.service).unwrap();
            assert_eq!(left_by(&topology), set(&[&access.name]));
        }
        // Without a source address, by the first.
        send(&cpe.namespace, None, topology.service).unwrap();
        assert_eq!(left_by(&topology), set(&["nr"]));
        let tun = matches!(cpe.accesses[0].ports.device.kind, PortKind::Tun);
        assert_eq!(tun, spec.ports == PortChoice::Tun);
        for access in &cpe.accesses {
            let index = cpe
                .namespace
                .run(|| nix::net::if_::if_nametoindex(&*access.device.name))
                .unwrap()
                .unwrap();
            assert_eq!(access.device.ifindex, index);
            assert_eq!(access.device.name, access.name);
            assert_eq!(access.proxy.name, format!("cpe-{}", access.name));
        }
    });
}

#[test]
fn a_payload_crosses_every_access_whole() {
    each_kind(&["nr", "wifi", "lifi"], |spec| {
        let topology = Topology::build(&spec).unwrap();
        let wire = Wire::start(&topology);
        let cpe = &topology.devices[0];
        let listener = topology
            .proxy
            .run(|| TcpListener::bind((topology.service, 0)))
            .unwrap()
            .unwrap();
        let port = listener.local_addr().unwrap().port();
        for access in &cpe.accesses {
            let payload: Vec<u8> = (0..300_000u32).flat_map(u32::to_le_bytes).collect();
            let sent = payload.clone();
            let mut stream = cpe
                .namespace
                .run(|| connect(access.device.addr, topology.service, port))
                .unwrap();
            let (mut at_proxy, from) = listener.accept().unwrap();
            assert_eq!(from.ip(), access.device.addr);
            let sender = std::thread::spawn(move || at_proxy.write_all(&sent));
            let mut received = vec![0; payload.len()];
            stream.read_exact(&mut received).unwrap();
            sender.join().unwrap().unwrap();
            assert!(received == payload, "payload changed on {}", access.name);
        }
        drop(wire);
    });
}

#[test]
fn a_host_behind_the_device_reaches_a_server_behind_the_proxy() {
    each_kind(&["nr", "wifi"], |spec| {
        let routed_by = Some("wifi".to_owned());
        let spec = TopologySpec {
            hosts: Some(HostsSpec { routed_by }),
            ..spec
        };
        let topology = Topology::build(&spec).unwrap();
        let hosts = topology.hosts.as_ref().unwrap();
        let wire = Wire::start(&topology);
        let listener = hosts
            .server
            .run(|| TcpListener::bind((hosts.server_addr, 0)))
            .unwrap()
            .unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut stream = hosts
            .host
            .run(|| connect(hosts.host_addr, hosts.server_addr, port))
            .unwrap();
        let (mut at_server, from) = listener.accept().unwrap();
        assert_eq!(from.ip(), hosts.host_addr);
        let sender = std::thread::spawn(move || at_server.write_all(&[7; 100_000]));
        let mut received = vec![0; 100_000];
        stream.read_exact(&mut received).unwrap();
        sender.join().unwrap().unwrap();
        drop(wire);
    });
}

#[test]
fn nothing_leads_back_to_a_host_unless_an_access_is_named() {
    each_kind(&["nr"], |spec| {
        let spec = TopologySpec {
            hosts: Some(HostsSpec::default()),
            ..spec
        };
        let topology = Topology::build(&spec).unwrap();
        let hosts = topology.hosts.as_ref().unwrap();
        assert!(send(&topology.proxy, None, hosts.host_addr).is_err());
        // The host's packets leave, as the routes of the device have it.
        left_by(&topology);
        send(&hosts.host, None, hosts.server_addr).unwrap();
        eventually("it has left", || left_by(&topology) == set(&["nr"]));
        // A name that an access has is not taken from it.
        assert_eq!(hosts.lan.name, "lan");
        drop(topology);
        let spec = TopologySpec {
            devices: device(&["lan"]),
            ..spec.clone()
        };
        let topology = Topology::build(&spec).unwrap();
        assert_eq!(topology.hosts.as_ref().unwrap().lan.name, "lan2");
    });
}

#[test]
fn a_link_that_comes_up_again_is_routed_again() {
    each_kind(&["nr", "wifi"], |spec| {
        let topology = Topology::build(&spec).unwrap();
        let cpe = &topology.devices[0];
        let nr = cpe.accesses[0].device.addr;
        left_by(&topology);
        assert_eq!(topology.link_state("cpe", "nr").unwrap(), (true, true));
        for _ in 0..2 {
            topology.link_down("cpe", "nr").unwrap();
            assert!(!topology.link_state("cpe", "nr").unwrap().0);
            // Nothing of this access may leave by the other one.
            assert!(send(&cpe.namespace, Some(nr), topology.service).is_err());
            assert_eq!(left_by(&topology), set(&[]));
            send(&cpe.namespace, None, topology.service).unwrap();
            assert_eq!(left_by(&topology), set(&["wifi"]));

            topology.link_up("cpe", "nr", 1).unwrap();
            eventually("the link is up", || {
                topology.link_state("cpe", "nr").unwrap() == (true, true)
            });
            send(&cpe.namespace, Some(nr), topology.service).unwrap();
            assert_eq!(left_by(&topology), set(&["nr"]));
            send(&cpe.namespace, None, topology.service).unwrap();
            assert_eq!(left_by(&topology), set(&["nr"]));
        }
        assert_eq!(
            topology.link_up("cpe", "lte", 1).unwrap_err().exit_code(),
            2
        );
    });
}

#[test]
fn an_access_can_get_another_address() {
    each_kind(&["nr", "wifi"], |spec| {
        let topology = Topology::build(&spec).unwrap();
        let cpe = &topology.devices[0];
        let nr = &cpe.accesses[0];
        left_by(&topology);
        for n in 2..4 {
            let (old, new) = (nr.address(n - 1), nr.address(n));
            topology.link_down("cpe", "nr").unwrap();
            topology.forget_address("cpe", "nr", n - 1).unwrap();
            topology.link_up("cpe", "nr", n).unwrap();
            eventually("the link is up", || {
                topology.link_state("cpe", "nr").unwrap() == (true, true)
            });
            assert!(send(&cpe.namespace, Some(old), topology.service).is_err());
            send(&cpe.namespace, Some(new), topology.service).unwrap();
            assert_eq!(left_by(&topology), set(&["nr"]), "from {new}");
        }
        // Twice does no harm.
        topology.forget_address("cpe", "nr", 1).unwrap();
        assert!(topology.forget_address("cpe", "lte", 1).is_err());
    });
}

#[test]
fn a_lost_carrier_diverts_traffic_until_it_is_back() {
    each_kind(&["nr", "wifi"], |spec| {
        let topology = Topology::build(&spec).unwrap();
        let cpe = &topology.devices[0];
        left_by(&topology);
        let leaves_by = |name: &str| {
            send(&cpe.namespace, None, topology.service).unwrap();
            left_by(&topology) == set(&[name])
        };
        topology.carrier("cpe", "nr", false).unwrap();
        assert_eq!(topology.link_state("cpe", "nr").unwrap(), (true, false));
        eventually("traffic is diverted", || leaves_by("wifi"));
        topology.carrier("cpe", "nr", true).unwrap();
        assert_eq!(topology.link_state("cpe", "nr").unwrap(), (true, true));
        eventually("traffic is back", || leaves_by("nr"));
    });
}

#[test]
fn nothing_is_left_of_a_topology() {
    let before = interfaces();
    each_kind(&["nr", "wifi"], |spec| {
        let topology = Topology::build(&spec).unwrap();
        assert_eq!(
            interfaces(),
            before,
            "the host's namespace got an interface"
        );
        let namespaces = [&topology.proxy, &topology.devices[0].namespace];
        let inodes = namespaces.map(|n| n.inode().unwrap());
        assert!(inodes.iter().all(|i| !users_of(*i).is_empty()));
        drop(topology);
        for inode in inodes {
            // A parallel test may be forking, with our descriptors.
            eventually("nobody uses the namespace", || users_of(inode).is_empty());
        }
        assert_eq!(interfaces(), before);
    });
}

#[test]
fn two_topologies_do_not_see_each_other() {
    each_kind(&["nr", "wifi"], |spec| {
        let topologies = [
            Topology::build(&spec).unwrap(),
            Topology::build(&spec).unwrap(),
        ];
        assert_eq!(topologies[0].service, topologies[1].service);
        for t in &topologies {
            left_by(t);
        }
        for (this, other) in [(0, 1), (1, 0)] {
            let cpe = &topologies[this].devices[0];
            send(
                &cpe.namespace,
                Some(cpe.accesses[1].device.addr),
                topologies[this].service,
            )
            .unwrap();
            assert_eq!(left_by(&topologies[other]), set(&[]));
            assert_eq!(left_by(&topologies[this]), set(&["wifi"]));
        }
        let [first, second] = topologies;
        drop(first);
        let cpe = &second.devices[0];
        send(&cpe.namespace, None, second.service).unwrap();
        assert_eq!(left_by(&second), set(&["nr"]));
    });
}

#[test]
fn many_devices_with_odd_names_share_a_proxy() {
    if !can_build() {
        return;
    }
    let devices = vec![
        device_named(
            "station 1 of the very long name",
            &["wifi", "wi/fi", "5G: n78 (3.5 GHz)"],
        ),
        device_named("station 2 of the very long name", &["wifi"]),
        device_named("empty", &[]),
    ];
    let topology = Topology::build(&TopologySpec::new("test", devices)).unwrap();
    let mut names = BTreeSet::new();
    let mut numbers = Vec::new();
    for device in &topology.devices {
        for access in &device.accesses {
            assert!(names.insert(access.proxy.name.clone()));
            numbers.push((access.number, access.device.addr.to_string()));
        }
    }
    let expected = [1, 2, 3, 4].map(|k| (k, format!("10.77.{k}.2")));
    assert_eq!(numbers, expected);
    let proxy = topology.proxy.run(interfaces).unwrap();
    assert!(names.is_subset(&proxy), "{names:?} {proxy:?}");
}

#[test]
fn settings_are_made_and_refused_ones_reported() {
    if !can_build() {
        return;
    }
    let mut spec = TopologySpec::new("test", device(&["nr"]));
    spec.tcp_wmem = [4096, 20_000, 1 << 24];
    spec.mtu = 1400;
    spec.sysctls = BTreeMap::from([
        ("net.ipv4.tcp_slow_start_after_idle".into(), "0".into()),
        ("net.ipv4.no_such_setting".into(), "1".into()),
    ]);
    let topology = Topology::build(&spec).unwrap();
    assert_eq!(topology.notes.len(), 1, "{:?}", topology.notes);
    assert!(topology.notes[0].starts_with("could not set net.ipv4.no_such_setting to \"1\""));
    for namespace in [&topology.proxy, &topology.devices[0].namespace] {
        let read = |path: &str| {
            let path = format!("/proc/sys/net/{path}");
            let text = namespace
                .run(|| std::fs::read_to_string(path).unwrap())
                .unwrap();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(read("ipv4/tcp_wmem"), "4096 20000 16777216");
        let [min, initial, max] = spec.tcp_rmem;
        assert_eq!(read("ipv4/tcp_rmem"), format!("{min} {initial} {max}"));
        assert_eq!(read("ipv4/tcp_slow_start_after_idle"), "0");
        assert_eq!(read("ipv4/conf/all/rp_filter"), "0");
    }
}

#[test]
fn bad_specifications_are_refused_as_bad_input() {
    let refused = |spec: TopologySpec, why: &str| {
        let error = Topology::build(&spec).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    };
    let good = || TopologySpec::new("test", device(&["nr", "wifi"]));
    refused(
        TopologySpec {
            devices: device(&["nr", "nr"]),
            ..good()
        },
        "two accesses of cpe are called \"nr\"",
    );
    refused(
        TopologySpec {
            devices: [device(&[]), device(&[])].concat(),
            ..good()
        },
        "two devices",
    );
    refused(TopologySpec { mtu: 40, ..good() }, "MTU of 40 bytes");
    refused(
        TopologySpec {
            mtu: 1279,
            family: Family::Ipv6,
            ..good()
        },
        "1280 to 65535",
    );
    refused(
        TopologySpec {
            prefix: "224.1.0.0/16".parse().ok(),
            ..good()
        },
        "multicast",
    );
    refused(
        TopologySpec {
            prefix: "198.18.0.0/30".parse().ok(),
            ..good()
        },
        "too small for 2 accesses",
    );
    refused(
        TopologySpec {
            prefix: "198.18.0.0/16".parse().ok(),
            family: Family::Ipv6,
            ..good()
        },
        "no IPv6 range",
    );
}

#[test]
fn a_range_that_the_host_routes_is_busy() {
    if !can_build() {
        return;
    }
    // A host of our own, with a network where labs usually live.
    let host = Namespace::create("host").unwrap();
    let add = async |handle: rtnetlink::Handle| {
        handle
            .link()
            .add(rtnetlink::LinkVeth::new("eth0", "cable").up().build())
            .execute()
            .await?;
        let lookup = |name: &'static str| nix::net::if_::if_nametoindex(name);
        handle
            .address()
            .add(lookup("eth0")?, "10.77.4.1".parse()?, 24)
            .execute()
            .await?;
        Ok(())
    };
    host.netlink(add).unwrap();
    let spec = TopologySpec::new("test", device(&["nr"]));
    let (moved, chosen) = host
        .run(|| {
            let chosen = TopologySpec {
                prefix: "10.77.0.0/16".parse().ok(),
                ..spec.clone()
            };
            (
                Topology::build(&spec).unwrap(),
                Topology::build(&chosen).unwrap_err(),
            )
        })
        .unwrap();
    assert_eq!(moved.prefix.to_string(), "10.78.0.0/16");
    assert_eq!(
        moved.devices[0].accesses[0].device.addr.to_string(),
        "10.78.1.2"
    );
    assert!(
        moved.notes[0].contains("10.77.4.0/24 by eth0"),
        "{:?}",
        moved.notes
    );
    assert_eq!(chosen.exit_code(), 2);
    assert!(
        chosen
            .to_string()
            .contains("is busy: this host routes 10.77.4."),
        "{chosen}"
    );
    assert!(chosen.to_string().ends_with("use 10.78.0.0/16"), "{chosen}");
}
