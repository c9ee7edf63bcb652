//! Cryptography without secrets, so that every run of a seed is the same to the byte: the
//! tag names the keys that a packet was sealed with, and those of others do not open it.
//! The handshake takes one round trip, as in TLS 1.3.

use std::any::Any;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::BytesMut;
use noq_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey,
    KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, PathId, Side, TransportError};

/// As long as that of AES-GCM.
const TAG: usize = 16;

/// The keys of a session and of a number in it: initial, handshake, application, and its
/// updates. Those of another session open nothing, such as one that a late copy of a
/// first packet began.
#[derive(Clone, Copy, Default, PartialEq)]
struct Plain {
    session: u32,
    number: u32,
}

impl Plain {
    /// A packet number that was guessed wrong from its last bytes opens nothing either.
    fn tag(self, path: PathId, packet: u64) -> [u8; TAG] {
        let keys = (u64::from(self.session) << 32) | u64::from(self.number);
        let mut tag = [0; TAG];
        tag[..8].copy_from_slice(&keys.to_be_bytes());
        tag[8..].copy_from_slice(&packet.to_be_bytes());
        let path: Vec<u8> = path.to_string().into_bytes();
        for (t, p) in tag.iter_mut().zip(path) {
            *t ^= p;
        }
        tag
    }
}

impl PacketKey for Plain {
    fn encrypt(&self, path: PathId, packet: u64, buf: &mut [u8], _header_len: usize) {
        let at = buf.len() - TAG;
        buf[at..].copy_from_slice(&self.tag(path, packet));
    }

    fn decrypt(
        &self,
        path: PathId,
        packet: u64,
        _header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let len = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        if payload[len..] != self.tag(path, packet) {
            return Err(CryptoError);
        }
        payload.truncate(len);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}

impl HeaderKey for Plain {
    fn decrypt(&self, _at: usize, _packet: &mut [u8]) {}
    fn encrypt(&self, _at: usize, _packet: &mut [u8]) {}
    fn sample_size(&self) -> usize {
        TAG
    }
}

fn pair(plain: Plain) -> KeyPair<Box<dyn PacketKey>> {
    KeyPair {
        local: Box::new(plain),
        remote: Box::new(plain),
    }
}

fn keys(plain: Plain) -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(plain),
            remote: Box::new(plain),
        },
        packet: pair(plain),
    }
}

/// Kinds of messages in CRYPTO frames.
const CLIENT_PARAMETERS: u8 = 1;
const SERVER_HELLO: u8 = 2;
const SERVER_PARAMETERS: u8 = 3;
const FINISHED: u8 = 4;

struct Talk {
    side: Side,
    own: TransportParameters,
    peer: Option<TransportParameters>,
    heard: Vec<u8>,
    hello: bool,
    keys: Plain,
    said: u8,
    done: bool,
}

impl Talk {
    fn new(side: Side, own: &TransportParameters, session: u32) -> Self {
        Self {
            side,
            own: *own,
            peer: None,
            heard: Vec::new(),
            hello: false,
            keys: Plain { session, number: 0 },
            said: 0,
            done: false,
        }
    }

    fn say(&self, kind: u8, out: &mut Vec<u8>) {
        let mut params = Vec::new();
        self.own.write(&mut params);
        out.push(kind);
        out.extend((params.len() as u16).to_be_bytes());
        out.extend(params);
    }
}

impl Session for Talk {
    fn initial_keys(&self, _dst_cid: ConnectionId, _side: Side) -> Keys {
        keys(Plain::default())
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(()))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        Some(false)
    }

    fn is_handshaking(&self) -> bool {
        !self.done
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.heard.extend_from_slice(buf);
        let mut fresh = false;
        while let Some(kind) = self.heard.first().copied() {
            match kind {
                SERVER_HELLO => {
                    let Some(session) = self.heard.get(1..5) else {
                        break;
                    };
                    let session = [session[0], session[1], session[2], session[3]];
                    self.keys.session = u32::from_be_bytes(session);
                    self.hello = true;
                    self.heard.drain(..5);
                }
                FINISHED => {
                    self.done = true;
                    self.heard.remove(0);
                }
                _ => {
                    let Some(len) = self.heard.get(1..3) else {
                        break;
                    };
                    let end = 3 + usize::from(u16::from_be_bytes([len[0], len[1]]));
                    let Some(params) = self.heard.get(3..end) else {
                        break;
                    };
                    let read = TransportParameters::read(self.side, &mut &params[..]);
                    self.peer = Some(read.map_err(TransportError::from)?);
                    self.heard.drain(..end);
                    fresh = true;
                }
            }
        }
        Ok(fresh)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        let step = self.said;
        match (self.side, step) {
            (Side::Client, 0) => self.say(CLIENT_PARAMETERS, out),
            (Side::Client, 1) if self.hello => {}
            (Side::Client, 2) if self.peer.is_some() => {
                out.push(FINISHED);
                self.done = true;
            }
            (Side::Server, 0) if self.peer.is_some() => {
                out.push(SERVER_HELLO);
                out.extend(self.keys.session.to_be_bytes());
            }
            (Side::Server, 1) => self.say(SERVER_PARAMETERS, out),
            _ => return None,
        }
        self.said += 1;
        if self.side == Side::Client && step == 0 {
            return None;
        }
        self.keys.number += 1;
        Some(keys(self.keys))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.keys.number += 1;
        Some(pair(self.keys))
    }

    fn is_valid_retry(&self, _cid: ConnectionId, _header: &[u8], _payload: &[u8]) -> bool {
        true
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        output.fill(0);
        Ok(())
    }
}

/// The configuration of both sides.
#[derive(Default)]
pub(crate) struct Null {
    sessions: AtomicU32,
    key: u64,
}

impl Null {
    /// Reset tokens are those of a key.
    pub(super) fn with_key(key: u64) -> Self {
        Self {
            key,
            ..Self::default()
        }
    }
}

impl ClientConfig for Null {
    fn start_session(
        &self,
        _version: u32,
        _name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(Talk::new(Side::Client, params, 0)))
    }
}

impl ServerConfig for Null {
    fn initial_keys(&self, _: u32, _: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys(Plain::default()))
    }

    fn retry_tag(&self, _version: u32, _cid: ConnectionId, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(&self, _version: u32, params: &TransportParameters) -> Box<dyn Session> {
        let session = 1 + self.sessions.fetch_add(1, Ordering::Relaxed);
        Box::new(Talk::new(Side::Server, params, session))
    }
}

impl HmacKey for Null {
    fn sign(&self, data: &[u8], out: &mut [u8]) {
        let mut hash = 0xcbf2_9ce4_8422_2325u64 ^ self.key;
        for byte in data {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        for (out, hash) in out.iter_mut().zip(hash.to_be_bytes().into_iter().cycle()) {
            *out = hash;
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, _data: &[u8], _signature: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }
}

impl HandshakeTokenKey for Null {
    fn seal(&self, _nonce: u128, _data: &mut Vec<u8>) -> Result<(), CryptoError> {
        Ok(())
    }

    fn open<'a>(&self, _nonce: u128, data: &'a mut [u8]) -> Result<&'a [u8], CryptoError> {
        Ok(data)
    }
}
