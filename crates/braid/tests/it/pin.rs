//! Weights by eBPF that outlive a daemon: killed and started again, it goes on with
//! them; garbage is refused; SIGTERM leaves nothing.

use crate::support::pins;
use braid_netns::world;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::daemon::Daemon;
use crate::support::pins::{BEFORE, place, registered, version};
use crate::support::traffic::{PROXY, Traffic};
use braid_api::{Connections, SchedulerChange, Status, Weights};
use braid_core::sched::WrrMode;
use braid_mptcp::bpf::Pins;
use braid_mptcp::pm::PathManager;
use braid_mptcp::support;
use braid_netns::world::{World, eventually, service};
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const DEFAULT: &str = support::CONGESTION_CONTROL;
const OWNER: &str = "proxy";

/// A proxy that shares what it sends; of one access it knows the network, of the other
/// the address.
fn config(more: &str) -> String {
    PROXY
        .replace("[access.nr]", &format!("{more}\n[access.nr]"))
        .replacen("\n[access.nr]\n", "\n[access.nr]\nweight = 1\n", 1)
        .replacen("\n[access.wifi]\n", "\n[access.wifi]\nweight = 1\n", 1)
}

const WRR: &str = "[scheduler]\nname = \"wrr\"\nwrr_mode = \"strict\"";

/// Two accesses. If a test fails, nothing stays in the kernel.
struct Bench {
    w: World,
    t: tempfile::TempDir,
    /// Default congestion control of the proxy's namespace before a daemon comes.
    before: String,
}

impl Bench {
    fn new() -> Option<Self> {
        Some(Self {
            w: pins::world()?,
            t: tempfile::tempdir().unwrap(),
            before: BEFORE.into(),
        })
    }

    fn start(&self, more: &str) -> Daemon {
        Daemon::start(&self.w.proxy, self.t.path(), "proxy", &config(more))
    }

    /// A daemon with weights that has just been started.
    fn begin(&self) -> Child {
        std::fs::write(self.t.path().join("proxy.toml"), config(WRR)).unwrap();
        self.w.proxy.run(|| {
            let mut braid = Command::new(env!("CARGO_BIN_EXE_braid"));
            braid.arg("proxy").current_dir(self.t.path());
            braid.args(["--config", "proxy.toml", "--control", "proxy.sock"]);
            braid.stdout(Stdio::null()).spawn().unwrap()
        })
    }

    /// A daemon with weights, and traffic that they share out.
    fn under_way(&self) -> (Daemon, Traffic) {
        world::mptcp::mesh(&self.w, 2);
        let proxy = self.start(WRR);
        let traffic = Traffic::of(&self.w, service(80), 4_000_000);
        traffic.goes_on();
        (proxy, traffic)
    }

    /// Where the pins are; `None` if nowhere.
    fn place(&self) -> Option<PathBuf> {
        place(&self.w.proxy, OWNER)
    }

    /// The directory of the version that is pinned.
    fn pins(&self) -> PathBuf {
        version(&self.place().expect("pins"))
    }

    fn set_default(&self, name: &str) {
        self.w
            .proxy
            .run(|| support::set_sysctl(DEFAULT, name).unwrap());
    }

    fn default(&self) -> String {
        pins::default(&self.w.proxy)
    }

