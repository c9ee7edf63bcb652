//! Registrations at a proxy whose engines are in memory, and the lines of both ends.

use std::net::IpAddr;
use std::sync::Arc;

use braid_api::registration::{Access, MAX_BYTES, Request};
use braid_api::{Engine as Kind, Role};
use braid_core::AccessKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::sync::mpsc;

use super::proxy::register;
use super::*;
use crate::config::Config;
use crate::daemon::Daemon;
use crate::engine::testing::Fake;
use crate::engine::{Change, Engine};

const FILE: &str =
    "proxy = \"10.77.0.1\"\n[scheduler]\nname = \"wrr\"\n[access.lan]\naddress = \"10.1.0.0/16\"\n";

struct World {
    daemon: Daemon,
    mptcp: Arc<Fake>,
    mpquic: Arc<Fake>,
    folder: tempfile::TempDir,
}

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let mut mpquic = Fake::new(Kind::Mpquic);
    mpquic.has_sessions = true;
    let (mptcp, mpquic) = (Arc::new(Fake::new(Kind::Mptcp)), Arc::new(mpquic));
    let engines: Vec<Arc<dyn Engine>> = vec![mptcp.clone(), mpquic.clone()];
    let daemon = Daemon::of_role(Role::Proxy, folder.path(), FILE, engines);
    World {
        daemon,
        mptcp,
        mpquic,
        folder,
    }
}

fn request(over: Option<&str>, weights: &[(&str, f64)]) -> Request {
    let access = |weight| Access {
        kind: AccessKind::Wifi,
        weight,
        limit_bps: None,
    };
    let accesses = [
        ("nr".to_owned(), access(Some(3.0))),
        ("wifi".to_owned(), access(None)),
    ];
    let weights = weights.iter().map(|(n, w)| ((*n).to_owned(), *w));
    Request {
        over: over.map(str::to_owned),
        weights: Some(weights.collect()).filter(|w: &ByName| !w.is_empty()),
        ..Request::new("cpe", 7, accesses.into())
    }
}

fn from(address: [u8; 4]) -> Origin {
    Origin::Address(IpAddr::from(address))
}

fn named(of: &[(&str, f64)]) -> ByName {
    of.iter().map(|(n, w)| ((*n).to_owned(), *w)).collect()
}

#[tokio::test]
async fn the_engines_go_by_what_devices_register() {
    let w = world();
    let reply = register(
        &w.daemon,
        &from([198, 51, 100, 1]),
        &request(Some("nr"), &[]),
    )
    .await;
    assert_eq!(reply.accesses["nr"], "nr@cpe");
    assert_eq!(reply.weights, named(&[("nr", 3.0)]));
    let reply = register(
        &w.daemon,
        &from([198, 51, 100, 2]),
        &request(Some("wifi"), &[]),
    )
    .await;
    assert_eq!(reply.refused, None);
    for engine in [&w.mptcp, &w.mpquic] {
        let (names, weights) = lock(&engine.learned).clone();
        assert_eq!(names, ["lan", "nr@cpe", "wifi@cpe"]);
        assert_eq!(weights, named(&[("nr@cpe", 3.0), ("wifi@cpe", 1.0)]));
        assert_eq!(engine.made(), [], "nobody has requested any");
    }
    let config = w.daemon.config();
    assert_eq!(
        config.accesses[1].registered,
        Some(vec![[198, 51, 100, 1].into()])
    );
    assert_eq!(Config::peers(&config.accesses).len(), 3);
}

#[tokio::test]
async fn requested_weights_are_set_once_and_again_after_a_reload() {
    let w = world();
    let asks = |over| request(Some(over), &[("nr", 4.0), ("wifi", 1.0)]);
    register(&w.daemon, &from([198, 51, 100, 1]), &asks("nr")).await;
    let reply = register(&w.daemon, &from([198, 51, 100, 2]), &asks("wifi")).await;
    assert_eq!(reply.weights, named(&[("nr", 4.0), ("wifi", 1.0)]));
    let expected = named(&[("nr@cpe", 4.0), ("wifi@cpe", 1.0)]);
    let last = |e: &Fake| match e.made().pop() {
        Some(Change::Weights(steering)) => steering.weights,
        other => panic!("{other:?}"),
    };
    assert_eq!(last(&w.mptcp), expected);
    assert_eq!(last(&w.mpquic), expected);
    register(&w.daemon, &from([198, 51, 100, 2]), &asks("wifi")).await;
    assert_eq!(w.mptcp.made(), []);
    w.daemon.reload().await;
    let configured = named(&[("nr@cpe", 3.0), ("wifi@cpe", 1.0)]);
    assert_eq!(last(&w.mptcp), configured, "as configured");
    fulfil_all(&w.daemon).await;
    assert_eq!(last(&w.mptcp), expected);
    // Requested no more, they are as the device has configured them.
    let asks = request(Some("nr"), &[]);
    let reply = register(&w.daemon, &from([198, 51, 100, 1]), &asks).await;
    assert_eq!(last(&w.mptcp), configured);
    assert_eq!(reply.weights["nr"], 3.0);
}

