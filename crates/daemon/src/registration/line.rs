//! Lines of registration on a connection or a stream.

use std::io;

use braid_api::registration::{FIRST, MAX_BYTES, Reply, Request};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};

use super::{Origin, Registering};

/// Reads a line of up to [`MAX_BYTES`], with its end.
///
/// # Errors
/// The stream's; [`io::ErrorKind::InvalidData`] for a line that is longer.
async fn read(from: &mut (impl AsyncRead + Unpin), begun: &[u8]) -> io::Result<Vec<u8>> {
    let mut line = begun.to_vec();
    let mut piece = [0; 1024];
    // Neither end says anything after its line.
    while line.last() != Some(&b'\n') {
        let n = from.read(&mut piece).await?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.extend(&piece[..n]);
        if line.len() > MAX_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "too long a line",
            ));
        }
    }
    Ok(line)
}

/// Sends a request, and returns the reply.
///
/// # Errors
/// What went wrong, in words; a proxy of before answers with something else, or not at all.
pub(crate) async fn converse(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    request: &Request,
) -> Result<Reply, String> {
    let failed = |e: io::Error| format!("speak to the proxy about the accesses: {e}");
    let line = request.line();
    stream.write_all(line.as_bytes()).await.map_err(failed)?;
    stream.flush().await.map_err(failed)?;
    let reply = read(stream, &[]).await.map_err(failed)?;
    Reply::parse(&reply).map_err(|_| {
        "the proxy answers something else: it needs the same version of Braid".to_owned()
    })
}

/// Reads a request whose first byte was read, hands it over, and answers. One that finds the
/// queue full is left without an answer, as one that was lost.
///
/// # Errors
/// The stream's.
pub(crate) async fn take(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    from: Origin,
    to: &mpsc::Sender<Registering>,
) -> io::Result<()> {
    let line = read(stream, &[FIRST]).await?;
    let reply = match Request::parse(&line) {
        Ok(request) => {
            let (reply, replied) = oneshot::channel();
            let registering = Registering {
                from,
                request,
                reply,
            };
            if to.try_send(registering).is_err() {
                return Ok(());
            }
            let Ok(reply) = replied.await else {
                return Ok(());
            };
            reply
        }
        Err(why) => Reply::refusal(why),
    };
    stream.write_all(reply.line().as_bytes()).await?;
    stream.flush().await
}
