//! Congestion controls as eBPF programs (`struct_ops`), for kernels
//! as distributions ship them: RFC 6356 and the drafts that `bpf/*.bpf.c` name.
//!
//! A registered congestion control serves the whole machine: every network
//! namespace, and unprivileged sockets too. It is chosen as any other is, by
//! `TCP_CONGESTION` on an MPTCP socket or `net.ipv4.tcp_congestion_control`.

macro_rules! object {
    ($name:literal) => {{
        static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(
            env!("OUT_DIR"),
            "/",
            $name,
            ".bpf.o"
        )));
        &OBJECT.0
    }};
}

mod group;
mod lacking;
mod log;
mod namespace_default;
mod orphans;
mod pinned;
mod pins;
mod queues;
mod wrr;

use std::io;

use libbpf_rs::{ErrorKind, Link, MapCore, MapHandle, MapType, Object, ObjectBuilder, OpenObject};

use crate::error::{Error, Result};
use crate::support::Support;

pub use group::{
    Attached, can_register, can_use_congestion_control, can_use_mptcp, use_congestion_control,
    use_mptcp,
};
pub use lacking::require;
pub use namespace_default::NamespaceDefault;
pub use orphans::{Orphan, orphans};
pub use pins::Pins;
pub use queues::{ShortQueues, bound_queues, can_bound_queues};
pub use wrr::{NOTE_MAX, Wrr, notes};

/// Names of congestion controls are no longer than this (`TCP_CA_NAME_MAX`
/// less its end), of letters, digits, `_` and `.`.
pub const NAME_MAX: usize = 15;

/// Aligned as libbpf wants ELF objects.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

/// Congestion control that Braid brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionControl {
    /// RFC 6356.
    Lia,
    /// draft-khalili-mptcp-congestion-control-05.
    Olia,
    /// draft-walid-mptcp-congestion-control-04.
    Balia,
    /// draft-xu-mptcp-congestion-control-05.
    Wvegas,
    /// CUBIC for links whose rate swings ([`braid_core::cc::Swing`]), each subflow alone.
    Swing,
}

/// One object of `bpf/` each.
#[derive(Clone, Copy, Debug)]
enum Algorithm {
    CongestionControl(CongestionControl),
    Wrr,
}

impl Algorithm {
    fn object(self) -> &'static [u8] {
        match self {
            Self::CongestionControl(CongestionControl::Lia) => object!("lia"),
            Self::CongestionControl(CongestionControl::Olia) => object!("olia"),
            Self::CongestionControl(CongestionControl::Balia) => object!("balia"),
            Self::CongestionControl(CongestionControl::Wvegas) => object!("wvegas"),
            Self::CongestionControl(CongestionControl::Swing) => object!("swing"),
            Self::Wrr => object!("wrr"),
        }
    }
}

impl CongestionControl {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Lia,
        Self::Olia,
        Self::Balia,
        Self::Wvegas,
        Self::Swing,
    ];

    /// By its name in scenarios.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name() == name)
    }

    /// By its name, unless the running kernel has one of that name itself.
    pub fn beside_kernels(name: &str) -> Option<Self> {
        let known = Support::detect().require_congestion_control(name);
        Self::named(name).filter(|_| known.is_err())
    }

    /// Its name in scenarios.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lia => "lia",
            Self::Olia => "olia",
            Self::Balia => "balia",
            Self::Wvegas => "wvegas",
            Self::Swing => "swing",
        }
    }
}

/// A congestion control of the running kernel, until this is dropped. Sockets
/// that use it then keep it until they are closed.
#[derive(Debug)]
pub struct Registered {
    name: String,
    link: Link,
}

impl Registered {
    /// Returns the name that the kernel knows it by.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Registers `algorithm` under `name`, at most [`NAME_MAX`] bytes.
///
/// # Errors
/// [`Error::Lacking`] where the kernel or the process lacks something;
/// otherwise what the kernel said, as where the name is taken.
pub fn register(algorithm: CongestionControl, name: &str) -> Result<Registered> {
    register_skipping(algorithm, name, Skip::NONE)
}

/// [`register`] with hooks skipped as some kernels do, for tests.
///
/// # Errors
/// As [`register`].
#[doc(hidden)]
pub fn register_skipping(
    algorithm: CongestionControl,
    name: &str,
    skip: Skip,
) -> Result<Registered> {
    let constants = [skip.constant()];
    load(Algorithm::CongestionControl(algorithm), name, &constants)
        .map(|(_, registered)| registered)
}

/// One hook in so many is skipped, at random, and its result is any number; 0: none.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Skip(pub u32);

impl Skip {
    const NONE: Self = Self(0);

