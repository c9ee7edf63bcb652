//! Short queues in front of subflows: `bpf/queues.bpf.c`.

use libbpf_rs::Object;

use super::group::{Attached, open};
use super::pins::cookie;
use super::{Aligned, constant, lacking, prepared, refused};
use crate::cgroup;
use crate::error::{Error, Result};

/// Bounds what waits on each MPTCP subflow of the calling thread's network namespace and
/// has not been sent: to what it sends in 20 ms, and so much more as its round trip is
/// shorter than the connection's longest. Sockets that begin while the result lives keep
/// a bound of their own afterwards; earlier ones never get one.
///
/// # Errors
/// [`crate::Error::Lacking`] where the kernel or the process lacks something, else what
/// the kernel said.
pub fn bound_queues() -> Result<Attached> {
    let group = open(&cgroup::top()?, ATTEMPTED)?;
    Attached::to(&group, load()?, ATTEMPTED)
}

/// Whether [`bound_queues`] can work here: its program is loaded, and taken away again.
///
/// # Errors
/// As [`bound_queues`].
pub fn can_bound_queues() -> Result<()> {
    cgroup::top()?;
    load().map(drop)
}

const ATTEMPTED: &str = "keep the queues of subflows short";

fn load() -> Result<Object> {
    let mut object = prepared(object!("queues"), ATTEMPTED)?;
    constant(&mut object, ".rodata", &cookie()?.to_ne_bytes(), ATTEMPTED)?;
    object.load().map_err(|e| match refused(ATTEMPTED, &e) {
        // Kernels differ in what they say of a function that they do not have.
        Error::Answer { what, .. } => lacking::lacking(
            &format!("this kernel does not let eBPF bound what waits on a subflow ({what})"),
            "install the kernel of a distribution, 6.4 or later",
        ),
        other => other,
    })
}
