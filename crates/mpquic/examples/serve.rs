//! A proxy that answers every stream with a megabyte, and says what happens to paths:
//! `serve ADDRESS:PORT`. It prints the pin that devices trust it by.

use braid_mpquic::tls::{self, Devices, Identity};
use braid_mpquic::{Lane, Options, PathEvent, Proxy, Session};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let at = std::env::args().nth(1).ok_or("serve ADDRESS:PORT")?;
    let identity = Identity::generate("proxy")?;
    // Open to anyone: a proxy of one's own names the pins of its devices here.
    let tls = tls::server(&identity, &Devices::Anyone, tls::alpn(Lane::Datagram))?;
    let proxy = Proxy::listen(&[at.parse()?], tls, &Options::default(), Vec::new())?;
    println!("{}", identity.pin());
    loop {
        let session = proxy.accept().await?;
        tokio::spawn(tell(session.clone()));
        tokio::spawn(answer(session));
    }
}

async fn answer(session: Session) {
    while let Ok(mut stream) = session.accept().await {
        tokio::spawn(async move {
            let mut question = Vec::new();
            stream.read_to_end(&mut question).await?;
            stream.write_all(&vec![7; 1_000_000]).await?;
            stream.shutdown().await
        });
    }
}

async fn tell(session: Session) {
    let Ok(mut events) = session.events() else {
        return;
    };
    while let Ok(change) = events.recv().await {
        let access = change.access.as_deref().unwrap_or("a path");
        match change.what {
            PathEvent::Up => eprintln!("{access} is up"),
            PathEvent::Silent => eprintln!("{access} is silent"),
            PathEvent::Heard => eprintln!("{access} is heard again"),
            PathEvent::Down => eprintln!("{access} is down: {}", change.why),
        }
    }
    eprintln!("{}", session.ended().await);
}