#[tokio::test]
async fn who_registers_by_tcp_does_not_change_how_a_proxy_schedules() {
    let plain = FILE.replacen("[scheduler]\nname = \"wrr\"\n", "", 1);
    let engine = Arc::new(Fake::new(Kind::Mptcp));
    let engines: Vec<Arc<dyn Engine>> = vec![engine.clone()];
    let folder = tempfile::tempdir().unwrap();
    let daemon = Daemon::of_role(Role::Proxy, folder.path(), &plain, engines);
    let asks = request(Some("nr"), &[("nr", 4.0)]);
    let reply = register(&daemon, &from([198, 51, 100, 1]), &asks).await;
    assert!(reply.refused.unwrap().contains("[scheduler]"));
    assert_eq!(engine.made(), []);
    assert_eq!(reply.accesses["nr"], "nr@cpe");
    // Nor when another device comes after one on an access of the file.
    let reply = register(&daemon, &from([10, 1, 2, 3]), &asks).await;
    assert!(reply.refused.unwrap().contains("[scheduler]"));
    let other = Request {
        id: 8,
        ..request(Some("wifi"), &[])
    };
    let reply = register(&daemon, &from([198, 51, 100, 8]), &other).await;
    assert_eq!((reply.refused, engine.made()), (None, vec![]));
}

#[tokio::test]
async fn weights_of_an_access_of_the_file_hold_for_the_address_or_the_session() {
    let w = world();
    let asks = request(Some("nr"), &[("nr", 4.0)]);
    let reply = register(&w.daemon, &from([10, 1, 2, 3]), &asks).await;
    assert_eq!(reply.accesses["nr"], "lan");
    assert_eq!(reply.weights, named(&[("nr", 4.0)]));
    let Some(Change::Weights(steering)) = w.mptcp.made().pop() else {
        panic!("no weights");
    };
    assert_eq!(steering.weights, ByName::new());
    assert_eq!(steering.addresses, [([10, 1, 2, 3].into(), 4.0)].into());
    // A session of a device, on paths that the file does not name.
    let mut asks = request(None, &[("wifi", 2.0)]);
    asks.paths = [(5, "wifi".to_owned())].into();
    let reply = register(&w.daemon, &Origin::Session(1), &asks).await;
    assert_eq!(reply.accesses["wifi"], "wifi@cpe");
    let names = lock(&w.mpquic.named).clone();
    assert_eq!(names, [(1, [(5, "wifi@cpe".to_owned())].into())].into());
}

#[tokio::test]
async fn what_an_engine_refuses_is_told_and_tried_again() {
    let w = world();
    *lock(&w.mptcp.refuses) = Some(|_| true);
    let asks = request(Some("nr"), &[("nr", 4.0)]);
    let reply = register(&w.daemon, &from([198, 51, 100, 1]), &asks).await;
    assert!(reply.refused.unwrap().contains("mptcp refuses"));
    assert_eq!(reply.weights, named(&[("nr", 3.0)]));
    *lock(&w.mptcp.refuses) = None;
    let reply = register(&w.daemon, &from([198, 51, 100, 1]), &asks).await;
    assert_eq!((reply.refused, reply.weights["nr"]), (None, 4.0));
}

#[tokio::test]
async fn a_killed_proxy_s_devices_are_known_to_the_next() {
    let w = world();
    let asks = request(Some("nr"), &[("nr", 4.0)]);
    register(&w.daemon, &from([198, 51, 100, 1]), &asks).await;
    let engine = Arc::new(Fake::new(Kind::Mptcp));
    let engines: Vec<Arc<dyn Engine>> = vec![engine.clone()];
    let next = Daemon::of_role(Role::Proxy, w.folder.path(), FILE, engines);
    next.adopt_registered().await;
    assert_eq!(lock(&engine.learned).0, ["lan", "nr@cpe"]);
    assert_eq!(next.registered_devices().len(), 1);
    assert_eq!(next.requested_by(7), named(&[("nr", 4.0)]));
    std::mem::forget(w);
}

#[tokio::test]
async fn a_line_is_taken_in_and_answered() {
    let (mut here, mut there) = duplex(1 << 20);
    let (to, mut from_device) = mpsc::channel(1);
    let asks = request(Some("nr"), &[]);
    let expected = asks.clone();
    let proxy = async {
        assert_eq!(there.read_u8().await.unwrap(), b'{');
        let (_, ()) = tokio::join!(take(&mut there, from([10, 0, 0, 1]), &to), async {
            let r: Registering = from_device.recv().await.unwrap();
            assert_eq!((r.request, r.from), (expected, from([10, 0, 0, 1])));
            r.reply.send(Reply::refusal("no")).unwrap();
        });
    };
    let (reply, ()) = tokio::join!(converse(&mut here, &asks), proxy);
    assert_eq!(reply.unwrap().refused.as_deref(), Some("no"));
}

#[tokio::test]
async fn what_is_no_line_is_refused_or_left() {
    let answer = async |said: Vec<u8>| {
        let (mut here, mut there) = duplex(1 << 20);
        let (to, _from_device) = mpsc::channel(1);
        here.write_all(&said).await.unwrap();
        here.shutdown().await.unwrap();
        let taken = take(&mut there, from([10, 0, 0, 1]), &to).await;
        drop(there);
        let mut all = String::new();
        here.read_to_string(&mut all).await.unwrap();
        (taken.is_ok(), all)
    };
    let (taken, said) = answer(b"\"version\": 9}\n".to_vec()).await;
    assert!(taken && said.contains("no registration"), "{said}");
    let (taken, said) = answer(vec![b'x'; 2 * MAX_BYTES]).await;
    assert!(!taken && said.is_empty(), "{said}");
    let (taken, _) = answer(b"\"version\"".to_vec()).await;
    assert!(!taken, "it ended early");
    // A proxy of before takes it for a check.
    let (mut here, mut there) = duplex(1 << 16);
    there.write_all(b"!\n").await.unwrap();
    let why = converse(&mut here, &request(None, &[])).await.unwrap_err();
    assert!(why.contains("same version"), "{why}");
}
