//! Settings of a cgroup: they hold for the sockets made in it, and no others.
//!
//! One test, because a process is in one group as a whole.

use std::net::TcpStream;
use std::path::PathBuf;

use braid_mptcp::bpf::{self, CongestionControl};
use braid_mptcp::cgroup::{self, Made};
use braid_mptcp::diag::Diag;
use braid_mptcp::socket::{self, OnTheWire};
use braid_netns::world::mptcp::{look, mesh, with_subflows};
use braid_netns::world::{World, ask, fetch, service};

/// Serves one connection at `port`, without congestion control of its own.
fn connected(w: &World, port: u16, mptcp: bool) -> (TcpStream, std::thread::JoinHandle<()>) {
    let listener = w
        .proxy
        .run(|| socket::listen(service(port), mptcp, None).unwrap());
    let server = w.serve(listener);
    let stream = w
        .device
        .run(|| socket::connect(None, service(port), mptcp, None).unwrap());
    (stream, server)
}

#[test]
fn what_is_in_the_group_has_it_and_what_is_not_has_not() {
    let Some(w) = World::new(3) else { return };
    let able = bpf::can_use_congestion_control().map_err(|e| e.to_string());
    let group = able.and_then(|()| Made::new().map_err(|e| e.to_string()));
    let group = match group {
        Ok(group) => group,
        Err(e) => {
            println!("skipped: {e}");
            return;
        }
    };
    cgroup::check(group.path()).unwrap();
    killed_runs_leave_nothing(&group);
    let before = cgroup::own().unwrap();
    congestion_control(&w, &group);
    protocol(&w, &group);
    assert_eq!(cgroup::own().unwrap(), before);
    let path: PathBuf = group.path().into();
    drop(group);
    assert!(!path.exists(), "{} is left behind", path.display());
}

/// Checks that the cgroup of a killed process is removed by the next one, and that of a
/// living one is not.
fn killed_runs_leave_nothing(group: &Made) {
    let mut dead = std::process::Command::new("true").spawn().unwrap();
    dead.wait().unwrap();
    let name = group.path().file_name().unwrap().to_str().unwrap();
    let name = name.replace(&std::process::id().to_string(), &dead.id().to_string());
    let left = group.path().with_file_name(name);
    std::fs::create_dir(&left).unwrap();
    let second = Made::new().unwrap();
    assert!(!left.exists() && group.path().exists());
    // Both are of this process, and so the same.
    std::mem::forget(second);
}

fn congestion_control(w: &World, group: &Made) {
    mesh(w, 3);
    let name = format!("t{:x}_group", std::process::id() & 0xffff);
    let registered = bpf::register(CongestionControl::Lia, &name).unwrap();
    let attached = bpf::use_congestion_control(group.path(), registered.name()).unwrap();
    let mut ends = [&w.device, &w.proxy].map(|ns| ns.run(|| Diag::open().unwrap()));

    let (mut stream, server) = group.start(|| connected(w, 80, true)).unwrap();
    fetch(&mut stream, 1_000_000);
    // At the end that connected, and at the one that accepted; joined ones, too.
    for diag in &mut ends {
        for s in with_subflows(diag, 3).subflows {
            assert_eq!(s.congestion_control, name, "{s:?}");
        }
    }
    // It stays when the program has gone, and data flows.
    drop(attached);
    fetch(&mut stream, 10_000_000);
    ask(&mut stream, 0);
    server.join().unwrap();
    drop(stream);

    let attached = bpf::use_congestion_control(group.path(), registered.name()).unwrap();
    let has = |diag: &mut Diag, port: u16| {
        let all = look(diag).into_iter().flat_map(|c| c.subflows);
        let mut of_port = all.filter(|s| s.local.port() == port || s.remote.port() == port);
        of_port.next().map(|s| s.congestion_control == name)
    };
    // Outside, and plain TCP inside.
    let (mut outside, server) = connected(w, 81, true);
    fetch(&mut outside, 1000);
    assert_eq!(has(&mut ends[0], 81), Some(false));
    ask(&mut outside, 0);
    server.join().unwrap();
    let (mut plain, server) = group.start(|| connected(w, 82, false)).unwrap();
    fetch(&mut plain, 1000);
    assert_eq!(has(&mut ends[0], 82), Some(false));
    ask(&mut plain, 0);
    server.join().unwrap();
    drop(attached);
}

fn protocol(w: &World, group: &Made) {
    if let Err(e) = bpf::can_use_mptcp() {
        println!("skipped: {e}");
        return;
    }
    let _attached = bpf::use_mptcp(group.path()).unwrap();
    let listener = w
        .proxy
        .run(|| socket::listen(service(90), true, None).unwrap());
    let server = w.serve(listener);
    let speaks = |inside: bool| {
        // The standard library asks for TCP.
        let connect = || w.device.run(|| TcpStream::connect(service(90)).unwrap());
        let mut stream = match inside {
            true => group.start(connect).unwrap(),
            false => connect(),
        };
        fetch(&mut stream, 1000);
        (socket::on_the_wire(&stream), stream)
    };
    assert_eq!(speaks(false).0.unwrap(), OnTheWire::Fallback);
    let (speaks, mut stream) = speaks(true);
    assert_eq!(speaks.unwrap(), OnTheWire::Mptcp);
    ask(&mut stream, 0);
    server.join().unwrap();
}
