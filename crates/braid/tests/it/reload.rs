//! A configuration is read again while the daemon runs.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use crate::support::daemon::Daemon;
use crate::support::traffic::{DEVICE, PROXY};
use braid_access::probe::{self, Kind, Probe};
use braid_api::{AccessStatus, Status};
use braid_mptcp::{buffers, support};
use braid_netns::world::{SERVICE6, World, service};

/// Whether somebody answers probes there.
fn answers(w: &World, at: SocketAddr) -> bool {
    w.device.run(|| {
        let any: SocketAddr = match at.is_ipv4() {
            true => "0.0.0.0:0".parse().unwrap(),
            false => "[::]:0".parse().unwrap(),
        };
        let socket = UdpSocket::bind(any).unwrap();
        let patience = Some(Duration::from_secs(1));
        socket.set_read_timeout(patience).unwrap();
        let request = Probe {
            kind: Kind::Request,
            session: 3,
            number: 4,
            sent_ns: 5,
        };
        socket.connect(at).unwrap();
        socket.send(&request.emit()).unwrap();
        let mut buffer = [0; probe::LEN];
        socket.recv(&mut buffer).is_ok() && Probe::parse(&buffer) == Some(request.response())
    })
}

#[test]
fn a_proxy_that_cannot_answer_elsewhere_goes_on_answering_where_it_did() {
    let Some(w) = World::new(1) else { return };
    let t = tempfile::tempdir().unwrap();
    let proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    let first = service(braid_api::config::Probe::PORT);
    assert!(answers(&w, first));
    for wrong in ["\"10.99.9.9\"", "[\"10.77.0.1\", \"fd99::9\"]"] {
        let other = PROXY.replace("\"10.77.0.1\"", wrong);
        let other = other.replace("[access.nr]", "[access.lte]");
        let error = proxy.reload(&other).expect("an error");
        assert!(error.contains("this proxy's own address"), "{error}");
        assert!(answers(&w, first));
        let s: Status = proxy.get("/v1/status");
        assert_eq!((&*s.accesses[0].name, s.config_error), ("nr", Some(error)));
    }
    let both = PROXY.replace("\"10.77.0.1\"", "[\"10.77.0.1\", \"fd77::1\"]");
    assert_eq!(proxy.reload(&both), None);
    let second = SocketAddr::new(SERVICE6.into(), braid_api::config::Probe::PORT);
    assert!(answers(&w, first) && answers(&w, second));
    let elsewhere = PROXY.replace("[access.nr]", "[probe]\nport = 7799\n[access.nr]");
    assert_eq!(proxy.reload(&elsewhere), None);
    assert!(answers(&w, service(7799)));
    assert!(!answers(&w, first) && !answers(&w, second));
}

#[test]
fn a_request_changes_the_access_that_it_names_though_the_order_changes_meanwhile() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let (head, accesses) = DEVICE.split_once("[access.nr]").unwrap();
    let (nr, wifi) = accesses.split_once("[access.wifi]").unwrap();
    let turned = format!("{head}[access.wifi]{wifi}[access.nr]{nr}");
    for round in 0..40 {
        let config = if round % 2 == 0 { &turned } else { DEVICE };
        device.configure(config);
        let (head, body) = device.request("PUT", "/v1/accesses/wifi", "{\"backup\": true}");
        assert!(head.contains(" 200 "), "{head} {body}");
        let changed: AccessStatus = serde_json::from_str(&body).unwrap();
        assert_eq!((&*changed.name, changed.backup), ("wifi", true));
    }
}

#[test]
fn buffers_are_as_the_file_says_and_what_cannot_change_is_refused() {
    let Some(w) = World::new(1) else { return };
    let t = tempfile::tempdir().unwrap();
    let now = || w.proxy.run(|| buffers::sizes(buffers::RECEIVE).unwrap());
    let first = now();
    let proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    let with = |more: &str| {
        let config = PROXY.replace("[access.nr]", &format!("{more}\n[access.nr]"));
        proxy.reload(&config)
    };
    for [a, b, c] in [[5000, 6 << 20, 70 << 20], [4096, 1 << 20, 2 << 20]] {
        let more = format!("[buffers]\ntcp_rmem = [{a}, {b}, {c}]");
        assert_eq!(with(&more), None);
        let wanted = [first[0].max(a), first[1].max(b), first[2].max(c)];
        assert_eq!(now(), wanted);
    }
    // A bad one changes nothing, and the same again leaves alone what others have set.
    let error = with("[buffers]\nmanage = false\n[scheduler]\npin = false").unwrap();
    assert!(
        error.contains("`pin` of [scheduler] cannot change"),
        "{error}"
    );
    assert_ne!(now(), first);
    w.proxy
        .run(|| support::set_sysctl(buffers::RECEIVE, "4096 200000 9000000"))
        .unwrap();
    assert_eq!(with("[buffers]\ntcp_rmem = [4096, 1048576, 2097152]"), None);
    assert_eq!(now(), [4096, 200_000, 9_000_000]);
    assert_eq!(with("[buffers]\nmanage = false"), None);
    assert_eq!(now(), first);
}
