//! Roles in which the program can be started, and what it does in each.
#![allow(unreachable_pub)]

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use braid_netns::error::exit_code;
use braid_netns::{
    Access, Interrupt, PortChoice, Registry, Rights, Spawn, Topology, TopologySpec, acquire, limits,
};
use braid_radio::emulator::{EmulatorConfig, PathConfig, PortKind, Tuning};
use braid_radio::model::LinkSpec;
use nix::unistd::geteuid;

use braid_netns::world::topology::{connect, device, eventually, left_by, send};

/// Plays a role; returns the exit status.
pub fn play(role: &str, args: &[String]) -> i32 {
    let result = match role {
        "hold" => hold(Path::new(&args[0])),
        "sweep" => sweep(Path::new(&args[0])),
        "forbid" => forbid(Path::new(&args[0])),
        "transfer" => transfer(Path::new(&args[0]), &args[1]),
        "emulate" => emulate(&args[0], Path::new(&args[1])),
        "no-tun" => without_tun(),
        "stubborn" => stubborn(),
        other => panic!("no role {other}"),
    };
    result.map_or_else(
        |e| {
            eprintln!("{e:#}");
            i32::from(exit_code(&e))
        },
        |()| 0,
    )
}

/// Owns a run with a topology and processes in it, until it gets a signal.
fn hold(registry: &Path) -> anyhow::Result<()> {
    let registry = {
        // Before this, there must be no second thread.
        let rights = acquire(|| Ok(()))?;
        println!(
            "rights {}",
            if rights == Rights::Direct {
                "direct"
            } else {
                "user-namespace"
            }
        );
        Registry::open_in(registry)?
    };
    let interrupt = Interrupt::install()?;
    let run = registry.register()?;
    let ports = if geteuid().is_root() {
        PortChoice::Auto
    } else {
        PortChoice::Packet
    };
    let spec = TopologySpec {
        ports,
        ..TopologySpec::new(run.id(), device(&["nr", "wifi", "lifi"]))
    };
    let topology = Topology::build(&spec)?;
    let cpe = &topology.devices[0];
    for access in &cpe.accesses {
        left_by(&topology);
        send(&cpe.namespace, Some(access.device.addr), topology.service)?;
        assert_eq!(
            left_by(&topology).into_iter().collect::<Vec<_>>(),
            std::slice::from_ref(&access.name)
        );
    }
    for limit in limits()? {
        println!("limit {}", limit.what);
    }
    println!("run {}", run.id());
    println!("namespace {}", cpe.namespace.inode()?);
    // The child is killed with its parent. Its own child is not, and this one
    // has left the process group too.
    let script = "setsid sleep 1000 & echo $!; wait";
    let child = Spawn::new(run.id(), "child", "/bin/sh")
        .args(["-c", script])
        .in_namespace(&cpe.namespace)
        .spawn()?;
    eventually("the grandchild runs", || child.tail().len() == 1);
    println!("child {}", child.pid());
    println!("grandchild {}", child.tail()[0]);
    println!("ready");
    interrupt.sleep(Duration::from_secs(120))?;
    Ok(())
}

/// The kinds of port, as the role "transfer" is told them.
pub const PORTS: [(&str, PortChoice); 2] =
    [("tun", PortChoice::Tun), ("packet", PortChoice::Packet)];

