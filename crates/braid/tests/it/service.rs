//! `braid run --cgroup`: what holds for a service that is there already.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use braid_mptcp::bpf;
use braid_mptcp::cgroup::Made;
use braid_mptcp::diag::Diag;
use braid_netns::world::mptcp::connected;
use braid_netns::world::{World, ask, fetch};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The congestion control of the device's socket.
fn congestion_control(w: &World, stream: &TcpStream) -> String {
    let mine = stream.local_addr().unwrap();
    let all = w.device.run(|| Diag::open().unwrap().tcp().unwrap());
    let socket = all.into_iter().find(|s| s.local == mine).unwrap();
    socket.congestion_control
}

fn over((mut stream, server): (TcpStream, JoinHandle<()>)) {
    ask(&mut stream, 0);
    server.join().unwrap();
}

#[test]
fn a_congestion_control_holds_for_a_service_until_a_signal() {
    let Some(w) = World::new(1) else { return };
    let able = bpf::can_use_congestion_control().map_err(|e| e.to_string());
    let group = match able.and_then(|()| Made::new().map_err(|e| e.to_string())) {
        Ok(group) => group,
        Err(e) => return println!("skipped: {e}"),
    };
    for (port, signal, status) in [(80, Signal::SIGINT, 130), (90, Signal::SIGTERM, 0)] {
        let mut braid = Command::new(env!("CARGO_BIN_EXE_braid"));
        braid.args(["run", "--cc", "lia", "--cgroup"]);
        let mut braid = braid
            .arg(group.path())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let said = BufReader::new(braid.stderr.take().unwrap()).lines();
        let mut said = said.map(Result::unwrap);
        assert!(said.any(|l| l.contains("until interrupted")), "it ended");
        let mut inside = group.start(|| connected(&w, port, None)).unwrap();
        let outside = connected(&w, port + 1, None);
        fetch(&mut inside.0, 1_000_000);
        let held = congestion_control(&w, &inside.0);
        assert!(held.starts_with("lia_"), "{held}");
        assert!(!congestion_control(&w, &outside.0).starts_with("lia_"));
        over(outside);

        let pid = Pid::from_raw(i32::try_from(braid.id()).unwrap());
        kill(pid, signal).unwrap();
        assert_eq!(braid.wait().unwrap().code(), Some(status));
        // What is open keeps it, and what begins does not get it.
        fetch(&mut inside.0, 1_000_000);
        assert_eq!(congestion_control(&w, &inside.0), held);
        over(inside);
        let later = group.start(|| connected(&w, port + 2, None)).unwrap();
        assert!(!congestion_control(&w, &later.0).starts_with("lia_"));
        over(later);
    }
}
