//! Socket of netfilter's netlink: messages out, and their replies.

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_netfilter::NetfilterMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};
use nix::sys::socket::{setsockopt, sockopt::SndBufForce};
use socket2::SockRef;

/// Bytes for replies: an error repeats the message that it is about.
const REPLIES: usize = 64 << 10;

/// Bytes that the kernel takes at a time as long as nobody asks for more, and somewhat fewer: it
/// counts its own, too (net.core.wmem_default).
const PLAIN: usize = 100 << 10;

/// Socket in the network namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct NetfilterSocket {
    socket: Socket,
    sequence: u32,
}

/// Messages that are sent together.
#[derive(Debug, Default)]
pub(crate) struct Datagram(Vec<u8>);

/// Reply of the kernel.
pub(crate) enum Reply {
    /// Outcome of the message with this number.
    Done(u32, io::Result<()>),
    /// Answer to a question.
    Message(NetfilterMessage),
}

impl NetfilterSocket {
    /// Opens it in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The socket's.
    pub(crate) fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_NETFILTER)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        // Replies are there once a message is sent.
        socket.set_non_blocking(true)?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Returns the number that the next message will have.
    pub(crate) fn next(&self) -> u32 {
        self.sequence
    }

    /// Adds a message to those that are sent together.
    pub(crate) fn add(&mut self, datagram: &mut Datagram, message: NetfilterMessage, flags: u16) {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let at = datagram.0.len();
        datagram.0.resize(at + message.buffer_len(), 0);
        message.serialize(&mut datagram.0[at..]);
    }

    /// Sends messages.
    ///
    /// # Errors
    /// The socket's.
    pub(crate) fn send(&mut self, datagram: &Datagram) -> io::Result<()> {
        let length = datagram.0.len();
        if length > PLAIN {
            // The kernel doubles it for what it adds. Where it refuses, sending tells.
            let _ = SockRef::from(&self.socket).set_send_buffer_size(length);
            let _ = setsockopt(&self.socket, SndBufForce, &length);
        }
        self.socket.send(&datagram.0, 0).map(drop)
    }

    /// Sends one message, and waits for its outcome.
    ///
    /// # Errors
    /// The socket's, and what the kernel refuses.
    pub(crate) fn request(&mut self, message: NetfilterMessage) -> io::Result<()> {
        let mut datagram = Datagram::default();
        let asked = self.sequence;
        self.add(&mut datagram, message, NLM_F_ACK);
        self.send(&datagram)?;
        loop {
            for reply in self.replies()? {
                if let Reply::Done(number, outcome) = reply
                    && number == asked
                {
                    return outcome;
                }
            }
        }
    }

    /// Asks for all things of a kind, and returns the answers.
    ///
    /// # Errors
    /// The socket's, and what the kernel refuses.
    pub(crate) fn dump(&mut self, message: NetfilterMessage) -> io::Result<Vec<NetfilterMessage>> {
        let mut datagram = Datagram::default();
        let asked = self.sequence;
        self.add(&mut datagram, message, NLM_F_DUMP);
        self.send(&datagram)?;
        let mut all = Vec::new();
        loop {
            for reply in self.replies()? {
                match reply {
                    Reply::Message(message) => all.push(message),
                    Reply::Done(number, outcome) if number == asked => {
                        return outcome.map(|()| all);
                    }
                    Reply::Done(..) => {}
                }
            }
        }
    }

    /// Reads the replies of one datagram.
    ///
    /// # Errors
    /// The socket's; [`io::ErrorKind::WouldBlock`] where none is there.
    pub(crate) fn replies(&mut self) -> io::Result<Vec<Reply>> {
        let mut buf = Vec::with_capacity(REPLIES);
        self.socket.recv(&mut buf, 0)?;
        let mut rest = &buf[..];
        let mut all = vec![];
        while !rest.is_empty() {
            let reply =
                NetlinkMessage::<NetfilterMessage>::deserialize(rest).map_err(io::Error::other)?;
            // Messages begin at multiples of four.
            let length = (reply.header.length as usize).next_multiple_of(4);
            rest = rest.get(length.max(16)..).unwrap_or_default();
            let number = reply.header.sequence_number;
            all.push(match reply.payload {
                NetlinkPayload::Error(e) => {
                    let outcome = match e.code {
                        None => Ok(()),
                        Some(_) => Err(e.to_io()),
                    };
                    Reply::Done(number, outcome)
                }
                NetlinkPayload::Done(_) => Reply::Done(number, Ok(())),
                NetlinkPayload::InnerMessage(message) => Reply::Message(message),
                _ => continue,
            });
        }
        Ok(all)
    }
}
