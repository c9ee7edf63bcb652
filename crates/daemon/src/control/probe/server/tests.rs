use super::super::client::{Origin, Outcome, probe};
use super::super::wire::{FIRST, LEN};
use super::*;
use braid_core::estimate::ProbeOrder;
use tokio::net::{TcpListener, TcpSocket};

const PATIENCE: Duration = Duration::from_millis(500);

struct Proxy {
    transfers: Transfers,
    access: Option<String>,
    connected: bool,
    wants: bool,
    full: bool,
    results: Mutex<Vec<ProbeResult>>,
}

impl Owner for Proxy {
    fn transfers(&self) -> Transfers {
        self.transfers.clone()
    }

    fn access(&self, _: IpAddr) -> Option<String> {
        self.access.clone()
    }

    fn is_connected(&self, _: IpAddr) -> bool {
        self.connected
    }

    fn is_full(&self, _: &str) -> bool {
        self.full
    }

    fn wants(&self, _: &str, _: Direction) -> bool {
        self.wants
    }

    async fn probed(&self, result: ProbeResult) {
        lock(&self.results).push(result);
    }
}

fn serving() -> Proxy {
    Proxy {
        transfers: Transfers {
            serve: true,
            probe_bytes: 1 << 40,
            day_bytes: 1 << 42,
            ..Transfers::default()
        },
        access: Some("nr".to_owned()),
        connected: true,
        wants: true,
        full: false,
        results: Mutex::default(),
    }
}

/// Serves at the loopback.
async fn start(owner: Proxy) -> (Origin, Arc<Proxy>, Arc<Server>) {
    let local = IpAddr::from([127, 0, 0, 1]);
    let listener = TcpListener::bind((local, 0)).await.unwrap();
    let to = listener.local_addr().unwrap();
    let (owner, server) = (Arc::new(owner), Arc::new(Server::new(PATIENCE)));
    let (o, s) = (Arc::clone(&owner), Arc::clone(&server));
    tokio::spawn(async move {
        loop {
            let (mut stream, from) = listener.accept().await.unwrap();
            let (o, s) = (Arc::clone(&o), Arc::clone(&s));
            tokio::spawn(async move {
                let mut message = [0; LEN];
                if stream.read_exact(&mut message).await.is_err() {
                    return;
                }
                let from = from.ip();
                let asked = Asked {
                    stream,
                    from,
                    message,
                };
                match s.take(asked, &*o) {
                    Some(Work::Transfer(transfer)) => drop(transfer.run(&*o).await),
                    Some(Work::Refusal(refusal)) => refusal.tell().await,
                    None => {}
                }
            });
        }
    });
    let origin = Origin {
        address: local,
        interface: "lo".to_owned(),
        to,
    };
    (origin, owner, server)
}

fn order(direction: Direction) -> ProbeOrder {
    ProbeOrder {
        access: "nr".to_owned(),
        direction,
        flows: 3,
        duration_ms: 400,
        max_bytes: u64::MAX,
    }
}

