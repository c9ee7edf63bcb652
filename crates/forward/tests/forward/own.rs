//! Programs of the device itself, where their questions to resolvers may leave past the bond.

use std::net::{IpAddr, UdpSocket};
use std::time::Duration;

use braid_forward::divert::{Divert, Programs, Setting, release_own, remove_routes};
use braid_forward::inbound::Tproxy;
use braid_forward::tunnel::device::Tunnel;
use braid_netns::world::lan::{Lan, SERVER};
use braid_netns::world::{Ns, World};
use tokio::sync::watch;

use crate::ends::{blocking, runtime};

const DNS: u16 = 53;
const OTHER: u16 = 5001;

/// Tells each that sends a datagram from where it came.
fn serve(server: &Ns) {
    for at in SERVER {
        for port in [DNS, OTHER] {
            let udp = server.run(|| UdpSocket::bind((at, port)).unwrap());
            server.spawn(move || {
                while let Ok((_, from)) = udp.recv_from(&mut [0; 2000]) {
                    let _ = udp.send_to(from.ip().to_string().as_bytes(), from);
                }
            });
        }
    }
}

/// Asks the server from where it sees a program in this namespace.
fn origin(at: IpAddr, port: u16) -> std::io::Result<IpAddr> {
    let any: IpAddr = match at {
        IpAddr::V4(_) => [0; 4].into(),
        IpAddr::V6(_) => [0; 16].into(),
    };
    let udp = UdpSocket::bind((any, 0))?;
    udp.set_read_timeout(Some(Duration::from_secs(2)))?;
    udp.connect((at, port))?;
    udp.send(b"hello")?;
    let mut text = [0; 100];
    let n = udp.recv(&mut text)?;
    Ok(std::str::from_utf8(&text[..n]).unwrap().parse().unwrap())
}

#[test]
fn a_name_can_be_resolved_while_there_is_no_tunnel() {
    for resolves_past in [true, false] {
        let Some(w) = World::new(1) else { return };
        let lan = Lan::beside(&w);
        serve(&lan.server);
        let started = async {
            let setting = Setting {
                own: Some(Programs {
                    past: vec![],
                    refuse: true,
                    resolves_past,
                }),
                ..Setting::default()
            };
            let ports = Tproxy::listen().unwrap().ports();
            // Of a tunnel over a session that never comes there is the interface alone.
            let tunnel = Tunnel::create().await.unwrap();
            let (_keep, sessions) = watch::channel(None);
            let _running = tokio::spawn(tunnel.run(sessions, |_| {}));
            let divert = Divert::start(&setting, [(0, ports)].into(), vec![]);
            let divert = divert.await.unwrap();
            blocking(move || {
                for (at, own) in SERVER.into_iter().zip(["10.77.1.2", "fd77:0:1::2"]) {
                    let asked = origin(at, DNS).ok().map(|a| a.to_string());
                    assert_eq!(asked, resolves_past.then(|| own.to_owned()), "{at}");
                    origin(at, OTHER).unwrap_err();
                }
            })
            .await;
            drop(divert);
            remove_routes().await.unwrap();
            blocking(move || {
                for at in SERVER {
                    origin(at, DNS).unwrap_err();
                }
            })
            .await;
            release_own().await.unwrap();
            blocking(move || {
                for at in SERVER {
                    origin(at, OTHER).unwrap();
                }
            })
            .await;
        };
        w.device.run(|| runtime().block_on(started));
    }
}
