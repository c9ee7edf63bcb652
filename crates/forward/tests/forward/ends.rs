//! Both ends of a session in namespaces of their own.

use std::net::SocketAddr;
use std::sync::Arc;

use braid_forward::carrier::OverSession;
use braid_forward::{Allowed, Carrier, serve};
use braid_mpquic::tls::{self, Devices, Identity, Pin, Trust};
use braid_mpquic::{Access, Device, Lane, Options, Proxy, Session};
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
            here(Arc::new(OverSession(sessions))).await;
        });
    });
    let _ = stop.send(());
    proxy.join().unwrap();
}

/// Serves the network of the service, and the Internet.
pub(crate) async fn serve_service(session: Session) {
    let allowed = Allowed {
        internet: true,
        networks: vec!["10.77.0.0/24".parse().unwrap()],
    };
    let (others, _) = mpsc::channel(1);
    serve(session, allowed, others).await;
}

pub(crate) async fn blocking(f: impl FnOnce() + Send + 'static) {
    tokio::task::spawn_blocking(f).await.unwrap();
}
