//! Pins of a killed daemon go after its network namespace has gone, with the next
//! daemon anywhere, and not before.

use std::net::UdpSocket;
use std::path::{Path, PathBuf};

use crate::support::daemon::Daemon;
use crate::support::pins::{default, place, registered};
use braid_api::Status;
use braid_mptcp::bpf::{self, Pins};
use braid_netns::world::{Ns, World, eventually};
use nix::sys::signal::Signal;

const CONFIG: &str = "scheduler = { name = \"wrr\" }
proxy = \"10.77.0.1\"
[probe]
enabled = false
[access.nr]
address = \"10.77.1.2\"
";

fn start(ns: &Ns, folder: &Path) -> Daemon {
    Daemon::start(ns, folder, "proxy", CONFIG)
}

/// Where the pins of a namespace are, and the congestion control that they hold.
fn pinned(ns: &Ns) -> (PathBuf, String) {
    (place(ns, "proxy").expect("pins"), default(ns))
}

/// If the test fails, nothing stays in the kernel.
struct Clean<'a>(&'a Ns);

impl Drop for Clean<'_> {
    fn drop(&mut self) {
        self.0.run(|| drop(Pins::left("proxy")));
    }
}

#[test]
fn pins_go_after_their_network_namespace_and_not_before() {
    if let Err(e) = bpf::require() {
        return println!("skipped: {e}");
    }
    let (Some(lives), Some(ends)) = (World::new(1), World::new(1)) else {
        return;
    };
    let folder = || tempfile::tempdir().unwrap();
    let (mine, other, third) = (folder(), folder(), folder());
    let _clean = Clean(&lives.proxy);
    for (w, t) in [(&lives, &mine), (&ends, &other)] {
        assert_eq!(start(&w.proxy, t.path()).end(Signal::SIGKILL), None);
    }
    let ((kept, its_own), (gone, name)) = (pinned(&lives.proxy), pinned(&ends.proxy));
    // A socket is all that the other one lives by.
    let socket = ends.proxy.run(|| UdpSocket::bind("127.0.0.1:0").unwrap());
    drop(ends);
    let elsewhere = || {
        let mut daemon = start(&lives.device, third.path());
        assert_eq!(daemon.end(Signal::SIGTERM), Some(0));
    };
    elsewhere();
    assert!(gone.is_dir() && registered(&name));
    assert!(kept.is_dir() && registered(&its_own));
    drop(socket);
    eventually("its pins are taken away", || {
        elsewhere();
        (!gone.exists()).then_some(())
    });
    eventually("what they held is gone", || {
        (!registered(&name)).then_some(())
    });
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(gone.to_str().unwrap()), "{mounts}");
    // A daemon of the one that lives goes on.
    assert!(kept.is_dir() && registered(&its_own));
    let mut daemon = start(&lives.proxy, mine.path());
    let s: Status = daemon.get("/v1/status");
    assert_eq!((s.default_congestion_control, s.notes), (its_own, vec![]));
    assert_eq!(daemon.end(Signal::SIGTERM), Some(0));
    assert!(!kept.exists());
}
