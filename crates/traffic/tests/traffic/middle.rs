//! Something between client and server that spoils what passes down.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::failure::monotonic_ns;

/// Length of a hello.
const HELLO: usize = 24;

/// Accepts one connection and hands it to `f`.
pub(crate) fn fake_server(
    f: impl FnOnce(TcpStream) + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let job = thread::spawn(move || f(listener.accept().unwrap().0));
    (address, job)
}

/// Server that greets its client, and then sends nothing.
pub(crate) fn silent_server() -> (SocketAddr, JoinHandle<()>) {
    fake_server(|mut stream| {
        let mut hello = [0; HELLO];
        stream.read_exact(&mut hello).unwrap();
        hello[16..].copy_from_slice(&monotonic_ns().to_le_bytes());
        stream.write_all(&hello).unwrap();
        let mut buf = [0; 1000];
        while matches!(stream.read(&mut buf), Ok(1..)) {}
    })
}

/// Passes a connection on to `to`; `edit` gets the offset and the bytes of
/// everything that the server sends.
pub(crate) fn tcp(
    to: SocketAddr,
    edit: impl FnMut(usize, &mut [u8]) + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    fake_server(move |client| {
        let server = TcpStream::connect(to).unwrap();
        client.set_nodelay(true).unwrap();
        server.set_nodelay(true).unwrap();
        let up = {
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || pass(from, to, |_, _| {}))
        };
        pass(server, client, edit);
        up.join().unwrap();
    })
}

fn pass(mut from: TcpStream, mut to: TcpStream, mut edit: impl FnMut(usize, &mut [u8])) {
    let mut buf = [0; 65536];
    let mut seen = 0;
    loop {
        let n = match from.read(&mut buf) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        edit(seen, &mut buf[..n]);
        seen += n;
        if to.write_all(&buf[..n]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}

/// Passes the datagrams of one client on to `to`, until dropped. Of the server's
/// answers to the client's hello the first `lost_answers` are lost; of the
/// messages that follow, what `edit` makes of each (with its number) is passed
/// down.
pub(crate) fn udp(
    to: SocketAddr,
    lost_answers: u32,
    mut edit: impl FnMut(usize, Vec<u8>) -> Vec<Vec<u8>> + Send + 'static,
) -> (SocketAddr, Middle) {
    let near = UdpSocket::bind("127.0.0.1:0").unwrap();
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = near.local_addr().unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let job = thread::spawn(move || {
        far.connect(to).unwrap();
        near.set_nonblocking(true).unwrap();
        far.set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
        let mut client = None;
        let (mut answers, mut number) = (0, 0);
        let mut buf = [0; 65536];
        while !stopped.load(Ordering::Relaxed) {
            while let Ok((n, from)) = near.recv_from(&mut buf) {
                client = Some(from);
                let _ = far.send(&buf[..n]);
            }
            let (Ok(n), Some(client)) = (far.recv(&mut buf), client) else {
                continue;
            };
            if n == HELLO {
                answers += 1;
                if answers > lost_answers {
                    let _ = near.send_to(&buf[..n], client);
                }
                continue;
            }
            for datagram in edit(number, buf[..n].to_vec()) {
                let _ = near.send_to(&datagram, client);
            }
            number += 1;
        }
    });
    let job = Some(job);
    (address, Middle { stop, job })
}

/// Ends when dropped.
pub(crate) struct Middle {
    stop: Arc<AtomicBool>,
    job: Option<JoinHandle<()>>,
}

impl Drop for Middle {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.job.take().map(JoinHandle::join);
    }
}
