//! Packets of hosts of a LAN through the tunnel, to destinations beyond the proxy.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use braid_forward::divert::{Divert, engage_kill_switch};
use braid_forward::inbound::{Ports, Tproxy};
use braid_forward::tunnel::device::{State, Tunnel};
use braid_mpquic::{Lane, Options};
use braid_netns::world::lan::{LAN, Lan, SERVER};
use braid_netns::world::{Ns, World, device4};

use crate::ends::{blocking, hosts, serve_packets, serve_service, with_sessions};

const PORT: u16 = 5001;

/// Echoes datagrams at an address, and tells from where they come.
fn echo(server: &Ns, at: IpAddr) {
    let udp = server.run(|| UdpSocket::bind((at, PORT)).unwrap());
    server.spawn(move || {
        let mut buffer = [0; 65536];
        while let Ok((n, from)) = udp.recv_from(&mut buffer) {
            let ip = match from.ip() {
                IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                IpAddr::V6(ip) => ip,
            };
            let reply = [&ip.octets()[..], &buffer[..n.saturating_sub(16)]].concat();
            let _ = udp.send_to(&reply, from);
        }
    });
}

/// Sends datagrams of this length from the host, and returns from where they came.
fn asked(host: &Ns, at: IpAddr, length: usize) -> std::io::Result<IpAddr> {
    host.run(|| {
        let any: IpAddr = match at {
            IpAddr::V4(_) => [0; 4].into(),
            IpAddr::V6(_) => [0; 16].into(),
        };
        let udp = UdpSocket::bind((any, 0))?;
        udp.connect(SocketAddr::new(at, PORT))?;
        udp.set_read_timeout(Some(Duration::from_secs(2)))?;
        let sent: Vec<u8> = (0..length).map(|i| i as u8).collect();
        let mut from = IpAddr::from([0; 4]);
        for _ in 0..5 {
            udp.send(&sent)?;
            let mut reply = vec![0; 65536];
            let n = udp.recv(&mut reply)?;
            assert_eq!(n, length);
            assert_eq!(reply[16..n], sent[..n - 16]);
            let octets: [u8; 16] = reply[..16].try_into().unwrap();
            from = IpAddr::from(Ipv6Addr::from(octets)).to_canonical();
        }
        Ok(from)
    })
}

fn ping(host: &Ns, at: IpAddr) -> bool {
    let mut ping = Command::new("ping");
    ping.args(["-c", "1", "-W", "2"]).arg(at.to_string());
    host.run(|| ping.output().unwrap()).status.success()
}

/// Rules of a device without connections.
fn ports() -> Ports {
    Tproxy::listen().unwrap().ports()
}

#[test]
fn packets_of_hosts_go_through_the_tunnel() {
    let Some(w) = World::new(2) else { return };
    let lan = Arc::new(Lan::beside(&w));
    SERVER.into_iter().for_each(|at| echo(&lan.server, at));
    let there = Arc::clone(&lan);
    let has_ping = Command::new("ping").arg("-V").output().is_ok();
    with_sessions(
        &w,
        &Options::default(),
        serve_packets,
        |sessions| async move {
            engage_kill_switch(&[LAN.into()], false).unwrap();
            let tunnel = Tunnel::create().await.unwrap();
            let mut state = tunnel.state();
            let divert = Divert::start(&hosts(), [(0, ports())].into(), vec![])
                .await
                .unwrap();
            let running = tokio::spawn(tunnel.run(sessions, |_| {}));
            let up = |s: &State| matches!(s, State::Up(_));
            let up = tokio::time::timeout(Duration::from_secs(5), state.wait_for(up)).await;
            let State::Up(given) = up.unwrap().unwrap().clone() else {
                unreachable!("it is up");
            };
            assert!(given.v4.to_string().starts_with("10.137.0."), "{given:?}");
            blocking(move || {
                let of_the_proxy: [IpAddr; 2] =
                    ["45.11.0.1", "2a0f:45::1"].map(|a| a.parse().unwrap());
                for (at, from) in SERVER.into_iter().zip(of_the_proxy) {
                    for length in [16, 1200, 1452, 4000] {
                        assert_eq!(asked(&there.host, at, length).unwrap(), from, "{length}");
                    }
                    assert!(!has_ping || ping(&there.host, at), "{at}");
                }
                // The proxy itself, another device's address, and its private network are not reached.
                for at in ["45.11.0.1", "10.137.0.77", "192.168.7.7"] {
                    let e = asked(&there.host, at.parse().unwrap(), 100).unwrap_err();
                    let told = [
                        libc::EAGAIN,
                        libc::EACCES,
                        libc::EHOSTUNREACH,
                        libc::ENETUNREACH,
                    ];
                    assert!(told.contains(&e.raw_os_error().unwrap()), "{at}: {e}");
                }
            })
            .await;
            running.abort();
            let _ = running.await;
            divert.close().await.unwrap();
        },
    );
    // Neither is the host: who knows where it is from comes in by no tunnel.
    assert!(asked(&lan.server, device4(1), 100).is_err());
}

#[test]
fn a_device_is_told_why_there_is_no_tunnel() {
    for (lane, why) in [
        (Lane::Datagram, "it has no [gateway]"),
        (Lane::Stream, "datagram lane alone"),
    ] {
        let Some(w) = World::new(2) else { return };
        let options = Options {
            lane,
            ..Options::default()
        };
        with_sessions(&w, &options, serve_service, |sessions| async move {
            let tunnel = Tunnel::create().await.unwrap();
            let mut state = tunnel.state();
            let _running = tokio::spawn(tunnel.run(sessions, |_| {}));
            let down = |s: &State| matches!(s, State::Down(told) if told.contains(why));
            let told = tokio::time::timeout(Duration::from_secs(5), state.wait_for(down)).await;
            assert!(told.is_ok(), "{why}");
        });
    }
}
