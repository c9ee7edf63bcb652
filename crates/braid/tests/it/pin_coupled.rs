//! A coupled congestion control outlives the daemon that has set it: the next one goes on
//! with it, so that subflows which join later are coupled with those from before.

use crate::support::pins;
use std::collections::BTreeSet;

use crate::support::daemon::Daemon;
use crate::support::pins::{BEFORE, place, registered, version};
use crate::support::traffic::{DEVICE, PROXY, Traffic, runs_on};
use braid_api::Status;
use braid_mptcp::bpf::Pins;
use braid_netns::world::{World, device4, eventually, service};
use nix::sys::signal::Signal;

const OWNER: &str = "proxycc";

struct Bench {
    w: World,
    t: tempfile::TempDir,
}

impl Bench {
    fn new() -> Option<Self> {
        let w = pins::world()?;
        let t = tempfile::tempdir().unwrap();
        Some(Self { w, t })
    }

    fn start(&self, scheduler: &str) -> Daemon {
        let config = PROXY.replacen("[access.nr]", &format!("{scheduler}\n[access.nr]"), 1);
        Daemon::start(&self.w.proxy, self.t.path(), "proxy", &config)
    }

    fn default(&self) -> String {
        pins::default(&self.w.proxy)
    }

    fn pinned(&self) -> bool {
        place(&self.w.proxy, OWNER).is_some()
    }

    fn ends(&self, mut proxy: Daemon, name: &str) {
        assert_eq!(proxy.end(Signal::SIGTERM), Some(0));
        assert_eq!((self.pinned(), self.default()), (false, BEFORE.into()));
        eventually("it is gone", || (!registered(name)).then_some(()));
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.w.proxy.run(|| drop(Pins::left(OWNER)));
    }
}

#[test]
fn subflows_that_join_after_a_kill_are_coupled_with_those_from_before() {
    const LIA: &str = "[scheduler]\ncc = \"lia\"";
    let Some(b) = Bench::new() else { return };
    let mut proxy = b.start(LIA);
    let name = b.default();
    assert!(name.starts_with("lia_") && b.pinned(), "{name}");
    let mut device = Daemon::start(&b.w.device, b.t.path(), "up", DEVICE);
    let both = [device4(1), device4(2)];
    let traffic = Traffic::start(&b.w, service(80));
    runs_on(&device, &both);
    assert_eq!(proxy.end(Signal::SIGKILL), None);
    assert_eq!((b.default(), registered(&name)), (name.clone(), true));

    let proxy = b.start(LIA);
    let s: Status = proxy.get("/v1/status");
    assert_eq!((b.default(), s.notes), (name.clone(), vec![]));
    // One goes, and joins the connection again.
    b.w.set_link(2, false);
    runs_on(&device, &both[..1]);
    b.w.set_link(2, true);
    runs_on(&device, &both);
    traffic.goes_on();
    let in_use = pins::in_use(&b.w.proxy, 80);
    assert!(in_use.len() >= 2, "{in_use:?}");
    assert_eq!(
        in_use.into_iter().collect::<BTreeSet<_>>(),
        [name.clone()].into()
    );
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    b.ends(proxy, &name);
    // Unregistered under a live connection.
    traffic.goes_on();
    traffic.stop();
}

#[test]
fn what_is_not_wanted_any_more_or_not_as_it_was_left_is_taken_away() {
    let Some(b) = Bench::new() else { return };
    let lia = "[scheduler]\ncc = \"lia\"";
    let link = || version(&place(&b.w.proxy, OWNER).unwrap()).join("link");
    for (spoil, then, says, prefix) in [
        (false, "[scheduler]\ncc = \"default\"", "", "reno"),
        (false, "", "", "swing_"),
        (
            false,
            "[scheduler]\ncc = \"olia\"",
            "it is not olia",
            "olia_",
        ),
        (false, "[scheduler]\ncc = \"lia\"\npin = false", "", "lia_"),
        (false, "[scheduler]\ncc = \"reno\"", "", "reno"),
        // It goes on without.
        (false, "[scheduler]\ncc = \"none_such\"", "", "reno"),
        (true, lia, "link", "lia_"),
    ] {
        let mut proxy = b.start(lia);
        let old = b.default();
        assert_eq!(proxy.end(Signal::SIGKILL), None);
        if spoil {
            std::fs::remove_file(link()).unwrap();
        }
        let proxy = b.start(then);
        let s: Status = proxy.get("/v1/status");
        let said = s.notes.join("\n");
        assert!(
            said.contains(says) && said.is_empty() == says.is_empty(),
            "{then}: {said}"
        );
        let now = b.default();
        assert!(now.starts_with(prefix) && now != old, "{then}: {now}");
        eventually("the old one is gone", || (!registered(&old)).then_some(()));
        // What nobody asks for is not pinned.
        let asked = then.contains("cc = ") && !then.contains("pin = false");
        let ours = now.contains('_') && asked;
        assert_eq!(b.pinned(), ours, "{then}");
        b.ends(proxy, if now == "reno" { &old } else { &now });
    }
}

#[test]
fn one_that_is_adopted_is_not_what_there_was_before() {
    let lia = "[scheduler]\ncc = \"lia\"";
    let Some(b) = Bench::new() else { return };
    let mut proxy = b.start(lia);
    let name = b.default();
    assert_eq!(proxy.end(Signal::SIGKILL), None);
    std::fs::remove_file(b.t.path().join("proxy.sock.before")).unwrap();
    let mut proxy = b.start(lia);
    assert_eq!(b.default(), name);
    assert_eq!(proxy.end(Signal::SIGTERM), Some(0));
    // Nobody knows any more what it was.
    let now = b.default();
    assert!(["cubic", "reno"].contains(&now.as_str()), "{now}");
}

#[test]
fn a_reload_pins_the_one_that_is_in_force() {
    let Some(b) = Bench::new() else { return };
    let proxy = b.start("[scheduler]\ncc = \"lia\"");
    let lia = b.default();
    let text = std::fs::read_to_string(&proxy.config).unwrap();
    std::fs::write(&proxy.config, text.replace("\"lia\"", "\"balia\"")).unwrap();
    proxy.signal(Signal::SIGHUP);
    let balia = eventually("another default", || {
        Some(b.default()).filter(|name| name.starts_with("balia_"))
    });
    eventually("the old one is gone", || (!registered(&lia)).then_some(()));
    assert!(b.pinned());
    let mut proxy = proxy;
    assert_eq!(proxy.end(Signal::SIGKILL), None);
    let proxy = b.start("[scheduler]\ncc = \"balia\"");
    assert_eq!(b.default(), balia);
    b.ends(proxy, &balia);
}
