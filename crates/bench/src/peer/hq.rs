//! HTTP/0.9 over QUIC, "hq-interop": what implementations of QUIC test each other with. A
//! stream carries `GET /NAME`, and the file back.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use braid_mpquic::tls::{self, Devices, Identity, Pin, Trust};
use braid_mpquic::{Access, Device, Lane, Options, Proxy, Session, Stream};
use clap::Subcommand;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const ALPN: &[u8] = b"hq-interop";
/// A request is one line.
const REQUEST: u64 = 4096;
/// So that nothing of the benchmark stays.
const LONGEST: Duration = Duration::from_secs(120);
const FAREWELL: Duration = Duration::from_millis(10);

#[derive(Debug, Subcommand)]
pub(crate) enum Hq {
    /// Serves the files of a folder.
    Serve {
        #[arg(long)]
        at: SocketAddr,
        #[arg(long)]
        certificate: PathBuf,
        #[arg(long)]
        key: PathBuf,
        #[arg(long)]
        cc: String,
        dir: PathBuf,
    },
    /// Gets a file over interfaces.
    Get {
        #[arg(long)]
        from: SocketAddr,
        #[arg(long)]
        pin: Pin,
        #[arg(long)]
        cc: String,
        #[arg(long)]
        out: PathBuf,
        name: String,
        #[arg(required = true)]
        interfaces: Vec<String>,
    },
}

pub(crate) fn run(what: Hq) -> Result<bool> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let work = async {
        match what {
            Hq::Serve {
                at,
                certificate,
                key,
                cc,
                dir,
            } => serve(at, &Identity::load(&certificate, &key)?, &options(cc), &dir).await,
            Hq::Get {
                from,
                pin,
                cc,
                out,
                name,
                interfaces,
            } => get(from, pin, options(cc), &name, &interfaces, &out).await,
        }
    };
    runtime
        .block_on(async { tokio::time::timeout(LONGEST, work).await })
        .context("it took too long")??;
    Ok(true)
}

/// No peer but Braid has the datagram lane.
fn options(congestion_control: String) -> Options {
    Options {
        lane: Lane::Stream,
        congestion_control,
        ..Options::default()
    }
}

async fn serve(at: SocketAddr, identity: &Identity, options: &Options, dir: &Path) -> Result<()> {
    let tls = tls::server(identity, &Devices::Anyone, ALPN)?;
    let proxy = Proxy::listen(&[at], tls, options, Vec::new())?;
    loop {
        let session = proxy.accept().await?;
        tokio::spawn(answers(session, dir.to_owned()));
    }
}

async fn answers(session: Session, dir: PathBuf) {
    while let Ok(stream) = session.accept().await {
        let dir = dir.clone();
        tokio::spawn(async move {
            if let Err(e) = answer(stream, &dir).await {
                eprintln!("hq: {e:#}");
            }
        });
    }
    eprintln!("hq: {}", session.ended().await);
}

async fn answer(stream: Stream, dir: &Path) -> Result<()> {
    let (read, mut write) = stream.into_split();
    let mut request = String::new();
    read.take(REQUEST)
        .read_to_string(&mut request)
        .await
        .context("read a request")?;
    let file = dir.join(name(&request)?);
    let content = std::fs::read(&file).with_context(|| format!("read {}", file.display()))?;
    write.write_all(&content).await.context("send the file")?;
    write.shutdown().await.context("end the stream")
}

/// Returns the name of the requested file, which is in the folder itself.
fn name(request: &str) -> Result<&str> {
    let path = request.trim_end().strip_prefix("GET /");
    match path {
        Some(name) if !name.is_empty() && !name.contains('/') && name != ".." => Ok(name),
        _ => bail!("no request of HTTP/0.9 for a file: {request:?}"),
    }
}

async fn get(
    from: SocketAddr,
    pin: Pin,
    options: Options,
    name: &str,
    interfaces: &[String],
    out: &Path,
) -> Result<()> {
    let tls = tls::client(&Trust::Pins(vec![pin]), None, ALPN)?;
    let accesses = interfaces.iter().map(|i| Access::on(i, i)).collect();
    let (device, session) = Device::connect(from, "peer", tls, options, accesses).await?;
    let (mut read, mut write) = session.open().await?.into_split();
    write
        .write_all(format!("GET /{name}\r\n").as_bytes())
        .await?;
    write.shutdown().await?;
    let mut file = std::fs::File::create(out).with_context(|| format!("make {}", out.display()))?;
    loop {
        let data = read.chunk().await.context("read the answer")?;
        if data.is_empty() {
            break;
        }
        std::io::Write::write_all(&mut file, &data).context("write the answer")?;
    }
    for path in session.paths()? {
        let access = path.access.unwrap_or_default();
        eprintln!("hq: {access}: {} bytes received", path.received_bytes);
    }
    session.close();
    // Long enough to tell the peer, and not as long as QUIC remembers the connection.
    let _ = tokio::time::timeout(FAREWELL, device.wait_idle()).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_folder_are_served() {
        assert_eq!(name("GET /file.bin\r\n").unwrap(), "file.bin");
        for bad in [
            "",
            "GET /",
            "GET /..",
            "GET /../x",
            "GET //x",
            "PUT /x",
            "GET x",
        ] {
            assert!(name(bad).is_err(), "{bad:?}");
        }
    }
}
