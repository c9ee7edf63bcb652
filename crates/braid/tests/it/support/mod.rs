//! Helpers that tests of runs share.

pub(crate) mod bulk;
pub(crate) mod daemon;
pub(crate) mod end;
pub(crate) mod lab;
pub(crate) mod lan;
#[cfg(feature = "bpf")]
pub(crate) mod pins;
pub(crate) mod quic;
pub(crate) mod request;
pub(crate) mod traffic;

use std::path::{Path, PathBuf};

use braid_lab::summary::Summary;
use braid_netns::world::Turn;

/// Folder of a test that starts the program, and its file's turn.
pub(crate) struct Folder {
    folder: tempfile::TempDir,
    _turn: Turn,
}

/// Waits for the file's turn and makes a folder, which is removed when dropped.
pub(crate) fn folder() -> Folder {
    let turn = Turn::take();
    Folder {
        folder: tempfile::tempdir().unwrap(),
        _turn: turn,
    }
}

impl Folder {
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Summary that a run left in `out`.
pub(crate) fn summary(out: &Path) -> Summary {
    let json = std::fs::read(out.join("summary.json")).unwrap();
    serde_json::from_slice(&json).unwrap()
}

/// The kernel and the guest's root, or `None` with the reason on the output.
pub(crate) fn parts() -> Option<[(&'static str, PathBuf); 2]> {
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.build");
    let part = |variable: &'static str, built: &str| {
        let path = std::env::var_os(variable).map_or_else(|| build.join(built), PathBuf::from);
        (variable, path)
    };
    let parts = [
        part("BRAID_KERNEL", "kernel/linux"),
        part("BRAID_GUEST", "guest"),
    ];
    if parts[0].1.is_file() && parts[1].1.join("braid").is_file() {
        return Some(parts);
    }
    println!("skipped: there is no virtual-clock kernel; make kernel guest builds it");
    None
}
