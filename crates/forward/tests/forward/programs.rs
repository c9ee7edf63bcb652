//! TCP connections of programs over real sessions, between two network namespaces.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use braid_forward::inbound::{Port, Socks};
use braid_forward::wire::{self, Request};
use braid_mpquic::Session;
use braid_netns::world::{self, SERVICE, World};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;

use crate::ends::{between, blocking, on_both_lanes, serve_service};

fn fetch_some(mut tcp: TcpStream) {
    world::fetch(&mut tcp, 5_000_000);
    world::fetch(&mut tcp, 1);
    world::ask(&mut tcp, 0);
}

#[test]
fn programs_are_forwarded_where_that_is_allowed() {
    on_both_lanes(|options| {
        let Some(w) = World::new(2) else { return };
        let listener = w.proxy.run(|| TcpListener::bind((SERVICE, 5001)).unwrap());
        let server = w.serve(listener);
        between(&w, &options, serve_service, |carrier| async move {
            let to = |ip: [u8; 4], port| SocketAddr::from((ip, port));
            let (tell, mut told) = mpsc::unbounded_channel();
            let mut ports = Vec::new();
            for to in [
                to([10, 77, 0, 1], 5001),
                to([10, 77, 0, 1], 5002),
                to([192, 0, 2, 1], 80),
            ] {
                let port = Port::listen("127.0.0.1:0".parse().unwrap(), to);
                let port = port.await.unwrap();
                ports.push(port.address().unwrap());
                let tell = tell.clone();
                let told = move |what| drop(tell.send(what));
                tokio::spawn(port.serve(Arc::clone(&carrier), told));
            }
            let good = ports[0];
            blocking(move || fetch_some(TcpStream::connect(good).unwrap())).await;
            for (port, why) in [(ports[1], "nobody listens"), (ports[2], "not allowed")] {
                let mut tcp = tokio::net::TcpStream::connect(port).await.unwrap();
                let mut rest = Vec::new();
                let _ = tcp.read_to_end(&mut rest).await;
                assert!(rest.is_empty());
                let told = told.recv().await.unwrap();
                assert!(told.contains(why), "{told}");
            }
        });
        server.join().unwrap();
    });
}

/// Asks a SOCKS server for a command and a destination, byte by byte as RFC 1928 has it; gives the
/// reply's code.
fn ask_socks(at: SocketAddr, command: u8, destination: &[u8], port: u16) -> (TcpStream, u8) {
    let mut tcp = TcpStream::connect(at).unwrap();
    tcp.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    tcp.write_all(&[5, 1, 0]).unwrap();
    let mut method = [0; 2];
    tcp.read_exact(&mut method).unwrap();
    assert_eq!(method, [5, 0]);
    let mut request = vec![5, command, 0];
    request.extend(destination);
    request.extend(port.to_be_bytes());
    tcp.write_all(&request).unwrap();
    let mut reply = [0; 10];
    tcp.read_exact(&mut reply).unwrap();
    assert_eq!((reply[0], reply[3]), (5, 1), "{reply:?}");
    (tcp, reply[1])
}

#[test]
fn programs_that_speak_socks_are_served_and_told_why_not() {
    const V4: u8 = 1;
    const NAME: u8 = 3;
    on_both_lanes(|options| {
        let Some(w) = World::new(2) else { return };
        let listener = w.proxy.run(|| TcpListener::bind((SERVICE, 5001)).unwrap());
        let server = w.serve(listener);
        between(&w, &options, serve_service, |carrier| async move {
            let socks = Socks::listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
            let at = socks.address().unwrap();
            let (tell, mut told) = mpsc::unbounded_channel();
            let told_by = move |what| drop(tell.send(what));
            tokio::spawn(socks.serve(carrier, told_by));
            blocking(move || {
                let service = [V4, 10, 77, 0, 1];
                let name = |name: &str| [&[NAME, name.len() as u8], name.as_bytes()].concat();
                let (tcp, reply) = ask_socks(at, 1, &service, 5001);
                assert_eq!(reply, 0);
                fetch_some(tcp);
                let refused = |command, destination: &[u8], port| {
                    let (mut tcp, reply) = ask_socks(at, command, destination, port);
                    let mut rest = Vec::new();
                    let _ = tcp.read_to_end(&mut rest);
                    assert!(rest.is_empty());
                    reply
                };
                assert_eq!(refused(1, &service, 5002), 5, "nobody listens");
                assert_eq!(refused(1, &[V4, 192, 0, 2, 1], 80), 2, "not allowed");
                // The proxy resolves it, to an address that is not allowed.
                assert_eq!(refused(1, &name("localhost"), 80), 2);
                assert_eq!(refused(1, &name("nowhere.invalid"), 80), 4);
                // An address as text is one.
                assert_eq!(refused(1, &name("10.77.0.1"), 5002), 5);
                assert_eq!(refused(1, &name("no name"), 80), 8);
                assert_eq!(refused(3, &service, 5001), 7, "UDP");
            })
            .await;
            for why in [
                "nobody listens",
                "not allowed",
                "localhost:80",
                "nowhere.invalid:80",
            ] {
                let told = told.recv().await.unwrap();
                assert!(told.contains(why), "{told}");
            }
        });
        server.join().unwrap();
    });
}

#[test]
fn what_a_program_writes_does_not_wait_for_the_reply() {
    on_both_lanes(|options| {
        let Some(w) = World::new(2) else { return };
        let there = |session: Session| async move {
            let mut stream = session.accept().await.unwrap();
            let to = match wire::read_request(&mut stream).await.unwrap() {
                Request::Connection(to, 0) => to.to_string(),
                other => panic!("{other:?}"),
            };
            assert_eq!(to, "192.0.2.1:80");
            let mut got = [0; 5];
            stream.read_exact(&mut got).await.unwrap();
            assert_eq!(&got, b"hello");
            wire::reply(&mut stream, Ok(())).await.unwrap();
            stream.write_all(b"there").await.unwrap();
            let _ = stream.shutdown().await;
        };
        between(&w, &options, there, |carrier| async move {
            let to: SocketAddr = "192.0.2.1:80".parse().unwrap();
            let mut far = carrier.connect(&to.into()).await.unwrap();
            far.write_all(b"hello").await.unwrap();
            let mut got = Vec::new();
            far.read_to_end(&mut got).await.unwrap();
            assert_eq!(got, b"there");
        });
    });
}
