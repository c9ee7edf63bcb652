//! IP packets in the tunnel.
#![no_main]

use braid_forward::tunnel::read_packet;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    read_packet(data);
});
