//! Cryptography without secrets, so that every run of a seed is the same to the byte: the
//! tag names the keys that a packet was sealed with, and those of others do not open it.
//! The handshake takes one round trip, as in TLS 1.3.

use std::any::Any;

use bytes::BytesMut;
use noq_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, HeaderKey, HmacKey,
    KeyPair, Keys, PacketKey, ServerConfig, Session, UnsupportedVersion,
};
use noq_proto::transport_parameters::TransportParameters;
use noq_proto::{ConnectError, ConnectionId, PathId, Side, TransportError};

/// As long as that of AES-GCM.
const TAG: usize = 16;

/// The keys of a number: initial, handshake, application, and its updates.
struct Plain(u64);

impl PacketKey for Plain {
    fn encrypt(&self, _path: PathId, _packet: u64, buf: &mut [u8], _header_len: usize) {
        let at = buf.len() - TAG;
        buf[at..at + 8].copy_from_slice(&self.0.to_be_bytes());
    }

    fn decrypt(
        &self,
        _path: PathId,
        _packet: u64,
        _header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let len = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        if payload[len..len + 8] != self.0.to_be_bytes() {
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

fn pair(number: u64) -> KeyPair<Box<dyn PacketKey>> {
    KeyPair {
        local: Box::new(Plain(number)),
        remote: Box::new(Plain(number)),
    }
}

fn keys(number: u64) -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(Plain(number)),
            remote: Box::new(Plain(number)),
        },
        packet: pair(number),
    }
}

/// What is said in CRYPTO frames.
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
    keys: u64,
    said: u8,
    done: bool,
}

impl Talk {
    fn new(side: Side, own: &TransportParameters) -> Self {
        Self {
            side,
            own: *own,
            peer: None,
            heard: Vec::new(),
            hello: false,
            keys: 0,
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
        keys(0)
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
                    self.hello = true;
                    self.heard.remove(0);
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
            (Side::Server, 0) if self.peer.is_some() => out.push(SERVER_HELLO),
            (Side::Server, 1) => self.say(SERVER_PARAMETERS, out),
            _ => return None,
        }
        self.said += 1;
        if self.side == Side::Client && step == 0 {
            return None;
        }
        self.keys += 1;
        Some(keys(self.keys))
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.keys += 1;
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
pub(super) struct Null;

impl ClientConfig for Null {
    fn start_session(
        &self,
        _version: u32,
        _name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(Talk::new(Side::Client, params)))
    }
}

impl ServerConfig for Null {
    fn initial_keys(&self, _: u32, _: ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys(0))
    }

    fn retry_tag(&self, _version: u32, _cid: ConnectionId, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(&self, _version: u32, params: &TransportParameters) -> Box<dyn Session> {
        Box::new(Talk::new(Side::Server, params))
    }
}

impl HmacKey for Null {
    fn sign(&self, data: &[u8], out: &mut [u8]) {
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
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
