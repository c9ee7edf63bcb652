//! 128-EEA2: AES-128 in counter mode as LTE uses it (TS 33.401 B.1.3).
//!
//! Ciphering hides packets and does not protect them: the user plane of LTE has no integrity, so
//! whoever can change bits on the way changes bits of packets. Over networks that are not
//! trusted, use WireGuard or IPsec under or over the bearer.

use std::fmt;

use aes::Aes128;
use ctr::Ctr128BE;
use ctr::cipher::{KeyIvInit, StreamCipher};

/// Way of a packet; part of the counter block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the UE to the node: 0.
    Uplink,
    /// From the node to the UE: 1.
    Downlink,
}

/// A key with the bearer and direction that it is used for.
#[derive(Clone, PartialEq, Eq)]
pub struct Eea2 {
    key: [u8; 16],
    bearer: u8,
    direction: Direction,
}

impl fmt::Debug for Eea2 {
    // Keys stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Eea2")
            .field("bearer", &self.bearer)
            .field("direction", &self.direction)
            .finish_non_exhaustive()
    }
}

impl Eea2 {
    /// Ciphers a bearer by `key`. `bearer` is BEARER, the radio bearer identity less one
    /// (TS 36.323 5.6); only its low 5 bits count.
    pub fn new(key: [u8; 16], bearer: u8, direction: Direction) -> Self {
        Eea2 {
            key,
            bearer: bearer & 0x1f,
            direction,
        }
    }

    /// Ciphers or deciphers `data` of the packet with this COUNT, in place.
    pub fn apply(&self, count: u32, data: &mut [u8]) {
        let mut block = [0; 16];
        block[..4].copy_from_slice(&count.to_be_bytes());
        let direction = u8::from(self.direction == Direction::Downlink);
        block[4] = (self.bearer << 3) | (direction << 2);
        Ctr128BE::<Aes128>::new(&self.key.into(), &block.into()).apply_keystream(data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2)
            .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
            .collect()
    }

    fn check(
        (key, count, bearer, direction): (&str, u32, u8, Direction),
        bits: usize,
        plain: &str,
        ciphered: &str,
    ) {
        let mut data = bytes(plain);
        let key = bytes(key).try_into().unwrap();
        Eea2::new(key, bearer, direction).apply(count, &mut data);
        // A test set ends within a byte; bits behind are zero in the standard.
        for bit in bits..data.len() * 8 {
            data[bit / 8] &= !(0x80 >> (bit % 8));
        }
        assert_eq!(data, bytes(ciphered));
    }

    /// TS 33.401 C.1, test sets 1 to 4.
    #[test]
    fn test_sets_of_the_standard_hold() {
        use Direction::{Downlink, Uplink};
        check(
            (
                "d3c5d592327fb11c4035c6680af8c6d1",
                0x398a_59b4,
                0x15,
                Downlink,
            ),
            253,
            "981ba6824c1bfb1ab485472029b71d808ce33e2cc3c0b5fc1f3de8a6dc66b1f0",
            "e9fed8a63d155304d71df20bf3e82214b20ed7dad2f233dc3c22d7bdeeed8e78",
        );
        check(
            (
                "2bd6459f82c440e0952c49104805ff48",
                0xc675_a64b,
                0x0c,
                Downlink,
            ),
            798,
            "7ec61272743bf1614726446a6c38ced166f6ca76eb5430044286346cef130f92\
             922b03450d3a9975e5bd2ea0eb55ad8e1b199e3ec4316020e9a1b285e7627953\
             59b7bdfd39bef4b2484583d5afe082aee638bf5fd5a606193901a08f4ab41aab\
             9b134880",
            "5961605353c64bdca15b195e288553a910632506d6200aa790c4c806c99904cf\
             2445cc50bb1cf168a49673734e081b57e324ce5259c0e78d4cd97b870976503c\
             0943f2cb5ae8f052c7b7d392239587b8956086bcab18836042e2e6ce42432a17\
             105c53d0",
        );
        check(
            (
                "0a8b6bd8d9b08b08d64e32d1817777fb",
                0x544d_49cd,
                0x04,
                Uplink,
            ),
            310,
            "fd40a41d370a1f65745095687d47ba1d36d2349e23f644392c8ea9c49d40c132\
             71aff264d0f24800",
            "75750d37b4bba2a4dedb34235bd68c6645acdaaca48138a3b0c471e2a7041a57\
             6423d2927287f000",
        );
        check(
            (
                "aa1f95aea533bcb32eb63bf52d8f831a",
                0x72d8_c671,
                0x10,
                Downlink,
            ),
            1022,
            "fb1b96c5c8badfb2e8e8edfde78e57f2ad81e74103fc430a534dcc37afcec70e\
             1517bb06f27219dae49022ddc47a068de4c9496a951a6b09edbdc864c7adbd74\
             0ac50c022f3082bafd22d78197c5d508b977bca13f32e652e74ba728576077ce\
             628c535e87dc6077ba07d29068590c8cb5f1088e082cfa0ec961302d69cf3d44",
            "dfb440acb3773549efc04628aeb8d8156275230bdc690d94b00d8d95f28c4b56\
             307f60f4ca55eba661ebba72ac808fa8c49e26788ed04a5d606cb418de74878b\
             9a22f8ef29590bc4eb57c9faf7c41524a885b8979c423f2f8f8e0592a9879201\
             be7ff9777a162ab810feb324ba74c4c156e04d39097209653ac33e5a5f2d8864",
        );
    }

    #[test]
    fn keys_stay_out_of_debug_output() {
        let text = format!("{:?}", Eea2::new([0xee; 16], 1, Direction::Uplink));
        assert!(!text.contains("238") && !text.contains("ee"), "{text}");
    }
}
