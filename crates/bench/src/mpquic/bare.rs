//! One path with nothing in its way: both ends of the library, each in a network namespace
//! of its own with one thread, and a pair of virtual Ethernet interfaces between them. No
//! emulator, and no TCP on either side of it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use braid_mpquic::tls::{self, Devices, Identity, Pin, Trust};
use braid_mpquic::{Access, Device, Lane, Options, Proxy};
use nix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::host::Host;
use crate::pattern::{BLOCK, Pattern, StreamCheck};

const NAME: &str = "eth1";
const PROXY: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
const DEVICE: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
/// Before the rate counts.
const WARMUP: Duration = Duration::from_secs(1);
/// After the sender's last byte, or for the handshake.
const PATIENCE: Duration = Duration::from_secs(30);

/// Result of a measurement of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bare {
    /// Payload after the warm-up, Mbit/s.
    pub(super) mbps: f64,
    /// CPU seconds per Gbit of payload, of the thread of each end. What the interface's
    /// transmission makes the kernel do at the far end counts for the near one.
    pub(super) sender: f64,
    pub(super) receiver: f64,
    /// Pieces that were wrong; 1 more if the stream ended early.
    pub(super) bad: u64,
}

/// The proxy sends for `time` after the warm-up; the device checks every byte.
pub(super) fn measure(lane: Lane, time: Duration) -> Result<Bare> {
    let (near, far) = (Host::new()?, Host::new()?);
    near.join(&far, NAME)?;
    near.configure(NAME, PROXY)?;
    far.configure(NAME, DEVICE)?;
    let identity = Identity::generate("proxy")?;
    let pin = identity.pin();
    let (tell, told) = sync_channel(1);
    let options = move || Options {
        lane,
        ..Options::default()
    };
    let (sent, got) = std::thread::scope(|s| {
        let sending = s.spawn(|| near.with(move || send(&identity, &options(), time, &tell)));
        let got = far.with(move || receive(pin, options(), &told));
        let sent = sending.join().map_err(|_| anyhow!("the sender panicked"))?;
        anyhow::Ok((sent?, got?))
    })?;
    let gbit = got.bytes as f64 * 8.0 / 1e9;
    Ok(Bare {
        mbps: got.mbps,
        sender: sent.cpu / gbit,
        receiver: got.cpu / gbit,
        bad: got.bad + u64::from(sent.bytes != got.bytes),
    })
}

/// CPU time of the calling thread, s.
fn cpu() -> Result<f64> {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).context("read the CPU time")?;
    Ok(Duration::from(now).as_secs_f64())
}

fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let patience = tokio::time::timeout(2 * PATIENCE, work).await;
        patience.context("a minute has passed without an end")?
    })
}

struct Sent {
    bytes: u64,
    cpu: f64,
}

fn send(
    identity: &Identity,
    options: &Options,
    time: Duration,
    tell: &SyncSender<SocketAddr>,
) -> Result<Sent> {
    run(async {
        let tls = tls::server(identity, &Devices::Anyone, tls::alpn(options.lane))?;
        let at = SocketAddr::from((PROXY, 0));
        let proxy = Proxy::listen(&[at], tls, options, Vec::new())?;
        tell.send(proxy.addresses()[0])?;
        let session = proxy.accept().await?;
        let mut stream = session.accept().await?;
        stream.read_u8().await?;
        let (pattern, mut block) = (Pattern::new(), vec![0; BLOCK]);
        let (began, before) = (Instant::now(), cpu()?);
        let mut number = 0;
        while began.elapsed() < WARMUP + time {
            pattern.fill(number, &mut block);
            stream.write_all(&block).await?;
            number += 1;
        }
        stream.shutdown().await?;
        let cpu = cpu()? - before;
        session.close();
        proxy.wait_idle().await;
        Ok(Sent {
            bytes: number * BLOCK as u64,
            cpu,
        })
    })
}

struct Got {
    bytes: u64,
    mbps: f64,
    cpu: f64,
    bad: u64,
}

fn receive(pin: Pin, options: Options, told: &Receiver<SocketAddr>) -> Result<Got> {
    let remote = told
        .recv_timeout(PATIENCE)
        .context("the sender does not listen")?;
    run(async {
        let tls = tls::client(&Trust::Pins(vec![pin]), None, tls::alpn(options.lane))?;
        let accesses = vec![Access::on("only", NAME)];
        let (device, session) = Device::connect(remote, "proxy", tls, options, accesses).await?;
        let (mut read, mut write) = session.open().await?.into_split();
        write.write_u8(0).await?;
        let mut check = StreamCheck::new();
        let (began, before) = (Instant::now(), cpu()?);
        let mut from = None;
        loop {
            let data = read.chunk().await?;
            if data.is_empty() {
                break;
            }
            check.add(&data);
            if from.is_none() && began.elapsed() >= WARMUP {
                from = Some((Instant::now(), check.bytes()));
            }
        }
        let (begin, bytes) = from.context("the stream ended within the warm-up")?;
        let mbps = (check.bytes() - bytes) as f64 * 8.0 / 1e6 / begin.elapsed().as_secs_f64();
        let cpu = cpu()? - before;
        // The sender closes when all of it is acknowledged.
        session.ended().await;
        device.wait_idle().await;
        Ok(Got {
            bytes: check.bytes(),
            mbps,
            cpu,
            bad: check.bad,
        })
    })
}
