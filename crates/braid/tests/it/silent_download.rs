//! A download from a server that answers no probes, whose path falls silent.

use braid_netns::world;
use std::net::TcpStream;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::support::daemon::Daemon;
use crate::support::traffic::{DEVICE, runs_on};
use braid_api::AccessState;
use braid_mptcp::socket;
use braid_netns::world::{World, device4, fetch, service};
use tempfile::TempDir;

/// A download of a few seconds, on both accesses.
struct Download {
    w: World,
    device: Daemon,
    client: JoinHandle<()>,
    _t: TempDir,
}

/// From a server that has never heard of Braid.
fn begin() -> Option<Download> {
    let w = World::new(2)?;
    if !w.limited(2) {
        return None;
    }
    let t = tempfile::tempdir().unwrap();
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let listener = w
        .proxy
        .run(|| socket::listen(service(80), true, None).unwrap());
    let server = w.serve(listener);
    let mut stream: TcpStream = w
        .device
        .run(|| socket::connect(None, service(80), true, None).unwrap());
    let client = std::thread::spawn(move || {
        fetch(&mut stream, 120_000_000);
        world::ask(&mut stream, 0);
        server.join().unwrap();
    });
    runs_on(&device, &[device4(1), device4(2)]);
    // Both are in use by then.
    std::thread::sleep(Duration::from_secs(1));
    Some(Download {
        w,
        device,
        client,
        _t: t,
    })
}

#[test]
fn a_silent_download_is_found_where_nobody_answers_probes() {
    let Some(d) = begin() else { return };
    let (w, device) = (&d.w, &d.device);
    w.silence(2, true);
    let since = Instant::now();
    let why = device.becomes("wifi", AccessState::Silent);
    println!("found after {:?}", since.elapsed());
    // Without questions it is never found; a machine that is busy may take its time.
    assert!(
        since.elapsed() < Duration::from_secs(2),
        "{:?}",
        since.elapsed()
    );
    assert!(why.contains("nothing comes back on d2"), "{why}");
    runs_on(device, &[device4(1)]);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(
        device.state("wifi").0,
        AccessState::Silent,
        "it is not tried blindly"
    );
    w.silence(2, false);
    device.becomes("wifi", AccessState::Active);
    runs_on(device, &[device4(1), device4(2)]);
    d.client.join().unwrap();
}

#[test]
fn a_download_that_goes_on_is_left_alone() {
    let Some(d) = begin() else { return };
    d.client.join().unwrap();
    d.device.was_never(AccessState::Silent);
}
