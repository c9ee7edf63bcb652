//! A user's commands.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use braid_netns::{LineSink, Spawn};
use braid_traffic::{CommandOutcome, CommandSpec, RunningCommand};

use super::Test;

pub(crate) const TESTS: &[Test] = &[
    ("command::server_and_client_talk", server_and_client_talk),
    ("command::a_failure_is_told", a_failure_is_told),
    ("command::is_stopped_at_its_limit", is_stopped_at_its_limit),
    ("command::a_server_that_fails", a_server_that_fails),
];

fn spec(client: &str, server: Option<&str>) -> CommandSpec {
    CommandSpec {
        client: client.to_owned(),
        server: server.map(str::to_owned),
        proxy: "127.0.0.1".parse().unwrap(),
        device: "127.0.0.1".parse().unwrap(),
        mptcp: false,
        limit: Duration::from_secs(20),
    }
}

/// Runs it in the namespace of this process; its outcome and what it printed.
fn run(spec: &CommandSpec) -> Result<(CommandOutcome, String), String> {
    let printed = Arc::new(Mutex::new(String::new()));
    let sink: LineSink = {
        let printed = Arc::clone(&printed);
        Arc::new(move |_, _, line| {
            let mut p = printed.lock().unwrap();
            p.push_str(line);
            p.push('\n');
        })
    };
    let place = |_, s: Spawn<'static>| s.log(Arc::clone(&sink)).spawn();
    let outcome = RunningCommand::start(spec, "test", place)
        .and_then(|mut c| c.wait())
        .map_err(|e| format!("{e:#}"))?;
    let printed = printed.lock().unwrap().clone();
    Ok((outcome, printed))
}

/// The other end of these tests: this program, which serves a line once.
fn me() -> String {
    format!("'{}'", std::env::current_exe().unwrap().display())
}

fn server_and_client_talk() {
    for mptcp in [false, true] {
        let client = format!("{} __say {{proxy}}:7001", me());
        let server = format!("sleep 0.3; {} __serve {{proxy}}:7001", me());
        let mut s = spec(&client, Some(&server));
        s.mptcp = mptcp;
        let (outcome, printed) = run(&s).unwrap();
        assert_eq!(outcome.problem, None, "{printed}");
        assert_eq!((outcome.status, outcome.stopped), (Some(0), false));
        // The server says what its connection spoke.
        let protocol = if mptcp { "mptcp" } else { "tcp" };
        assert!(
            printed.contains(&format!("heard hello over {protocol}\n")),
            "{printed}"
        );
        assert!(outcome.end > outcome.start);
    }
}

fn a_failure_is_told() {
    let (outcome, _) = run(&spec("echo no luck >&2; exit 3", None)).unwrap();
    assert_eq!(outcome.status, Some(3));
    let problem = outcome.problem.unwrap();
    assert!(
        problem.contains('3') && problem.contains("no luck"),
        "{problem}"
    );
    let (outcome, _) = run(&spec("no-such-program-here", None)).unwrap();
    assert!(outcome.problem.unwrap().contains("install it"));
}

fn is_stopped_at_its_limit() {
    let mut s = spec("sleep 30 & sleep 30", None);
    s.limit = Duration::from_millis(300);
    let begin = Instant::now();
    let (outcome, _) = run(&s).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(5));
    assert!(outcome.stopped && outcome.problem.is_none(), "{outcome:?}");
}

fn a_server_that_fails() {
    let e = run(&spec("true", Some("echo address in use; exit 1"))).unwrap_err();
    assert!(
        e.contains("before it listened") && e.contains("address in use"),
        "{e}"
    );
}

/// `__serve ADDRESS`: takes one line of one client.
pub(crate) fn serve(address: &str) {
    use std::io::{BufRead, BufReader};
    let listener = std::net::TcpListener::bind(address).unwrap();
    let (stream, _) = listener.accept().unwrap();
    let protocol = match braid_mptcp::socket::on_the_wire(&stream).unwrap() {
        braid_mptcp::socket::OnTheWire::Mptcp => "mptcp",
        braid_mptcp::socket::OnTheWire::Fallback => "tcp",
    };
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    println!("heard {} over {protocol}", line.trim());
}

/// `__say ADDRESS`.
pub(crate) fn say(address: &str) {
    use std::io::Write;
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.write_all(b"hello\n").unwrap();
}
