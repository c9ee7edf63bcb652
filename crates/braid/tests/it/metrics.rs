//! Metrics of both ends, scraped by a real Prometheus: its figures are those of the status, and
//! those of the transfer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::daemon::Daemon;
use crate::support::traffic::{DEVICE, PROXY};
use braid_api::Status;
use braid_netns::world::{self, Ns, World, eventually, eventually_within};

const LISTEN: &str = "127.0.0.1:9464";
const PROMETHEUS: &str = "127.0.0.1:9090";

/// A program of Prometheus: of the system, or beside the other tools of the build.
fn program(name: &str) -> Option<PathBuf> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.build/tools/prometheus");
    let built = built.join("usr/bin").join(name);
    let found = built.is_file().then_some(built);
    let found = found.or_else(|| which::which(name).ok());
    if found.is_none() {
        println!("skipped: {name} is not here: apt-get install prometheus");
    }
    found
}

/// Asks an HTTP server of a namespace, and returns the body of its answer.
fn get(ns: &Ns, at: &str, target: &str) -> Option<String> {
    let at: SocketAddr = at.parse().unwrap();
    ns.run(|| {
        let mut s = TcpStream::connect(at).ok()?;
        s.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
        let request = format!("GET {target} HTTP/1.0\r\nHost: {at}\r\n\r\n");
        s.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        s.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.contains(" 200 ").then(|| body.to_owned())
    })
}

/// Prometheus in a namespace; stopped when dropped.
struct Scraper<'a> {
    child: Child,
    ns: &'a Ns,
}

impl<'a> Scraper<'a> {
    fn start(program: &Path, ns: &'a Ns, dir: &Path) -> Self {
        let config = format!(
            "global: {{scrape_interval: 250ms}}\nscrape_configs:\n- job_name: braid\n  \
             static_configs: [{{targets: ['{LISTEN}']}}]\n"
        );
        std::fs::create_dir_all(dir).unwrap();
        std::fs::write(dir.join("prometheus.yml"), config).unwrap();
        let child = ns.run(|| {
            Command::new(program)
                .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data"])
                .arg(format!("--web.listen-address={PROMETHEUS}"))
                .arg("--log.level=error")
                .current_dir(dir)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        });
        Self { child, ns }
    }

    /// The latest value of a metric of an access.
    fn value(&self, metric: &str, access: &str) -> Option<f64> {
        let query = format!("/api/v1/query?query={metric}%7Baccess%3D%22{access}%22%7D");
        let answer = get(self.ns, PROMETHEUS, &query)?;
        let answer: serde_json::Value = serde_json::from_str(&answer).ok()?;
        let value = &answer["data"]["result"][0]["value"][1];
        value.as_str()?.parse().ok()
    }

    /// Values of a metric of both accesses.
    fn both(&self, metric: &str) -> Option<[f64; 2]> {
        Some([self.value(metric, "nr")?, self.value(metric, "wifi")?])
    }
}

impl Drop for Scraper<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Checks a page as Prometheus's own checker does.
fn check(promtool: &Path, page: &str) {
    let mut child = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(page.as_bytes()).unwrap();
    drop(stdin);
    let done = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.is_empty(), "{said}\n{page}");
}

fn share([nr, wifi]: [f64; 2]) -> f64 {
    nr / (nr + wifi)
}

#[test]
fn prometheus_sees_what_each_access_carries() {
    let (Some(prometheus), Some(promtool)) = (program("prometheus"), program("promtool")) else {
        return;
    };
    let Some(w) = World::new(2).filter(|w| w.limited(2)) else {
        return;
    };
    let t = tempfile::tempdir().unwrap();
    let metrics = format!("[metrics]\nlisten = \"{LISTEN}\"\n");
    let config = |text: &str| text.replacen("[access.nr]", &format!("{metrics}[access.nr]"), 1);
    world::mptcp::mesh(&w, 2);
    let device = Daemon::start(&w.device, t.path(), "up", &config(DEVICE));
    let proxy = Daemon::start(&w.proxy, t.path(), "proxy", &config(PROXY));
    let scrapers = [(&w.device, "d"), (&w.proxy, "p")]
        .map(|(ns, name)| Scraper::start(&prometheus, ns, &t.path().join(name)));
    for scraper in &scrapers {
        let up = || {
            scraper
                .value("braid_access_info", "nr")
                .filter(|v| *v == 1.0)
        };
        eventually_within(Duration::from_secs(30), "Prometheus has scraped", up);
    }
    let (mut stream, server) = world::mptcp::connected(&w, 80, None);
    for _ in 0..3 {
        world::fetch(&mut stream, 10_000_000);
    }
    // The kernel clears the counters of a connection's first subflow when it closes that one:
    // the meter has to have read them before.
    std::thread::sleep(Duration::from_millis(1_500));
    world::ask(&mut stream, 0);
    drop(stream);
    server.join().unwrap();
    // Subflows are gone, their bytes are not.
    let gone = || {
        let s: Status = device.get("/v1/status");
        s.accesses.iter().all(|a| a.subflows == 0).then_some(s)
    };
    let ended = eventually("the subflows have ended", gone);
    for (daemon, [metric, other]) in [
        (&device, ["received", "sent"]),
        (&proxy, ["sent", "received"]),
    ] {
        let scraper = &scrapers[usize::from(metric == "sent")];
        let name = |m: &str| format!("braid_access_{m}_bytes_total");
        let of = |s: &Status| {
            let of = |i: usize| match metric {
                "received" => s.accesses[i].received_bytes as f64,
                _ => s.accesses[i].sent_bytes as f64,
            };
            [of(0), of(1)]
        };
        let same = || {
            let status: Status = daemon.get("/v1/status");
            let seen = scraper.both(&name(metric))?;
            (seen == of(&status)).then_some(seen)
        };
        let seen = eventually("Prometheus has the last figures", same);
        assert!(seen.iter().all(|v| *v > 4e6), "{metric}: {seen:?}");
        assert!(scraper.both(&name(other)).is_some());
    }
    let of = |scraper: &Scraper<'_>, what: &str| {
        let name = format!("braid_access_{what}_bytes_total");
        scraper.both(&name).unwrap()
    };
    let [receiver, sender] = &scrapers;
    let (sent, again) = (of(sender, "sent"), of(sender, "retransmitted"));
    // What was sent again arrives once.
    let once = [sent[0] - again[0], sent[1] - again[1]];
    let [at_device, at_proxy] = [share(of(receiver, "received")), share(once)];
    let all: f64 = once.iter().sum();
    assert!((3e7..3.03e7).contains(&all), "{once:?} of 30 MB");
    assert!(
        (at_device - at_proxy).abs() < 0.01,
        "shares of nr: {at_device} received, {at_proxy} sent once"
    );
    assert!(ended.accesses.iter().all(|a| a.received_bytes > 0));
    for ns in [&w.device, &w.proxy] {
        check(&promtool, &get(ns, LISTEN, "/metrics").unwrap());
    }
}