    fn constant(self) -> Constant {
        (".rodata.fault", self.0.to_ne_bytes().to_vec())
    }
}

/// Constant of a program, set before it is loaded: a section and its content.
type Constant = (&'static str, Vec<u8>);

/// Returns the constant that names the congestion control which plain TCP is given instead.
/// No name of the kernel's is longer than `NAME_MAX`.
fn plain(name: &str) -> Constant {
    let mut name: Vec<u8> = name.bytes().take(NAME_MAX).collect();
    name.resize(NAME_MAX + 1, 0);
    (".rodata.plain", name)
}

fn load(algorithm: Algorithm, name: &str, constants: &[Constant]) -> Result<(Object, Registered)> {
    let attempted = format!("register congestion control {name}");
    require()?;
    let mut object = prepared(algorithm.object(), &attempted)?;
    for (section, content) in constants {
        constant(&mut object, section, content, &attempted)?;
    }
    for mut map in object.maps_mut() {
        if map.map_type() == MapType::StructOps {
            let value = map.initial_value_mut().unwrap_or_default();
            rename(value, name).ok_or_else(|| Error::Bpf {
                attempted: attempted.clone(),
                what: format!("a name has 1 to {NAME_MAX} letters, digits, _ and ."),
            })?;
        }
    }
    let failed = |e| refused(&attempted, &e);
    let mut object = object.load().map_err(failed)?;
    let mut ops = object
        .maps_mut()
        .find(|m| m.map_type() == MapType::StructOps)
        .ok_or_else(|| Error::bpf(&attempted, "the object has no struct_ops"))?;
    let link = ops.attach_struct_ops().map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => {
            Error::io(&attempted, io::Error::from_raw_os_error(libc::EEXIST))
        }
        _ => failed(e),
    })?;
    let registered = Registered {
        name: name.to_owned(),
        link,
    };
    Ok((object, registered))
}

/// A map of what was registered under `name`.
fn map_of(object: &Object, wanted: &str, name: &str) -> Result<MapHandle> {
    let found = object.maps().find(|m| m.name() == wanted);
    let found = found.ok_or_else(|| {
        Error::bpf(
            format!("register {name}"),
            format!("it lacks the map {wanted}"),
        )
    })?;
    MapHandle::try_from(&found)
        .map_err(|e| Error::bpf(format!("open the map {wanted} of {name}"), e))
}

fn prepared(object: &[u8], attempted: &str) -> Result<OpenObject> {
    lacking::require_programs()?;
    log::capture();
    ObjectBuilder::default()
        .open_memory(object)
        .map_err(|e| refused(attempted, &e))
}

/// Tells `object` a constant before it is loaded: the content of the section that ends in
/// `section`.
fn constant(object: &mut OpenObject, section: &str, content: &[u8], attempted: &str) -> Result<()> {
    let mut maps = object.maps_mut();
    let mut found = maps.find(|m| m.name().to_str().is_some_and(|n| n.ends_with(section)));
    let value = found.as_mut().and_then(|m| m.initial_value_mut());
    let field = value.and_then(|v| v.get_mut(..content.len()));
    let field = field
        .ok_or_else(|| Error::bpf(attempted, format!("the object has no room in {section}")))?;
    field.copy_from_slice(content);
    Ok(())
}

/// Why libbpf refused.
fn refused(attempted: &str, e: &libbpf_rs::Error) -> Error {
    match e.kind() {
        // As in a user namespace, whose root has every right but this.
        ErrorKind::PermissionDenied if !log::verifier_spoke() => lacking::no_right(),
        _ => Error::bpf(attempted, log::with_last_words(e)),
    }
}

/// Puts `name` where the object has its own, in its `name` member: the only
/// bytes of it that say `braid_`.
fn rename(value: &mut [u8], name: &str) -> Option<()> {
    let at = value.windows(6).position(|w| w == b"braid_")?;
    let field = value.get_mut(at..at + NAME_MAX + 1)?;
    let letter = |b: &u8| b.is_ascii_alphanumeric() || b"_.".contains(b);
    if name.is_empty() || name.len() > NAME_MAX || !name.as_bytes().iter().all(letter) {
        return None;
    }
    field.fill(0);
    field[..name.len()].copy_from_slice(name.as_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_replaces_all_of_the_other() {
        let mut value = *b"\x01\0\0\0braid_wvegas\0\0\0\0\x07";
        assert!(rename(&mut value, "lia_1").is_some());
        assert_eq!(&value, b"\x01\0\0\0lia_1\0\0\0\0\0\0\0\0\0\0\0\x07");
        let mut value = *b"braid_wvegas\0\0\0\0";
        for bad in ["sixteen_bytes_of", "", "lia-1", "l\u{ef}a"] {
            assert!(rename(&mut value, bad).is_none(), "{bad}");
        }
        assert!(rename(&mut [0; 32], "lia").is_none());
    }

    #[test]
    fn names_lead_to_algorithms() {
        for c in CongestionControl::ALL {
            assert_eq!(CongestionControl::named(c.name()), Some(c));
        }
        assert_eq!(CongestionControl::named("reno"), None);
    }

    #[test]
    fn a_refused_program_is_no_answer_that_cannot_be_read() {
        let refused = libbpf_rs::Error::from_raw_os_error(libc::E2BIG);
        let e = super::refused("register lia_1", &refused).to_string();
        assert!(
            e.starts_with("register lia_1: Argument list too long"),
            "{e}"
        );
    }
}
