//! Pinned congestion control, which outlives the process that registered it: its `struct_ops`
//! and link are pinned, and the next process gets hold of them here.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, MapInfo, MapType};

use super::pins::make_directory;
use super::{NAME_MAX, Registered};
use crate::error::{Error, Result};
use crate::support;

/// Name of the pin that is made last: without it, all others are nothing.
const LINK: &str = "link";

/// Pins `maps` by their names, and then the link.
pub(super) fn pin(
    directory: &Path,
    maps: &mut [(&str, &mut MapHandle)],
    registered: &mut Registered,
) -> Result<()> {
    make_directory(directory)?;
    let failed = |what: &str, e| {
        let path = directory.join(what);
        Error::left(format!("pin {what} to {}", path.display()), e)
    };
    for (name, map) in maps {
        map.pin(directory.join(*name))
            .map_err(|e| failed(name, e))?;
    }
    let link = &mut registered.link;
    link.pin(directory.join(LINK)).map_err(|e| failed(LINK, e))
}

/// The congestion control that is pinned there: its `struct_ops`, which is called `ops`, and
/// its link. Its name begins with that and `_`.
pub(super) fn registered(
    directory: &Path,
    attempted: &str,
    ops: &str,
) -> Result<(MapHandle, Registered)> {
    let wrong = |what: &str| Error::left(attempted, what);
    let map = pinned_map(&directory.join(ops))?;
    if map.map_type() != MapType::StructOps || map.name() != OsStr::new(ops) {
        let what = format!("the map {ops} is no congestion control of Braid's");
        return Err(wrong(&what));
    }
    let link = Link::open(directory.join(LINK))
        .map_err(|e| wrong(&format!("its link cannot be opened: {e}")))?;
    let info = match kind_of(&link).as_deref() {
        Some("anon_inode:bpf_link" | "anon_inode:bpf-link") => link.info().ok(),
        _ => None,
    };
    let attached = info.and_then(|i| match i.info {
        LinkTypeInfo::StructOps(s) => Some(s.map_id),
        _ => None,
    });
    let id = MapInfo::new(map.as_fd()).map(|i| i.info.id).ok();
    if attached.is_none() || attached != id {
        return Err(wrong("its link is not that of a congestion control of it"));
    }
    let name = name(&look(&map)?, ops)
        .ok_or_else(|| wrong("its congestion control has no name of ours"))?;
    support::Support::detect().require_congestion_control(&name)?;
    Ok((map, Registered { name, link }))
}

pub(super) fn pinned_map(path: &Path) -> Result<MapHandle> {
    let attempted = || format!("use {}", path.display());
    let map = MapHandle::from_pinned_path(path).map_err(|e| Error::left(attempted(), e))?;
    match kind_of(&map).as_deref() {
        Some("anon_inode:bpf-map") => Ok(map),
        other => {
            let what = format!("it is no map but {}", other.unwrap_or("unknown"));
            Err(Error::left(attempted(), what))
        }
    }
}

/// Returns the kernel's name for the kind of an object: libbpf takes any for what it was asked for.
fn kind_of<T: AsFd>(object: &T) -> Option<String> {
    let fd = object.as_fd().as_raw_fd();
    let kind = std::fs::read_link(format!("/proc/self/fd/{fd}")).ok()?;
    Some(kind.to_str()?.to_owned())
}

/// The one value of an array or of a `struct_ops`.
pub(super) fn look(map: &MapHandle) -> Result<Vec<u8>> {
    let attempted = || format!("read the map {}", map.name().to_string_lossy());
    map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
        .map_err(|e| Error::left(attempted(), e))?
        .ok_or_else(|| Error::left(attempted(), "it is empty"))
}

/// The name of a congestion control of ours in what the kernel tells of it.
fn name(value: &[u8], ops: &str) -> Option<String> {
    let prefix = format!("{ops}_");
    let at = value
        .windows(prefix.len())
        .position(|w| w == prefix.as_bytes())?;
    let field = value.get(at..at + NAME_MAX + 1)?;
    let length = field.iter().position(|&b| b == 0)?;
    let letter = |b: &u8| b.is_ascii_alphanumeric() || b"_.".contains(b);
    let name = &field[..length];
    let fine = name.iter().all(letter) && field[length..].iter().all(|&b| b == 0);
    fine.then(|| String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_ours_or_none() {
        let with = |name: &[u8]| [&[0, 7, 3][..], name, &[0; 16], &[9; 40]].concat();
        let name = |value: &[u8]| name(value, "wrr");
        assert_eq!(name(&with(b"wrr_3f_0")).as_deref(), Some("wrr_3f_0"));
        for bad in [&b"cubic"[..], b"wrr_3f 0", b"wrr_\xff", b"wrr_12345678901"] {
            let mut value = with(bad);
            // Something follows the name at once.
            value.iter_mut().filter(|b| **b == 0).for_each(|b| *b = 1);
            assert_eq!(name(&value), None, "{bad:?}");
        }
        assert_eq!(name(b"wrr_"), None);
        assert_eq!(name(&with(b"olia_1_0")), None);
    }
}