/// Waits until no transfer is under way, and less than one takes to be given up.
async fn nothing_waits(server: &Server) {
    let limit = Instant::now() + 2 * PATIENCE;
    while !lock(&server.waiting).is_empty() {
        assert!(Instant::now() < limit, "a transfer goes on");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn ask(origin: &Origin, direction: Direction) -> Outcome {
    probe(origin, &order(direction), PATIENCE).await
}

#[tokio::test]
async fn both_ends_learn_what_a_downlink_carries() {
    let (origin, owner, server) = start(serving()).await;
    let down = ask(&origin, Direction::Down).await;
    let results = lock(&owner.results).clone();
    assert_eq!(results.len(), 1);
    assert_eq!(
        (results[0].access.as_str(), results[0].rate),
        ("nr", down.rate.ok())
    );
    assert!(down.bytes > 0 && results[0].rate.is_some());
    let up = ask(&origin, Direction::Up).await;
    assert!(up.rate.is_ok() && up.bytes > 0, "{up:?}");
    assert_eq!(lock(&owner.results).len(), 1, "uplinks are the device's");
    // Too soon for another, and nothing waits any more.
    let again = ask(&origin, Direction::Down).await;
    assert_eq!(again.rate, Err(Refusal::Soon.why().to_owned()));
    nothing_waits(&server).await;
}

#[tokio::test]
async fn only_those_who_may_are_served() {
    let refused = |owner| async {
        let (origin, ..) = start(owner).await;
        ask(&origin, Direction::Down).await.rate.unwrap_err()
    };
    let mut off = serving();
    off.transfers.serve = false;
    assert_eq!(refused(off).await, Refusal::Off.why());
    let mut stranger = serving();
    stranger.access = None;
    assert_eq!(refused(stranger).await, Refusal::Stranger.why());
    let mut without = serving();
    without.connected = false;
    assert_eq!(refused(without).await, Refusal::Unconnected.why());
    let mut unwanted = serving();
    unwanted.wants = false;
    assert_eq!(refused(unwanted).await, Refusal::Unwanted.why());
    let mut full = serving();
    full.full = true;
    assert_eq!(refused(full).await, Refusal::Full.why());
}

#[tokio::test]
async fn a_device_that_goes_or_tells_nonsense_takes_no_place() {
    let mut owner = serving();
    owner.transfers.at_once = 1;
    let (origin, _, server) = start(owner).await;
    // It asks, and brings no flows.
    let mut asks = TcpStream::connect(origin.to).await.unwrap();
    let asked = Bounds {
        flows: 1,
        duration_ms: 400,
        max_bytes: 1_000_000,
    };
    let request = Message::Request(Direction::Up, asked).emit();
    asks.write_all(&request).await.unwrap();
    asks.read_exact(&mut [0; LEN]).await.unwrap();
    let busy = ask(&origin, Direction::Down).await;
    assert_eq!(busy.rate, Err(Refusal::Busy.why().to_owned()));
    // Nor do flows of a transfer that there is not, and garbage.
    for bytes in [Message::Flow(1).emit(), [FIRST; LEN]] {
        let mut other = TcpStream::connect(origin.to).await.unwrap();
        other.write_all(&bytes).await.unwrap();
        let ended = other.read(&mut [0]).await;
        assert!(matches!(ended, Ok(0) | Err(_)));
    }
    nothing_waits(&server).await;
    assert!(ask(&origin, Direction::Down).await.rate.is_ok());
}

#[tokio::test]
async fn a_device_that_sends_for_ever_is_cut_off() {
    let mut owner = serving();
    owner.transfers.probe_bytes = 1_000_000;
    let (origin, _, server) = start(owner).await;
    let mut asks = TcpStream::connect(origin.to).await.unwrap();
    let asked = Bounds {
        flows: 1,
        duration_ms: 60_000,
        max_bytes: u64::MAX,
    };
    let request = Message::Request(Direction::Up, asked).emit();
    asks.write_all(&request).await.unwrap();
    let mut b = [0; LEN];
    asks.read_exact(&mut b).await.unwrap();
    let Some(Message::Grant(token, granted)) = Message::parse(&b) else {
        panic!("{b:?}");
    };
    assert_eq!((granted.max_bytes, granted.duration_ms), (1_000_000, 1_000));
    let mut flow = TcpStream::connect(origin.to).await.unwrap();
    flow.write_all(&Message::Flow(token).emit()).await.unwrap();
    let begun = Instant::now();
    while flow.write_all(&[0; 65_536]).await.is_ok() {}
    assert!(begun.elapsed() < Duration::from_secs(5));
    nothing_waits(&server).await;
}

#[tokio::test]
async fn connections_of_mptcp_are_no_flows() {
    let local = ([127, 0, 0, 1], 0).into();
    let (Ok(listener), Ok(socket)) = (
        socket::listen(local, true, None),
        socket::stream(&local, true),
    ) else {
        println!("skipped: this kernel has no MPTCP");
        return;
    };
    listener.set_nonblocking(true).unwrap();
    socket.set_nonblocking(true).unwrap();
    let at = listener.local_addr().unwrap();
    let listener = TcpListener::from_std(listener).unwrap();
    let connect = TcpSocket::from_std_stream(socket.into()).connect(at);
    let (connected, accepted) = tokio::join!(connect, listener.accept());
    let (stream, from) = accepted.unwrap();
    let _open = connected.unwrap();
    let (owner, server) = (serving(), Arc::new(Server::new(PATIENCE)));
    let bounds = Bounds {
        flows: 1,
        duration_ms: 400,
        max_bytes: 1_000_000,
    };
    let asks = |stream, from: std::net::SocketAddr| Asked {
        stream,
        from: from.ip(),
        message: Message::Request(Direction::Down, bounds).emit(),
    };
    assert!(server.take(asks(stream, from), &owner).is_none());
    let (connected, accepted) = tokio::join!(TcpStream::connect(at), listener.accept());
    let (stream, from) = accepted.unwrap();
    let _open = connected.unwrap();
    let work = server.take(asks(stream, from), &owner);
    assert!(matches!(work, Some(Work::Transfer(_))));
}

#[tokio::test]
async fn a_refusal_that_nobody_reads_is_left() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (connected, accepted) = tokio::join!(TcpStream::connect(at), listener.accept());
    let _open = connected.unwrap();
    let refusal = Told {
        control: accepted.unwrap().0,
        message: Message::Refusal(Refusal::Stranger),
        patience: PATIENCE,
    };
    let begun = Instant::now();
    refusal.tell().await;
    assert!(begun.elapsed() >= PATIENCE && begun.elapsed() < 4 * PATIENCE);
}
