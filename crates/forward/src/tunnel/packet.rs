//! Addresses of IP packets on their way through the tunnel.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Source and destination of a packet; `None` for what is no IP packet.
pub(super) fn ends(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    match packet.first()? >> 4 {
        4 => {
            let at = |i: usize| {
                let octets: [u8; 4] = packet.get(i..i + 4)?.try_into().ok()?;
                Some(IpAddr::from(Ipv4Addr::from(octets)))
            };
            Some((at(12)?, at(16)?))
        }
        6 => {
            let at = |i: usize| {
                let octets: [u8; 16] = packet.get(i..i + 16)?.try_into().ok()?;
                Some(IpAddr::from(Ipv6Addr::from(octets)))
            };
            Some((at(8)?, at(24)?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_ends_of_both_families_are_read() {
        let mut v4 = [0; 20];
        v4[0] = 0x45;
        v4[12..16].copy_from_slice(&[10, 1, 2, 3]);
        v4[16..20].copy_from_slice(&[9, 9, 9, 9]);
        let ends4 = ([10, 1, 2, 3].into(), [9, 9, 9, 9].into());
        assert_eq!(ends(&v4), Some(ends4));
        assert_eq!(ends(&v4[..19]), None);
        let mut v6 = [0; 40];
        v6[0] = 0x60;
        v6[23] = 1;
        v6[39] = 2;
        assert_eq!(
            ends(&v6),
            Some(("::1".parse().unwrap(), "::2".parse().unwrap()))
        );
        assert_eq!(ends(&v6[..39]), None);
    }

    proptest! {
        #[test]
        fn anything_is_read(packet in prop::collection::vec(any::<u8>(), 0..80)) {
            let is_long = match packet.first().map(|b| b >> 4) {
                Some(4) => packet.len() >= 20,
                Some(6) => packet.len() >= 40,
                _ => false,
            };
            prop_assert_eq!(ends(&packet).is_some(), is_long);
        }
    }
}
