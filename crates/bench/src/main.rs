//! Benchmarks of Braid against its bars; run by `make bench`.
fn main() {}
