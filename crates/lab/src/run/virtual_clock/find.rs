//! Where the kernel and the user space of a guest are.

use std::path::{Path, PathBuf};

use braid_netns::error::LabError;

/// Where an installation has both.
const INSTALLED: &str = "/usr/local/lib/braid";
/// Commands that build both.
const FIX: &str = "make kernel guest (in Braid's source tree, once), or make install";

/// The two parts of every guest.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    /// The User-Mode Linux program.
    pub(super) kernel: PathBuf,
    /// The guest's root: `braid`, its libraries and empty mount points.
    pub(super) root: PathBuf,
}

impl Parts {
    /// Looks in the environment, then up from the program `exe`, then where
    /// an installation puts them.
    pub(super) fn find(exe: &Path) -> Result<Self, LabError> {
        Ok(Self {
            kernel: find(
                exe,
                "BRAID_KERNEL",
                ".build/kernel/linux",
                "linux",
                Path::is_file,
            )
            .map_err(|tried| lacking("kernel of the virtual clock", "linux", &tried))?,
            root: find(exe, "BRAID_GUEST", ".build/guest", "guest", |p| {
                p.join("braid").is_file()
            })
            .map_err(|tried| lacking("user space of the virtual clock", "guest", &tried))?,
        })
    }
}

fn lacking(what: &str, name: &str, tried: &str) -> LabError {
    LabError::missing(
        format!(
            "run on the virtual clock: the {what} is not built (looked for {tried} and \
             {INSTALLED}/{name})"
        ),
        FIX,
    )
}

fn find(
    exe: &Path,
    variable: &str,
    built: &str,
    installed: &str,
    good: impl Fn(&Path) -> bool,
) -> Result<PathBuf, String> {
    if let Some(given) = std::env::var_os(variable) {
        let given = PathBuf::from(given);
        let absolute = std::path::absolute(&given).ok().filter(|p| good(p));
        return absolute.ok_or_else(|| format!("{variable}={}", given.display()));
    }
    let exe = exe.canonicalize().unwrap_or_else(|_| exe.to_owned());
    exe.ancestors()
        .skip(1)
        .map(|d| d.join(built))
        .chain([Path::new(INSTALLED).join(installed)])
        .find(|p| good(p))
        .ok_or_else(|| format!("{built} above {}", exe.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_found_above_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let exe = base.join("target/release/braid");
        for d in ["target/release", ".build/kernel", ".build/guest"] {
            std::fs::create_dir_all(base.join(d)).unwrap();
        }
        std::fs::write(&exe, "").unwrap();
        let search = || {
            find(
                &exe,
                "BRAID_NO_SUCH_VARIABLE",
                ".build/guest",
                "no-such",
                |p| p.join("braid").is_file(),
            )
        };
        assert!(search().unwrap_err().contains(".build/guest above"));
        std::fs::write(base.join(".build/guest/braid"), "").unwrap();
        assert_eq!(search().unwrap(), base.join(".build/guest"));
        let e = lacking("kernel", "linux", "x");
        assert_eq!(e.exit_code(), 3);
        assert!(e.to_string().contains("make kernel"), "{e}");
    }
}