    fn assert_nothing_left(&self) {
        assert_eq!(self.place(), None);
        assert_eq!(self.default(), self.before);
        let all = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        for path in self.w.proxy.run(|| Pins::places(OWNER).unwrap()) {
            assert!(!all.contains(path.to_str().unwrap()), "{all}");
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        for ns in [&self.w.proxy, &self.w.device] {
            ns.run(|| drop(Pins::left(OWNER)));
        }
    }
}

fn weights(status: &Status) -> BTreeMap<String, f64> {
    let of = |a: &braid_api::AccessStatus| Some((a.name.clone(), a.weight?));
    status.accesses.iter().filter_map(of).collect()
}

fn put<T: serde::de::DeserializeOwned>(daemon: &Daemon, path: &str, body: &str) -> T {
    let (head, answer) = daemon.request("PUT", path, body);
    assert!(head.contains(" 200 "), "{path}: {head} {answer}");
    serde_json::from_str(&answer).unwrap()
}

/// The share of access nr in what the proxy's one connection sends within 1 s.
fn share(daemon: &Daemon) -> f64 {
    let sent = || {
        let all: Connections = daemon.get("/v1/connections");
        let mut by = BTreeMap::new();
        for s in all.connections.iter().flat_map(|c| &c.subflows) {
            if let Some(access) = &s.access {
                *by.entry(access.clone()).or_insert(0) += s.sent_bytes;
            }
        }
        by
    };
    let before = sent();
    std::thread::sleep(Duration::from_secs(1));
    let of: BTreeMap<_, _> = sent()
        .into_iter()
        .map(|(a, n)| (a.clone(), n - before.get(&a).copied().unwrap_or(0)))
        .collect();
    of["nr"] as f64 / of.values().sum::<u64>() as f64
}

/// Waits until access nr has this share, within ten points: which weights hold is to be told
/// apart, also on a host whose pauses lose packets, and what is sent again by the other access
/// counts there. How exact shares are, `make bench-weights` measures.
fn becomes(daemon: &Daemon, wanted: f64) {
    let mut seen = Vec::new();
    for _ in 0..8 {
        let s = share(daemon);
        if (s - wanted).abs() < 0.1 {
            return;
        }
        seen.push(s);
    }
    panic!("a share of {wanted} was wanted: {seen:?}");
}

#[test]
fn a_killed_daemon_is_followed_by_one_that_goes_on_with_its_weights() {
    let Some(b) = Bench::new().filter(|b| b.w.limited(2)) else {
        return;
    };
    let (mut proxy, traffic) = b.under_way();
    let _: Weights = put(&proxy, "/v1/weights", r#"{"nr": 2.5, "wifi": 7.5}"#);
    becomes(&proxy, 0.25);
    let name = b.default();
    assert_eq!(proxy.end(Signal::SIGKILL), None);
    traffic.goes_on();
    assert_eq!((b.default(), registered(&name)), (name.clone(), true));

    let mut proxy = b.start(WRR);
    let s: Status = proxy.get("/v1/status");
    assert_eq!(
        weights(&s),
        [("nr".into(), 2.5), ("wifi".into(), 7.5)].into()
    );
    assert_eq!(s.default_congestion_control, name);
    let now: SchedulerChange = put(&proxy, "/v1/scheduler", "{}");
    assert_eq!(now.wrr_mode, Some(WrrMode::Strict));
    becomes(&proxy, 0.25);
    // The connection from before the kill follows at once.
    let _: Weights = put(&proxy, "/v1/weights", r#"{"nr": 4, "wifi": 1}"#);
    becomes(&proxy, 0.8);
    assert_eq!(proxy.end(Signal::SIGTERM), Some(0));
    b.assert_nothing_left();
    assert!(!registered(&name));
    // Unregistered under a live connection.
    traffic.goes_on();
    traffic.stop();
}

#[test]
fn what_is_not_as_it_was_left_is_refused_and_made_anew() {
    let Some(b) = Bench::new() else { return };
    let map = |ty, key, value, n, name: &str| {
        let opts = libbpf_rs::libbpf_sys::bpf_map_create_opts {
            sz: size_of::<libbpf_rs::libbpf_sys::bpf_map_create_opts>() as _,
            ..Default::default()
        };
        MapHandle::create(ty, Some(name), key, value, n, &opts).unwrap()
    };
    let swap = |b: &Bench, name: &str, mut with: MapHandle| {
        let path = b.pins().join(name);
        std::fs::remove_file(&path).unwrap();
        with.pin(&path).unwrap();
    };
    type Spoil<'a> = (&'a str, Box<dyn Fn(&Bench) + 'a>);
    let spoils: Vec<Spoil<'_>> = vec![
        (
            "weights",
            Box::new(|b| swap(b, "weights", map(MapType::Array, 4, 4, 4096, "weights"))),
        ),
        (
            "weights",
            Box::new(|b| swap(b, "weights", map(MapType::Hash, 24, 4, 4096, "weights"))),
        ),
        (
            "weights are not",
            Box::new(|b| {
                let weights = MapHandle::from_pinned_path(b.pins().join("weights")).unwrap();
                let key = [&160u32.to_ne_bytes()[..], &[7; 20]].concat();
                weights.update(&key, &[0xff; 4], MapFlags::ANY).unwrap();
            }),
        ),
        (
            "settings are not",
            Box::new(|b| {
                let settings = MapHandle::from_pinned_path(b.pins().join("settings")).unwrap();
                settings.update(&[0; 4], &[9; 8], MapFlags::ANY).unwrap();
            }),
        ),
        (
            "note",
            Box::new(|b| {
                let note = MapHandle::from_pinned_path(b.pins().join("note")).unwrap();
                let value = vec![0xff; note.value_size() as usize];
                note.update(&[0; 4], &value, MapFlags::ANY).unwrap();
            }),
        ),
        (
            "no map but",
            Box::new(|b| {
                std::fs::remove_file(b.pins().join("settings")).unwrap();
                let mut link = libbpf_rs::Link::open(b.pins().join("link")).unwrap();
                link.unpin().unwrap();
                link.pin(b.pins().join("settings")).unwrap();
            }),
        ),
        (
            "link",
            Box::new(|b| std::fs::remove_file(b.pins().join("link")).unwrap()),
        ),
        (
            "another version",
            Box::new(|b| {
                std::fs::rename(b.pins(), b.pins().with_file_name("0123456789abcdef")).unwrap();
            }),
        ),
    ];
    for (word, spoil) in spoils {
        let mut proxy = b.start(WRR);
        let old = b.default();
        assert_eq!(proxy.end(Signal::SIGKILL), None);
        spoil(&b);
        let mut proxy = b.start(WRR);
        let s: Status = proxy.get("/v1/status");
        let said = s.notes.join("\n");
        assert!(said.contains(word), "{word}: {said}");
        assert_ne!(s.default_congestion_control, old);
        assert!(registered(&s.default_congestion_control));
        eventually("the old one is gone", || (!registered(&old)).then_some(()));
        assert_eq!(proxy.end(Signal::SIGTERM), Some(0), "{word}");
        // With the note went what was before: then one that kernels are built with, if it may be.
        if word == "note" && b.default() == "cubic" {
            b.set_default("reno");
        }
        b.assert_nothing_left();
    }
}

#[test]
fn a_file_that_has_changed_meanwhile_counts() {
    let Some(b) = Bench::new() else { return };
    let mut proxy = b.start(WRR);
    let _: Weights = put(&proxy, "/v1/weights", r#"{"nr": 5, "wifi": 1}"#);
    assert_eq!(proxy.end(Signal::SIGKILL), None);
    let mut proxy = b.start("[scheduler]\nname = \"wrr\"");
    let s: Status = proxy.get("/v1/status");
    assert_eq!(
        weights(&s),
        [("nr".into(), 1.0), ("wifi".into(), 1.0)].into()
    );
    assert_eq!(s.notes, Vec::<String>::new());
    // No scheduler at all, and none wanted from before.
    assert_eq!(proxy.end(Signal::SIGKILL), None);
    let mut proxy = b.start("[scheduler]\npin = false\ncc = \"default\"");
    assert_eq!((b.place(), b.default()), (None, b.before.clone()));
    let _: Weights = put(&proxy, "/v1/weights", r#"{"nr": 5, "wifi": 1}"#);
    let name = b.default();
    assert!(name.starts_with("wrr_") && b.place().is_none(), "{name}");
    // Not pinned: it ends with the process, and the next one cleans up.
    assert_eq!(proxy.end(Signal::SIGKILL), None);
    eventually("it ends with the process", || {
        (!registered(&name)).then_some(())
    });
    let mut proxy = b.start("");
    assert!(!b.default().starts_with("wrr_"), "{}", b.default());
    assert_eq!(proxy.end(Signal::SIGTERM), Some(0));
}

#[test]
fn pins_of_a_living_daemon_and_of_other_namespaces_are_let_be() {
    let Some(b) = Bench::new() else { return };
    let proxy = b.start(WRR);
    let (pins, name) = (b.pins(), b.default());
    let unprobed = format!("{WRR}\n[probe]\nenabled = false");
    let second = tempfile::tempdir().unwrap();
    let mut other = Daemon::start(&b.w.proxy, second.path(), "proxy", &config(&unprobed));
    let s: Status = other.get("/v1/status");
    let said = s.notes.join("\n");
    assert!(said.contains("another braid"), "{said}");
    assert_eq!(other.end(Signal::SIGTERM), Some(0));
    assert!(pins.join("link").exists() && registered(&name));
    assert_eq!(b.default(), name);
    let third = tempfile::tempdir().unwrap();
    let mut elsewhere = Daemon::start(&b.w.device, third.path(), "proxy", &config(&unprobed));
    let s: Status = elsewhere.get("/v1/status");
    assert_eq!(s.notes, Vec::<String>::new());
    assert_ne!(place(&b.w.device, OWNER), b.place());
    assert_eq!(elsewhere.end(Signal::SIGTERM), Some(0));
    assert!(pins.join("link").exists() && registered(&name));
    let mut proxy = proxy;
    assert_eq!(proxy.end(Signal::SIGTERM), Some(0));
    b.assert_nothing_left();
}

#[test]
fn one_connection_has_weights_of_its_own_until_it_ends() {
    let Some(b) = Bench::new().filter(|b| b.w.limited(2)) else {
        return;
    };
    let (mut proxy, traffic) = b.under_way();
    let all: Connections = proxy.get("/v1/connections");
    let token = all.connections.iter().find_map(|c| c.token).unwrap();
    let path = format!("/v1/connections/{token}/weights");
    for (path, body, status, words) in [
        (
            "/v1/connections/7/weights",
            "{}",
            404,
            "no MPTCP connection",
        ),
        (
            "/v1/connections/x/weights",
            "{}",
            404,
            "no MPTCP connection",
        ),
        (&path, r#"{"lte": 1}"#, 404, "lte"),
        (&path, r#"{"nr": -1}"#, 400, "0 to 1000000"),
        (&path, r#"{"nr": 1000001}"#, 400, "0 to 1000000"),
        (&path, r#"{"nr": 0}"#, 409, "MP_PRIO"),
    ] {
        let (head, said) = proxy.request("PUT", path, body);
        assert!(
            head.contains(&format!(" {status} ")),
            "{body}: {head} {said}"
        );
        assert!(said.contains(words), "{said}");
    }
    let one: Weights = put(&proxy, &path, r#"{"nr": 4}"#);
    assert_eq!(one.0, [("nr".into(), 4.0), ("wifi".into(), 1.0)].into());
    becomes(&proxy, 0.8);
    // Those of all are for the others.
    let _: Weights = put(&proxy, "/v1/weights", r#"{"nr": 1, "wifi": 4}"#);
    let _: Weights = put(&proxy, &path, r#"{"wifi": 1}"#);
    becomes(&proxy, 0.8);
    // A killed daemon's successor knows of it.
    assert_eq!(proxy.end(Signal::SIGKILL), None);
    let mut proxy = b.start(WRR);
    let own = || {
        let all: Connections = proxy.get("/v1/connections");
        let mut own = all.connections.into_iter().filter_map(|c| c.weights);
        own.next()
    };
    assert_eq!(
        own(),
        Some([("nr".into(), 4.0), ("wifi".into(), 1.0)].into())
    );
    becomes(&proxy, 0.8);
    let (head, said) = proxy.request("DELETE", &path, "");
    assert!(head.contains(" 200 "), "{head} {said}");
    becomes(&proxy, 0.2);
    assert_eq!(own(), None);
    let _: Weights = put(&proxy, &path, r#"{"nr": 4}"#);
    let entries = || {
        let map = MapHandle::from_pinned_path(b.pins().join("weights")).unwrap();
        map.keys()
            .filter(|k| k[4..8] == token.to_ne_bytes())
            .count()
    };
    assert_eq!(entries(), 2);
    traffic.stop();
    eventually("its weights are forgotten", || {
        (entries() == 0).then_some(())
    });
    assert_eq!(proxy.end(Signal::SIGTERM), Some(0));
    b.assert_nothing_left();
}

#[test]
fn killed_at_any_moment_of_its_start_it_is_followed_by_one_that_works() {
    let Some(b) = Bench::new() else { return };
    for n in 0..24u64 {
        // Registering takes some 100 ms.
        let mut child = b.begin();
        std::thread::sleep(Duration::from_millis(10 * n));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let mut proxy = b.start(WRR);
    let s: Status = proxy.get("/v1/status");
    assert!(registered(&s.default_congestion_control), "{s:?}");
    assert_eq!(b.default(), s.default_congestion_control);
    assert!(b.pins().join("link").exists());
    assert_eq!(proxy.end(Signal::SIGTERM), Some(0));
    b.assert_nothing_left();
    assert!(!registered(&s.default_congestion_control));
}

#[test]
fn ended_at_any_moment_of_its_start_it_leaves_nothing() {
    let Some(b) = Bench::new() else { return };
    let limits = || {
        b.w.proxy
            .run(|| PathManager::open().unwrap().limits().unwrap())
    };
    let before = limits();
    for n in 0..24u64 {
        let mut child = b.begin();
        std::thread::sleep(Duration::from_millis(10 * n));
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap());
        let signal = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP][n as usize % 3];
        kill(pid, signal).unwrap();
        if signal == Signal::SIGHUP {
            // It is to read its configuration again, and goes on.
            std::thread::sleep(Duration::from_millis(5));
            kill(pid, Signal::SIGTERM).unwrap();
        }
        child.wait().unwrap();
        let what = format!("{signal} after {} ms", 10 * n);
        assert_eq!(limits(), before, "{what}");
        assert!(!b.t.path().join("proxy.sock").exists(), "{what}");
        b.assert_nothing_left();
    }
}
