//! Both ends of a session in namespaces of their own.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use braid_forward::carrier::OverSession;
use braid_forward::divert::Setting;
use braid_forward::tunnel::gateway::{Gateway, Pools};
use braid_forward::{Allowed, Carrier, Egress, serve};
use braid_mpquic::tls::{self, Devices, Identity, Pin, Trust};
use braid_mpquic::{Access, Device, Lane, Options, Proxy, Session};
use braid_netns::world::lan::LAN;
use braid_netns::world::{SERVICE, World};
use tokio::sync::{mpsc, oneshot, watch};

const PORT: u16 = 4433;

pub(crate) fn on_both_lanes(test: impl Fn(Options)) {
    for lane in [Lane::Stream, Lane::Datagram] {
        test(Options {
            lane,
            ..Options::default()
        });
    }
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
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

/// Runs `there` at a proxy with its session while `here` runs at the device with a carrier over it.
pub(crate) fn between<T, H>(
    w: &World,
    options: &Options,
    there: impl FnOnce(Session) -> T + Send + 'static,
    here: impl FnOnce(Arc<dyn Carrier>) -> H + Send,
) where
    T: Future<Output = ()>,
    H: Future<Output = ()>,
{
    let here = |sessions| here(Arc::new(OverSession::new(sessions)));
    with_sessions(w, options, there, here);
}

/// As [`between`], with the session itself.
pub(crate) fn with_sessions<T, H>(
    w: &World,
    options: &Options,
    there: impl FnOnce(Session) -> T + Send + 'static,
    here: impl FnOnce(watch::Receiver<Option<Session>>) -> H + Send,
) where
    T: Future<Output = ()>,
    H: Future<Output = ()>,
{
    let identity = Identity::generate("proxy.example").unwrap();
    let pin = identity.pin();
    let (ready, when) = std::sync::mpsc::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let of_proxy = options.clone();
    let proxy = w.proxy.spawn(move || {
        runtime().block_on(async {
            let alpn = tls::alpn(of_proxy.lane);
            let tls = tls::server(&identity, &Devices::Anyone, alpn).unwrap();
            let at = SocketAddr::from((SERVICE, PORT));
            let proxy = Proxy::listen(&[at], tls, &of_proxy, vec![]).unwrap();
            ready.send(()).unwrap();
            let session = proxy.accept().await.unwrap();
            tokio::select! {
                () = there(session) => {}
                _ = stopped => {}
            }
        });
    });
    when.recv().unwrap();
    w.device.run(|| {
        runtime().block_on(async {
            let session = connect(pin, options).await;
            let (_keep, sessions) = watch::channel(Some(session));
            here(sessions).await;
        });
    });
    let _ = stop.send(());
    proxy.join().unwrap();
}

/// Diversion of the hosts of a LAN.
pub(crate) fn hosts() -> Setting {
    Setting {
        lan: vec![LAN.into()],
        dns: true,
        own: None,
    }
}

/// Addresses of the proxy from which the server of a LAN's world is reached.
pub(crate) fn of_the_proxy() -> [IpAddr; 2] {
    ["45.11.0.1".parse().unwrap(), "2a0f:45::1".parse().unwrap()]
}

/// Destinations of these tests: the network of the service, and the Internet.
pub(crate) fn allowed() -> Arc<Allowed> {
    Arc::new(Allowed {
        internet: true,
        networks: vec!["10.77.0.0/24".parse().unwrap()],
    })
}

/// Serves connections.
pub(crate) async fn serve_service(session: Session) {
    let (others, _) = mpsc::channel(1);
    let egress = Egress {
        allowed: allowed(),
        gateway: None,
    };
    serve(session, egress, others).await;
}

/// Serves connections and packets.
pub(crate) async fn serve_packets(session: Session) {
    let pools = Pools {
        v4: "10.137.0.0/24".parse().unwrap(),
        v6: Some("fd13:7::/64".parse().unwrap()),
    };
    let gateway = Arc::new(Gateway::create(pools, &allowed()).await.unwrap());
    let (others, _) = mpsc::channel(1);
    let egress = Egress {
        allowed: allowed(),
        gateway: Some(Arc::clone(&gateway)),
    };
    tokio::select! {
        () = serve(session, egress, others) => {}
        e = gateway.run() => panic!("{e}"),
    }
}

pub(crate) async fn blocking(f: impl FnOnce() + Send + 'static) {
    tokio::task::spawn_blocking(f).await.unwrap();
}
