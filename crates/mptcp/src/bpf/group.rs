//! Settings for the programs of one cgroup: MPTCP in place of TCP, and the congestion
//! control of their MPTCP connections.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use libbpf_rs::{ErrorKind, Link, MapCore, MapFlags, Object, ProgramMut};

use super::{
    Algorithm, Aligned, CongestionControl, NAME_MAX, constant, lacking, prepared, refused, require,
};
use crate::error::{Error, Result};

/// Attached to a cgroup until this is dropped. Sockets keep what they have got.
#[derive(Debug)]
pub struct Attached {
    _object: Object,
    _link: Link,
}

impl Attached {
    /// The one program of `object`, for the moments of the sockets of `group`.
    pub(super) fn to(group: &File, object: Object, attempted: &str) -> Result<Self> {
        let link = program(&object, attempted)?
            .attach_cgroup(group.as_raw_fd())
            .map_err(|e| match e.kind() {
                // What may be loaded may be attached, but for what stands in its way.
                ErrorKind::PermissionDenied => Error::bpf(
                    attempted,
                    "another program is attached to this cgroup, or to one that holds it, and \
                     lets no others be: bpftool cgroup tree shows it",
                ),
                _ => refused(attempted, &e),
            })?;
        Ok(Self {
            _object: object,
            _link: link,
        })
    }
}

/// Gives the programs of the cgroup at `path`, and of those below it, an MPTCP
/// socket wherever they ask for a TCP socket. They must run in network namespaces
/// with `net.mptcp.enabled`: elsewhere they get no socket at all.
///
/// # Errors
/// [`Error::Lacking`] where the kernel does not permit it; it came with Linux 6.6.
pub fn use_mptcp(path: &Path) -> Result<Attached> {
    let attempted = format!("give the programs of {} MPTCP", path.display());
    let group = open(path, &attempted)?;
    let object = load_protocol(&attempted, Some(&group))?;
    let link = program(&object, &attempted)?
        .attach()
        .map_err(|e| protocol_refused(&e))?;
    Ok(Attached {
        _object: object,
        _link: link,
    })
}

/// Whether [`use_mptcp`] can work here: its program is loaded and attached for
/// no cgroup, and taken away again.
///
/// # Errors
/// As [`use_mptcp`].
pub fn can_use_mptcp() -> Result<()> {
    let attempted = "try MPTCP for a cgroup";
    let object = load_protocol(attempted, None)?;
    let link = program(&object, attempted)?.attach();
    link.map(drop).map_err(|e| protocol_refused(&e))
}

/// Gives the MPTCP connections of the cgroup at `path`, and of those below it,
/// the congestion control `name`, on all their subflows; those that exist already
/// keep theirs. Who registered `name` must keep it registered.
///
/// # Errors
/// [`Error::Lacking`] where the kernel or the process lacks something, else what
/// the kernel said.
pub fn use_congestion_control(path: &Path, name: &str) -> Result<Attached> {
    let attempted = format!("give the cgroup {} {name}", path.display());
    let group = open(path, &attempted)?;
    let object = load_congestion(name, &attempted)?;
    Attached::to(&group, object, &attempted)
}

/// Whether [`use_congestion_control`] can work here: its program is loaded, and
/// taken away again.
///
/// # Errors
/// As [`use_congestion_control`].
pub fn can_use_congestion_control() -> Result<()> {
    load_congestion("reno", "try a congestion control for a cgroup").map(drop)
}

/// Whether [`super::register`] can work here: the kernel checks two congestion
/// controls of Braid's, and none is registered.
///
/// # Errors
/// As [`super::register`].
pub fn can_register() -> Result<()> {
    let attempted = "try a congestion control as an eBPF program";
    require()?;
    for algorithm in [
        Algorithm::CongestionControl(CongestionControl::Lia),
        Algorithm::Wrr,
    ] {
        let object = prepared(algorithm.object(), attempted)?;
        object.load().map_err(|e| refused(attempted, &e))?;
    }
    Ok(())
}

pub(super) fn open(path: &Path, attempted: &str) -> Result<File> {
    File::open(path).map_err(|e| Error::io(attempted, e))
}

fn load_protocol(attempted: &str, group: Option<&File>) -> Result<Object> {
    let object = prepared(object!("protocol"), attempted)?
        .load()
        .map_err(|e| protocol_refused(&e))?;
    if let Some(group) = group {
        let fd = group.as_raw_fd().to_ne_bytes();
        let map = object.maps().find(|m| m.name() == "group");
        map.ok_or_else(|| Error::bpf(attempted, "the object has no map of cgroups"))?
            .update(&0u32.to_ne_bytes(), &fd, MapFlags::ANY)
            .map_err(|e| refused(attempted, &e))?;
    }
    Ok(object)
}

fn load_congestion(name: &str, attempted: &str) -> Result<Object> {
    if name.is_empty() || name.len() > NAME_MAX {
        return Err(Error::bpf(
            attempted,
            format!("a name has 1 to {NAME_MAX} bytes"),
        ));
    }
    let mut object = prepared(object!("congestion"), attempted)?;
    let mut value = [0; NAME_MAX + 1];
    value[..name.len()].copy_from_slice(name.as_bytes());
    constant(&mut object, ".rodata", &value, attempted)?;
    object.load().map_err(|e| refused(attempted, &e))
}

/// The one program of `object`.
pub(super) fn program<'a>(object: &'a Object, attempted: &str) -> Result<ProgramMut<'a>> {
    let first = object.progs_mut().next();
    first.ok_or_else(|| Error::bpf(attempted, "the object has no program"))
}

/// Programs that change what a kernel function returns take more than other
/// ones, and kernels differ in what they say when they do not take them.
fn protocol_refused(e: &libbpf_rs::Error) -> Error {
    lacking::lacking(
        &format!("this kernel does not let eBPF choose the protocol of a socket ({e:#})"),
        "install the kernel of a distribution, 6.6 or later, or start programs by: \
         braid run --by preload -- ...",
    )
}
