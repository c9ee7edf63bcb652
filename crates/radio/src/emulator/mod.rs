//! The real-time loop: joins network namespaces over emulated links.
//!
//! Hosts hand over super-packets through TUN devices or packet sockets; the
//! models of [`crate::model`] see them as trains of wire packets and say what
//! arrives when; the loop writes that to the other host. One thread, asleep
//! whenever nothing is due. See `docs/emulator.md`.

mod adopt;
mod ahead;
pub mod api;
mod batch;
mod buffers;
mod capture;
mod checksum;
mod client;
mod commands;
mod compensation;
mod config;
mod control;
mod generation;
mod lateness;
mod outbox;
mod packet;
mod port;
mod realtime;
mod ring;
mod run;
mod segment;
mod simulated;
mod timer;
pub mod tun;
pub mod veth;
mod vnet;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;

use anyhow::{Context, Result};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

pub use client::Client;
pub use config::{
    BackhaulConfig, EmulatorConfig, MediumConfig, PathConfig, PortConfig, PortKind, StationConfig,
    StationLinkConfig, Tuning,
};
pub use realtime::fifo;
pub use timer::monotonic_ns;

use buffers::Buffers;
use capture::Capture;
use compensation::Compensation;
use generation::link_names;
use outbox::{LinkIo, Outbox};
use port::Port;
use run::{Inputs, Loop};
use segment::Checksums;
use vnet::Framing;

/// Emulates the links of `config` until SIGTERM, SIGINT or a command, serving
/// the control API on the Unix socket `control`. Prints the line `ready` on
/// standard output once packets flow; the descriptors named in `config` are
/// taken over. The calling thread becomes a real-time one where that is allowed.
///
/// # Errors
/// A bad configuration, a descriptor that was not passed, a control socket that
/// cannot be made, or the kernel refusing a timer or the like.
pub fn run(config: EmulatorConfig, control: &Path) -> Result<()> {
    config.check()?;
    // Before any thread starts, which would otherwise take the signals.
    let mut stop = SigSet::empty();
    stop.add(Signal::SIGTERM);
    stop.add(Signal::SIGINT);
    stop.thread_block().context("cannot block signals")?;
    let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
    let signals = SignalFd::with_flags(&stop, flags).context("cannot receive signals")?;

    let simulated = config.tuning.simulated;
    let reserve = compensation::most(simulated);
    let mut ports = Vec::new();
    let mut links = Vec::new();
    for (i, p) in config.paths.iter().enumerate() {
        for port in [&p.device, &p.proxy] {
            let framing = match &port.kind {
                PortKind::Tun => Framing::Ip,
                PortKind::Packet { peer_mac } => Framing::Ethernet {
                    peer: config::parse_mac(peer_mac)?,
                },
            };
            let fd = adopt::adopt(port.fd).with_context(|| format!("path \"{}\"", p.name))?;
            ports.push(Port::new(fd, framing));
        }
        let (device, proxy) = (2 * i, 2 * i + 1);
        let mut link = |way: &str, ends, spec| {
            let name = format!("{}.{way}", p.name);
            links.push(LinkIo::new(name, ends, spec, reserve));
        };
        link("down", (proxy, device), &p.down);
        link("up", (device, proxy), &p.up);
    }
    let capture = match &config.pcap {
        Some(path) => Some(Capture::start(path, &link_names(&config))?),
        None => None,
    };
    let checksums = if config.verify {
        Checksums::Complete
    } else {
        Checksums::Partial
    };
    let memory = config.tuning.memory_mib as usize * 1024 * 1024;
    let (buffers, compensation) = match simulated {
        // Page faults take no simulated time, but the host's.
        true => (Buffers::unprepared(memory), Compensation::simulated()),
        false => (Buffers::new(memory), Compensation::new()),
    };
    let out = Outbox::new(buffers, links, checksums, capture, compensation);

    let (commands, receiver) = channel();
    let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
        .context("cannot create an event descriptor")?;
    let bell = Arc::new(bell);
    let controls = control::Controls {
        commands,
        bell: Arc::clone(&bell),
    };
    control::serve(control, controls)?;
    let inputs = Inputs {
        signals,
        bell,
        commands: receiver,
    };
    let granted = match simulated {
        true => realtime::become_first(),
        false => realtime::become_punctual(),
    };
    let result = Loop::new(config, ports, out, granted, inputs).and_then(|mut l| {
        println!("ready");
        std::io::stdout()
            .flush()
            .context("cannot say that the emulator is ready")?;
        match simulated {
            true => l.run_simulated(),
            false => l.run(),
        }
    });
    // Failing means that someone else removed it.
    let _ = std::fs::remove_file(control);
    result
}
