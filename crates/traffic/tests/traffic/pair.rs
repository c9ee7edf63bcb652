//! A client and a server as processes.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use braid_traffic::{Kind, Role, TrafficReport, TrafficSpec, Watch};

pub(crate) const SOON: Duration = Duration::from_secs(10);

/// A running traffic process; killed when dropped.
pub(crate) struct End {
    pub(crate) child: Child,
    pub(crate) watch: Watch,
}

impl End {
    pub(crate) fn start(spec: &TrafficSpec) -> Self {
        let me = std::env::current_exe().unwrap();
        let mut child = Command::new(me)
            .args(["__traffic", "--spec"])
            .arg(serde_json::to_string(spec).unwrap())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let watch = Watch::of(format!("{:?}", spec.role), stdout);
        Self { child, watch }
    }

    /// The report and the exit status.
    pub(crate) fn end(mut self) -> (TrafficReport, i32) {
        let report = self.watch.report(Duration::from_secs(30)).unwrap();
        let status = self.child.wait().unwrap();
        (report, status.code().unwrap())
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A specification for half a second on loopback, of which 0.1 s is warm-up.
pub(crate) fn spec(traffic: Kind) -> TrafficSpec {
    let mut s = TrafficSpec::new(
        Role::Server,
        "127.0.0.1:0".parse().unwrap(),
        traffic,
        Duration::from_millis(500),
    );
    s.warmup = Duration::from_millis(100);
    s.seed = 7;
    s
}

pub(crate) fn server(spec: &TrafficSpec) -> (End, SocketAddr) {
    let mut s = spec.clone();
    s.role = Role::Server;
    s.csv = None;
    let mut end = End::start(&s);
    let address = end.watch.ready(SOON).unwrap();
    (end, address)
}

pub(crate) fn client(spec: &TrafficSpec, address: SocketAddr) -> End {
    let mut s = spec.clone();
    s.role = Role::Client;
    s.address = address;
    End::start(&s)
}

/// Runs both ends to their reports: client, server. Both must end well.
pub(crate) fn run(spec: &TrafficSpec) -> (TrafficReport, TrafficReport) {
    let (server, address) = server(spec);
    let client = client(spec, address);
    let (c, c_status) = client.end();
    let (s, s_status) = server.end();
    for (report, status) in [(&c, c_status), (&s, s_status)] {
        assert_eq!(report.errors, Vec::<String>::new(), "{report:#?}");
        assert!(report.intact && status == 0, "{report:#?}");
    }
    (c, s)
}