/// Starts an emulator on a topology's ports, and transfers verified bytes over
/// each access.
fn transfer(registry: &Path, ports: &str) -> anyhow::Result<()> {
    acquire(|| Ok(()))?;
    let run = Registry::open_in(registry)?.register()?;
    let ports = PORTS
        .iter()
        .find(|p| p.0 == ports)
        .context("a kind of port")?
        .1;
    let started = Instant::now();
    let spec = TopologySpec {
        ports,
        ..TopologySpec::new(run.id(), device(&["nr", "wifi", "lifi"]))
    };
    let topology = Topology::build(&spec)?;
    let built = started.elapsed();
    let cpe = &topology.devices[0];
    let path = |access: &Access| PathConfig {
        name: access.name.clone(),
        device: access.ports.device.config(),
        proxy: access.ports.proxy.config(),
        down: LinkSpec::default(),
        up: LinkSpec::default(),
    };
    let config = EmulatorConfig {
        run_id: run.id().into(),
        seed: 1,
        epoch_ns: None,
        paths: cpe.accesses.iter().map(path).collect(),
        media: Vec::new(),
        backhauls: Vec::new(),
        verify: false,
        pcap: None,
        tuning: Tuning::default(),
    };
    let mut emulator = Spawn::new(run.id(), "emulator", std::env::current_exe()?)
        .args(["role=emulate", &serde_json::to_string(&config)?])
        .arg(run.dir().join("emulator"));
    for access in &cpe.accesses {
        emulator = emulator
            .inherit(&access.ports.device)
            .inherit(&access.ports.proxy);
    }
    let mut emulator = emulator.spawn()?;
    eventually("the emulator is ready", || {
        emulator.tail().iter().any(|l| l == "ready")
    });
    let mut rates = Vec::new();
    let payload: Arc<Vec<u8>> = Arc::new((0..2_000_000u32).flat_map(u32::to_le_bytes).collect());
    for access in &cpe.accesses {
        let listener = topology
            .proxy
            .run(|| TcpListener::bind((topology.service, 0)))??;
        let port = listener.local_addr()?.port();
        let mut receiver = cpe
            .namespace
            .run(|| connect(access.device.addr, topology.service, port))?;
        let mut sender = listener.accept()?.0;
        let mut received = vec![0; payload.len()];
        let started = Instant::now();
        let sent = Arc::clone(&payload);
        let sending = std::thread::spawn(move || sender.write_all(&sent));
        receiver.read_exact(&mut received)?;
        let rate = payload.len() as f64 * 8e-6 / started.elapsed().as_secs_f64();
        ensure!(
            sending.join().is_ok_and(|sent| sent.is_ok()),
            "the sender failed"
        );
        ensure!(
            received == *payload,
            "the payload changed on {}",
            access.name
        );
        rates.push(format!("{rate:.0}"));
    }
    let exit = emulator.terminate(Duration::from_secs(10))?;
    ensure!(
        exit.status.success(),
        "the emulator: {} {:?}",
        exit.status,
        emulator.tail()
    );
    println!(
        "built in {} ms, {} Mbit/s, emulator {:.2} s of CPU",
        built.as_millis(),
        rates.join(" "),
        exit.cpu_seconds()
    );
    Ok(())
}

/// The emulator, as the lab starts it.
fn emulate(config: &str, control: &Path) -> anyhow::Result<()> {
    braid_radio::emulator::run(serde_json::from_str(config)?, control)
}

/// Builds a topology where `/dev/net/tun` is not there.
fn without_tun() -> anyhow::Result<()> {
    use nix::mount::{MsFlags, mount};
    acquire(|| Ok(()))?;
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNS)?;
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    mount(
        Some("none"),
        "/dev/net",
        Some("tmpfs"),
        MsFlags::empty(),
        none,
    )?;
    let spec = TopologySpec::new("test", device(&["nr"]));
    let topology = Topology::build(&spec)?;
    ensure!(matches!(
        topology.devices[0].accesses[0].ports.device.kind,
        PortKind::Packet { .. }
    ));
    ensure!(
        limits()?
            .iter()
            .any(|l| l.what.contains("/dev/net/tun") && l.fix.contains("modprobe tun"))
    );
    Topology::build(&TopologySpec {
        ports: PortChoice::Tun,
        ..spec
    })?;
    Ok(())
}

/// Goes on for long after a signal.
fn stubborn() -> anyhow::Result<()> {
    let interrupt = Interrupt::install()?;
    let child = Spawn::new("a-run", "child", "/bin/sleep")
        .arg("1000")
        .spawn()?;
    println!("child {}", child.pid());
    println!("ready");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    runtime
        .block_on(async { tokio::join!(interrupt.notified(), interrupt.notified()) })
        .0?;
    ensure!(
        interrupt
            .sleep(Duration::ZERO)
            .is_err_and(|e| e.exit_code() == 130)
    );
    println!("interrupted");
    std::thread::sleep(Duration::from_secs(120));
    Ok(())
}

/// Sweeps, and prints what it did.
fn sweep(registry: &Path) -> anyhow::Result<()> {
    let swept = Registry::open_in(registry)?.sweep()?;
    println!(
        "{}",
        serde_json::json!({"runs": swept.runs, "killed": swept.killed, "notes": swept.notes})
    );
    Ok(())
}

/// Enters a user namespace, forbids any further one in it, and tries, without
/// capabilities, to hold a run there.
fn forbid(registry: &Path) -> anyhow::Result<()> {
    acquire(|| Ok(()))?;
    std::fs::write("/proc/sys/user/max_user_namespaces", "0")?;
    let own = std::env::current_exe()?;
    let error = Command::new("setpriv")
        .args(["--inh-caps=-all", "--bounding-set=-all"])
        .arg(own)
        .args(["role=hold".as_ref(), registry.as_os_str()])
        .env_remove("BRAID_LAB_USERNS")
        .exec();
    Err(error.into())
}
