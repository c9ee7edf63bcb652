//! Requests to the kernel over netlink, one at a time.
//!
//! Sockets and message formats are rust-netlink's. A socket belongs to the
//! network namespace of the thread that opens it, whichever thread uses it
//! later. The kernel answers while it handles the request, so a request does
//! not wait for anything but the kernel's own locks.

pub(crate) mod attr;
pub(crate) mod genl;

use std::io;

use netlink_packet_core::{
    Emitable, NLM_F_ACK, NLM_F_ACK_TLVS, NLM_F_CAPPED, NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE,
    NLMSG_ERROR, NLMSG_NOOP, NLMSG_OVERRUN, NetlinkBuffer, NetlinkHeader,
};
use netlink_sys::{Socket, SocketAddr};

use crate::error::{Error, Result};
use attr::Attrs;

/// `NLMSGERR_ATTR_MSG` of `linux/netlink.h`: the extended acknowledgement's text.
const NLMSGERR_ATTR_MSG: u16 = 1;
const HEADER_LEN: usize = 16;
/// The kernel fills at most 32 kB per datagram of a dump.
const BUFFER: usize = 64 * 1024;

/// A netlink socket for requests.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: Socket,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Channel {
    /// Opens a socket of a netlink protocol in the calling thread's namespace.
    pub(crate) fn open(protocol: isize, what: &str) -> Result<Self> {
        let open = || -> io::Result<Socket> {
            let mut socket = Socket::new(protocol)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            socket.set_ext_ack(true)?;
            socket.set_cap_ack(true)?;
            Ok(socket)
        };
        let socket =
            open().map_err(|e| Error::io(format!("open a netlink socket for {what}"), e))?;
        Ok(Self {
            socket,
            sequence: 0,
            buffer: Vec::with_capacity(BUFFER),
        })
    }

    /// Sends one request of `kind` with `body` and waits for its acknowledgement;
    /// `each` is given every answer before it.
    pub(crate) fn request(
        &mut self,
        kind: u16,
        body: &[u8],
        attempted: &dyn Fn() -> String,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.send(kind, NLM_F_REQUEST | NLM_F_ACK, body, attempted)?;
        self.receive(attempted, each)
    }

    /// Sends one request for a table; `each` is given every row.
    pub(crate) fn dump(
        &mut self,
        kind: u16,
        body: &[u8],
        attempted: &dyn Fn() -> String,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.send(kind, NLM_F_REQUEST | NLM_F_DUMP, body, attempted)?;
        self.receive(attempted, each)
    }

    /// Sends requests of `kind` in one go, one for each of `bodies`, and waits for the one
    /// answer that each has: `each` is given it, or why there is none.
    pub(crate) fn request_each(
        &mut self,
        kind: u16,
        bodies: &[Vec<u8>],
        attempted: &dyn Fn() -> String,
        each: &mut dyn FnMut(Result<&[u8]>) -> Result<()>,
    ) -> Result<()> {
        let first = self.sequence.wrapping_add(1);
        let all: Vec<u8> = bodies
            .iter()
            .flat_map(|body| self.message(kind, NLM_F_REQUEST, body))
            .collect();
        self.put(&all, attempted)?;
        let mut outcome = Ok(());
        for at in 0..bodies.len() {
            let sequence = first.wrapping_add(at as u32);
            let mut answered = false;
            while !answered {
                self.next(attempted)?;
                let mut take = |answer: Result<&[u8]>| {
                    answered = true;
                    if outcome.is_ok() {
                        outcome = each(answer);
                    }
                };
                match read(&self.buffer, sequence, attempted, &mut |a| take(Ok(a))) {
                    Ok(ended) => answered |= ended,
                    Err(e) => take(Err(e)),
                }
            }
        }
        outcome
    }

    fn send(
        &mut self,
        kind: u16,
        flags: u16,
        body: &[u8],
        attempted: &dyn Fn() -> String,
    ) -> Result<()> {
        let message = self.message(kind, flags, body);
        self.put(&message, attempted)
    }

    /// The next request, as it is sent.
    fn message(&mut self, kind: u16, flags: u16, body: &[u8]) -> Vec<u8> {
        self.sequence = self.sequence.wrapping_add(1);
        let length = HEADER_LEN + body.len();
        let mut header = NetlinkHeader::default();
        header.length = length as u32;
        header.message_type = kind;
        header.flags = flags;
        header.sequence_number = self.sequence;
        let mut message = vec![0; length.next_multiple_of(4)];
        header.emit(&mut message[..HEADER_LEN]);
        message[HEADER_LEN..length].copy_from_slice(body);
        message
    }

    fn put(&self, messages: &[u8], attempted: &dyn Fn() -> String) -> Result<()> {
        match self.socket.send(messages, 0) {
            Ok(n) if n == messages.len() => Ok(()),
            Ok(_) => Err(Error::io(attempted(), io::ErrorKind::WriteZero.into())),
            Err(e) => Err(Error::io(attempted(), e)),
        }
    }

    /// Waits for a datagram of answers.
    fn next(&mut self, attempted: &dyn Fn() -> String) -> Result<()> {
        loop {
            self.buffer.clear();
            match self.socket.recv(&mut self.buffer, 0) {
                Ok(_) => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io(attempted(), e)),
            }
        }
    }

    fn receive(
        &mut self,
        attempted: &dyn Fn() -> String,
        each: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        // An answer that cannot be read does not stop the reading: what is left
        // in the socket would be taken for the next request's answer.
        let mut outcome = Ok(());
        loop {
            self.next(attempted)?;
            let done = read(&self.buffer, self.sequence, attempted, &mut |answer| {
                if outcome.is_ok() {
                    outcome = each(answer);
                }
            })?;
            if done {
                return outcome;
            }
        }
    }
}

