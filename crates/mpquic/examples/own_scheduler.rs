//! A packet scheduler of the reader's own: it always sends where the least is under way.
//!
//! Against `cargo run -p braid-mpquic --example serve`:
//! `own_scheduler ADDRESS:PORT PIN INTERFACE...`

use braid_mpquic::tls::{self, Trust};
use braid_mpquic::{Access, Device, Lane, Options, sched};
use sched::{Decision, Flow, PathView, Scheduler, Time, Until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[derive(Debug)]
struct LeastInFlight;

impl Scheduler for LeastInFlight {
    fn name(&self) -> &'static str {
        "least-in-flight"
    }

    fn decide(&mut self, _now: Time, _flow: &Flow, paths: &[PathView]) -> Decision {
        let all = paths.iter().enumerate();
        let may = all.filter(|(_, p)| p.usable && p.has_room());
        match may.min_by_key(|(_, p)| p.in_flight) {
            Some((path, p)) => Decision::Send {
                path,
                most: 10 * p.segment,
            },
            None => Decision::Wait(Until::AnyRoom),
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let usage = "own_scheduler ADDRESS:PORT PIN INTERFACE...";
    let (at, pin) = args.next().zip(args.next()).ok_or(usage)?;
    let accesses = args.map(|i| Access::on(&i, &i)).collect();
    let tls = tls::client(
        &Trust::Pins(vec![pin.parse()?]),
        None,
        tls::alpn(Lane::Datagram),
    )?;
    let (device, session) =
        Device::connect(at.parse()?, "proxy", tls, Options::default(), accesses).await?;
    session.set_scheduler(Box::new(LeastInFlight))?;
    let mut stream = session.open().await?;
    stream.write_all(b"how much?").await?;
    stream.shutdown().await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    println!("{} bytes of answer, over:", answer.len());
    for path in session.paths()? {
        let name = path.access.unwrap_or_default();
        println!("  {name}: {} bytes received", path.received_bytes);
    }
    session.close();
    device.wait_idle().await;
    Ok(())
}
