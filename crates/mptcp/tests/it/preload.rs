//! An unchanged program really opens MPTCP sockets, and connects with them.

use std::process::{Command, Stdio};

use braid_mptcp::{preload, socket, support};
use braid_netns::world::{World, service};

/// Connects, asks the server of this world for nothing, and prints the protocol
/// number of its socket (6 TCP, 262 MPTCP).
const PROGRAM: &str = "
import socket
s = socket.create_connection(('10.77.0.1', 80))
print(s.getsockopt(socket.SOL_SOCKET, 38))
s.sendall(bytes(8))
";

/// Returns what the program prints, started with the library in the device's namespace.
fn protocol(w: &World) -> Option<String> {
    let listener = w
        .proxy
        .run(|| socket::listen(service(80), true, None).unwrap());
    let server = w.serve(listener);
    let ran = w.device.run(|| {
        let mut command = Command::new("python3");
        command.args(["-c", PROGRAM]).stdout(Stdio::piped());
        preload::command(&mut command).unwrap();
        command.output()
    });
    let out = match ran {
        Ok(out) => out,
        Err(e) => {
            eprintln!("skipped: python3 cannot be started: {e}");
            return None;
        }
    };
    assert!(out.status.success(), "{out:?}");
    server.join().unwrap();
    Some(String::from_utf8(out.stdout).unwrap().trim().to_owned())
}

#[test]
fn an_unchanged_program_uses_mptcp() {
    let Some(w) = World::new(1) else { return };
    let Some(seen) = protocol(&w) else { return };
    assert_eq!(seen, "262");
    let counters = w.proxy.run(|| braid_mptcp::mib::Counters::read().unwrap());
    assert_eq!(counters.get("MPTcpExt.MPCapableSYNRX"), 1, "{counters:?}");
}

#[test]
fn where_mptcp_is_off_the_program_gets_tcp() {
    let Some(w) = World::new(1) else { return };
    w.device
        .run(|| support::set_sysctl("net.mptcp.enabled", "0").unwrap());
    let Some(seen) = protocol(&w) else { return };
    assert_eq!(seen, "6");
}
