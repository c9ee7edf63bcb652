//! Tests of what the kernel does with MPTCP, over real namespaces. One file a theme;
//! files never run beside each other ([`braid_netns::world::Turn`]).

#[cfg(feature = "bpf")]
mod bpf;
mod buffers;
#[cfg(feature = "bpf")]
mod cgroup;
mod connections;
mod headers;
mod path_manager;
#[cfg(feature = "bpf")]
mod plain_tcp;
mod preload;
#[cfg(feature = "bpf")]
mod queues;
mod route_events;
#[cfg(feature = "bpf")]
mod skipped_hooks;
#[cfg(feature = "bpf")]
mod wrr;
mod wrr_rate;
