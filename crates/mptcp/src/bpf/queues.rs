//! Short queues in front of subflows: `bpf/queues.bpf.c`, `bpf/unbound.bpf.c`.

use std::io;

use libbpf_rs::{Iter, Object};

use super::group::{Attached, open, program};
use super::{Aligned, constant, lacking, prepared, refused};
use crate::cgroup;
use crate::error::{Error, Result};
use crate::support::namespace_cookie;

/// While it lives, the queues of subflows of one network namespace are short. Dropped in
/// that namespace, it gives subflows back what Multipath TCP gives them: no bound; dropped
/// elsewhere, or where the process is killed, they keep the last one.
#[derive(Debug)]
pub struct ShortQueues {
    attached: Option<Attached>,
    cookie: u64,
}

/// Bounds what waits on each MPTCP subflow of the calling thread's network namespace and
/// has not been sent: to what it sends in 20 ms, and so much more as its round trip is
/// shorter than the connection's longest. Sockets that began earlier never get a bound.
///
/// # Errors
/// [`crate::Error::Lacking`] where the kernel or the process lacks something, else what
/// the kernel said.
pub fn bound_queues() -> Result<ShortQueues> {
    let cookie = namespace_cookie()?;
    Ok(ShortQueues {
        attached: Some(attach(cookie)?),
        cookie,
    })
}

/// Whether [`bound_queues`] can work here: its program is attached for no namespace, and
/// taken away again.
///
/// # Errors
/// As [`bound_queues`].
pub fn can_bound_queues() -> Result<()> {
    const NO_NAMESPACE: u64 = 0;
    attach(NO_NAMESPACE).map(drop)
}

const ATTEMPTED: &str = "keep the queues of subflows short";

fn attach(cookie: u64) -> Result<Attached> {
    let group = open(&cgroup::top()?, ATTEMPTED)?;
    let mut object = prepared(object!("queues"), ATTEMPTED)?;
    constant(&mut object, ".rodata", &cookie.to_ne_bytes(), ATTEMPTED)?;
    Attached::to(&group, loaded(object)?, ATTEMPTED)
}

fn loaded(object: libbpf_rs::OpenObject) -> Result<Object> {
    object.load().map_err(|e| match refused(ATTEMPTED, &e) {
        // Old ones differ in what they say of a function that they do not have.
        Error::Bpf { what, .. } if !lacking::is_recent() => lacking::lacking(
            &format!("this kernel does not let eBPF bound what waits on a subflow ({what})"),
            "install the kernel of a distribution, 6.4 or later",
        ),
        other => other,
    })
}

/// Takes the bounds of this namespace's subflows away.
fn unbound() -> Result<()> {
    let object = loaded(prepared(object!("unbound"), ATTEMPTED)?)?;
    let failed = |e| refused(ATTEMPTED, &e);
    let link = program(&object, ATTEMPTED)?.attach().map_err(failed)?;
    let mut sockets = Iter::new(&link).map_err(failed)?;
    // Nothing is written: reading is what runs it.
    io::copy(&mut sockets, &mut io::sink()).map_err(|e| Error::io(ATTEMPTED, e))?;
    Ok(())
}

impl Drop for ShortQueues {
    fn drop(&mut self) {
        self.attached = None;
        if namespace_cookie().is_ok_and(|here| here == self.cookie)
            && let Err(e) = unbound()
        {
            tracing::warn!("subflows keep the bounds of their queues: {e}");
        }
    }
}
