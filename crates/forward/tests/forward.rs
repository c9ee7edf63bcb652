//! TCP connections of programs over real sessions, between two network namespaces.

use std::net::{SocketAddr, TcpListener};

use braid_forward::{Allowed, Forward, serve};
use braid_mpquic::tls::{self, Devices, Identity, Pin, Trust};
use braid_mpquic::{Access, Device, Lane, Options, Proxy, Session};
use braid_netns::world::{self, SERVICE, World};
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;

const PORT: u16 = 4433;

fn on_both_lanes(test: impl Fn(Options)) {
    for lane in [Lane::Stream, Lane::Datagram] {
        test(Options {
            lane,
            ..Options::default()
        });
    }
}

fn runtime() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}

/// A session over the first two accesses of the world.
async fn connect(pin: Pin, options: &Options) -> Session {
    let tls = tls::client(&Trust::Pins(vec![pin]), None, tls::alpn(options.lane)).unwrap();
    let at = SocketAddr::from((SERVICE, PORT));
    let access = |k| Access::on(&format!("a{k}"), &format!("d{k}"));
    let accesses = (1..=2).map(access).collect();
    let made = Device::connect(at, "proxy.example", tls, options.clone(), accesses).await;
    made.unwrap().1
}

#[test]
fn programs_are_forwarded_where_that_is_allowed() {
    on_both_lanes(|options| {
        let Some(w) = World::new(2) else { return };
        let identity = Identity::generate("proxy.example").unwrap();
        let pin = identity.pin();
        let listener = w.proxy.run(|| TcpListener::bind((SERVICE, 5001)).unwrap());
        let server = w.serve(listener);
        let (ready, when) = std::sync::mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let proxy_options = options.clone();
        let proxy = w.proxy.spawn(move || {
            runtime().block_on(async {
                let tls = tls::server(&identity, &Devices::Anyone, tls::alpn(proxy_options.lane))
                    .unwrap();
                let at = SocketAddr::from((SERVICE, PORT));
                let proxy = Proxy::listen(&[at], tls, &proxy_options, vec![]).unwrap();
                ready.send(()).unwrap();
                let session = proxy.accept().await.unwrap();
                let allowed = Allowed(vec!["10.77.0.0/24".parse().unwrap()]);
                let (others, _) = tokio::sync::mpsc::channel(1);
                tokio::select! {
                    () = serve(session, allowed, others) => {}
                    _ = stopped => {}
                }
            });
        });
        when.recv().unwrap();
        w.device.run(|| {
            runtime().block_on(async {
                let session = connect(pin, &options).await;
                let (_keep, sessions) = tokio::sync::watch::channel(Some(session));
                let to = |ip: [u8; 4], port| SocketAddr::from((ip, port));
                let (tell, mut told) = mpsc::unbounded_channel();
                let mut ports = Vec::new();
                for to in [
                    to([10, 77, 0, 1], 5001),
                    to([10, 77, 0, 1], 5002),
                    to([192, 0, 2, 1], 80),
                ] {
                    let f = Forward::listen("127.0.0.1:0".parse().unwrap(), to)
                        .await
                        .unwrap();
                    ports.push(f.address().unwrap());
                    let tell = tell.clone();
                    let told = move |what| drop(tell.send(what));
                    tokio::spawn(f.serve(sessions.clone(), told));
                }
                let good = ports[0];
                tokio::task::spawn_blocking(move || {
                    let mut tcp = std::net::TcpStream::connect(good).unwrap();
                    world::fetch(&mut tcp, 5_000_000);
                    world::fetch(&mut tcp, 1);
                    world::ask(&mut tcp, 0);
                })
                .await
                .unwrap();
                for (port, why) in [(ports[1], "nobody listens"), (ports[2], "not allowed")] {
                    let mut tcp = tokio::net::TcpStream::connect(port).await.unwrap();
                    let mut rest = Vec::new();
                    let _ = tcp.read_to_end(&mut rest).await;
                    assert!(rest.is_empty());
                    let told = told.recv().await.unwrap();
                    assert!(told.contains(why), "{told}");
                }
            });
        });
        server.join().unwrap();
        let _ = stop.send(());
        proxy.join().unwrap();
    });
}
