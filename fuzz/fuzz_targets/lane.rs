//! Datagrams of the datagram lane.
#![no_main]

use braid_mpquic::lane::read_datagram;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    read_datagram(data);
});