/// Reads one datagram of answers to request number `sequence`, and says whether they end
/// with it.
fn read(
    mut rest: &[u8],
    sequence: u32,
    attempted: &dyn Fn() -> String,
    each: &mut dyn FnMut(&[u8]),
) -> Result<bool> {
    while !rest.is_empty() {
        let message =
            NetlinkBuffer::new_checked(rest).map_err(|e| Error::answer(attempted(), e))?;
        let taken = (message.length() as usize).next_multiple_of(4);
        if message.sequence_number() == sequence {
            match message.message_type() {
                NLMSG_NOOP => {}
                NLMSG_OVERRUN => return Err(Error::answer(attempted(), "answers were lost")),
                NLMSG_ERROR | NLMSG_DONE => return refusal(&message, attempted).map(|()| true),
                _ => each(message.payload()),
            }
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    Ok(false)
}

/// The error in an `NLMSG_ERROR` or `NLMSG_DONE`, if it holds one.
fn refusal(message: &NetlinkBuffer<&[u8]>, attempted: &dyn Fn() -> String) -> Result<()> {
    let payload = message.payload();
    let code = match payload.first_chunk::<4>() {
        Some(b) => i32::from_ne_bytes(*b),
        // The kernel may end a dump with an empty message.
        None => 0,
    };
    if code >= 0 {
        return Ok(());
    }
    let attributes = match message.message_type() {
        NLMSG_DONE => payload.get(4..),
        // After the code stands the request's header, then its body unless capped.
        _ if message.flags() & NLM_F_CAPPED != 0 => payload.get(4 + HEADER_LEN..),
        _ => payload.get(4..8).and_then(|l| {
            let length = u32::from_ne_bytes(l.try_into().ok()?) as usize;
            payload.get(4 + length.next_multiple_of(4)..)
        }),
    };
    let told = message.flags() & NLM_F_ACK_TLVS != 0 || message.message_type() == NLMSG_DONE;
    let kernel = attributes
        .filter(|_| told)
        .and_then(|a| Attrs(a).find(NLMSGERR_ATTR_MSG))
        .map(attr::text);
    Err(Error::Netlink {
        attempted: attempted(),
        kernel,
        source: io::Error::from_raw_os_error(-code),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEQUENCE: u32 = 7;

    fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut header = NetlinkHeader::default();
        header.length = (HEADER_LEN + body.len()) as u32;
        header.message_type = kind;
        header.sequence_number = sequence;
        let mut message = vec![0; HEADER_LEN];
        header.emit(&mut message);
        message.extend(body);
        message.resize(message.len().next_multiple_of(4), 0);
        message
    }

    /// Whether that was the end, and the answers before it.
    fn read_all(datagram: &[u8]) -> (Result<bool>, Vec<Vec<u8>>) {
        let mut answers = Vec::new();
        let done = read(datagram, SEQUENCE, &|| "ask".to_owned(), &mut |a| {
            answers.push(a.to_vec());
        });
        (done, answers)
    }

    #[test]
    fn answers_to_others_are_passed_over_and_what_was_cut_off_is_refused() {
        let datagram = [
            message(20, SEQUENCE, b"mine"),
            message(20, SEQUENCE - 1, b"late"),
            message(NLMSG_DONE, SEQUENCE, &0i32.to_ne_bytes()),
        ]
        .concat();
        let (done, answers) = read_all(&datagram);
        assert!(done.unwrap());
        assert_eq!(answers, [b"mine"]);
        for cut in [1, 15, 17, 19] {
            let (done, answers) = read_all(&datagram[..cut]);
            let e = done.unwrap_err().to_string();
            assert!(e.contains("ask") && answers.is_empty(), "{cut}: {e}");
        }
        let refused = message(NLMSG_ERROR, SEQUENCE, &(-libc::EPERM).to_ne_bytes());
        let e = read_all(&refused).0.unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::EPERM));
    }

    proptest! {
        #[test]
        fn garbage_does_not_panic_and_ends(datagram in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_all(&datagram);
        }

        /// Messages of a kernel that went mad: a sound header, and anything in it.
        #[test]
        fn any_message_is_read_or_refused(
            kind in prop_oneof![Just(NLMSG_ERROR), Just(NLMSG_DONE), any::<u16>()],
            flags: u16, length in 0u32..80, body in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let mut message = message(kind, SEQUENCE, &body);
            message[..4].copy_from_slice(&length.to_ne_bytes());
            message[6..8].copy_from_slice(&flags.to_ne_bytes());
            let whole = (HEADER_LEN as u32..=message.len() as u32).contains(&length);
            let (done, _) = read_all(&message);
            prop_assert!(whole || done.is_err());
        }
    }
}
