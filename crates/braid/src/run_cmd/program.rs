//! Kind of program that a file is, as far as a preloaded library is concerned.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::elf::{FileHeader32, FileHeader64};
use object::read::elf::{ElfFile, FileHeader, ProgramHeader};
use object::{Endianness, FileKind, Object, ObjectSection, ReadCache};

/// Interpreters of interpreters: the kernel follows no more.
const SCRIPTS: u8 = 4;

/// A program, by how it would be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Program {
    /// By the library, as far as can be seen.
    Ordinary,
    /// Not at all: no dynamic linker is used.
    Static,
    /// By Go's own setting; the version of Go that built it, where it tells.
    Go(Option<String>),
    /// Not at all: the dynamic linker ignores preloaded libraries in it.
    Privileged,
    /// Not at all: its dynamic linker takes libraries of another C library only.
    OtherLibc,
    /// Not at all: it is built for another kind of processor.
    OtherProcessor,
}

impl Program {
    /// Returns what the user has to know, and the way out.
    pub(super) fn warning(&self, cc: bool) -> Option<String> {
        let way_out = "\n  the way out, for root where \"braid doctor\" finds MPTCP by cgroup: \
                       braid run --by bpf -- ...";
        let stays = |why: &str| Some(format!("{why}: its connections stay plain TCP{way_out}"));
        match self {
            Self::Ordinary => None,
            Self::Static => stays("is linked statically and cannot be preloaded"),
            Self::Privileged => stays("gets more rights than its caller and cannot be preloaded"),
            Self::OtherLibc => stays("uses another C library than glibc and is not preloaded"),
            Self::OtherProcessor => stays("is built for another kind of processor than braid"),
            Self::Go(Some(version)) if !has_mptcp(version) => stays(&format!(
                "was built by {version}, which knows no MPTCP as Go 1.21 and later do"
            )),
            Self::Go(_) if cc => Some(format!(
                "is a Go program: it uses MPTCP, but not the congestion control{way_out}"
            )),
            Self::Go(_) => None,
        }
    }
}

/// Whether this version of Go knows `GODEBUG=multipathtcp=1`.
fn has_mptcp(version: &str) -> bool {
    let numbers = version.strip_prefix("go").unwrap_or(version);
    let mut parts = numbers.split(|c: char| !c.is_ascii_digit());
    let mut number = || parts.next().and_then(|p| p.parse::<u32>().ok());
    match (number(), number()) {
        (Some(major), Some(minor)) => (major, minor) >= (1, 21),
        // One that tells no number is built from Go's newest source.
        _ => true,
    }
}

/// Looks at the program `path`; one that cannot be read counts as ordinary.
pub(super) fn look(path: &Path) -> Program {
    let mut path = path.to_owned();
    for _ in 0..SCRIPTS {
        match fs::metadata(&path) {
            Ok(m) if m.mode() & 0o6000 != 0 && !is_ours(&m) => return Program::Privileged,
            _ => {}
        }
        match interpreter_of_script(&path) {
            Some(next) => path = next,
            None => break,
        }
    }
    File::open(&path).map_or(Program::Ordinary, |file| {
        let cache = ReadCache::new(file);
        let kind = FileKind::parse(&cache);
        let found = match kind {
            Ok(FileKind::Elf64) => of_elf::<FileHeader64<Endianness>>(&cache),
            Ok(FileKind::Elf32) => of_elf::<FileHeader32<Endianness>>(&cache),
            _ => None,
        };
        found.unwrap_or(Program::Ordinary)
    })
}

/// Set-user-id and set-group-id to what we are anyway give no further rights.
fn is_ours(m: &fs::Metadata) -> bool {
    (m.mode() & 0o4000 == 0 || m.uid() == nix::unistd::getuid().as_raw())
        && (m.mode() & 0o2000 == 0 || m.gid() == nix::unistd::getgid().as_raw())
}

/// Returns the interpreter of the script `path`; that of `#!/usr/bin/env NAME` is NAME.
fn interpreter_of_script(path: &Path) -> Option<PathBuf> {
    let mut start = Vec::new();
    File::open(path)
        .ok()?
        .take(256)
        .read_to_end(&mut start)
        .ok()?;
    let line = start.strip_prefix(b"#!")?.split(|b| *b == b'\n').next()?;
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_whitespace();
    let first = Path::new(words.next()?);
    if first.file_name()? != "env" {
        return Some(first.to_owned());
    }
    let name = words.find(|w| !w.starts_with('-') && !w.contains('='))?;
    which::which(name).ok()
}

fn of_elf<H: FileHeader<Endian = Endianness>>(cache: &ReadCache<File>) -> Option<Program> {
    let elf = ElfFile::<H, _>::parse(cache).ok()?;
    let endian = elf.endian();
    if let Some(section) = elf.section_by_name(".go.buildinfo") {
        let data = section.data().unwrap_or_default();
        return Some(Program::Go(go_version(data)));
    }
    if own_machine::<H>() != Some(elf.elf_header().e_machine(endian)) {
        return Some(Program::OtherProcessor);
    }
    let linker = elf
        .elf_program_headers()
        .iter()
        .find_map(|p| p.interpreter(endian, cache).ok().flatten());
    let linker = match linker {
        Some(linker) => String::from_utf8_lossy(linker).into_owned(),
        None => return Some(Program::Static),
    };
    let ours = !linker.contains("musl") || cfg!(target_env = "musl");
    Some(if ours {
        Program::Ordinary
    } else {
        Program::OtherLibc
    })
}

/// The processor that we are built for, if that is of the class (32 or 64 bits).
fn own_machine<H: FileHeader<Endian = Endianness>>() -> Option<object::elf::Machine> {
    let cache = ReadCache::new(File::open("/proc/self/exe").ok()?);
    let elf = ElfFile::<H, _>::parse(&cache).ok()?;
    Some(elf.elf_header().e_machine(elf.endian()))
}

/// The version in `.go.buildinfo`, which stands there in the clear since Go 1.18:
/// 14 bytes of magic, a byte of pointer size, flags, 16 bytes of no use to us,
/// then the length (a varint; versions are short) and the text.
fn go_version(info: &[u8]) -> Option<String> {
    const IN_THE_CLEAR: u8 = 2;
    if !info.starts_with(b"\xff Go buildinf:") || info.get(15)? & IN_THE_CLEAR == 0 {
        return None;
    }
    let length = usize::from(*info.get(32)?);
    let text = info.get(33..33usize.checked_add(length)?)?;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::PermissionsExt;

    fn written(bytes: &[u8]) -> tempfile::TempPath {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, bytes).unwrap();
        let mode = fs::Permissions::from_mode(0o755);
        file.as_file().set_permissions(mode).unwrap();
        file.into_temp_path()
    }

    /// Our own program, with something of it changed.
    fn changed(change: impl FnOnce(&mut Vec<u8>)) -> Program {
        let mut bytes = fs::read("/proc/self/exe").unwrap();
        change(&mut bytes);
        look(&written(&bytes))
    }

    #[test]
    fn programs_are_told_apart() {
        assert_eq!(changed(|_| ()), Program::Ordinary);
        // e_machine: that of an IBM S/390 is nobody's who builds this.
        assert_eq!(changed(|b| b[18..20].fill(0x16)), Program::OtherProcessor);
        let linker = b"/ld-linux";
        let at = |b: &[u8]| b.windows(linker.len()).position(|w| w == linker);
        let musl = changed(|b| {
            let at = at(b).expect("we are linked dynamically");
            b[at..at + linker.len()].copy_from_slice(b"/ld-musl-");
        });
        assert_eq!(musl, Program::OtherLibc);
        assert_eq!(look(Path::new("/nonexistent")), Program::Ordinary);
        assert_eq!(look(&written(b"")), Program::Ordinary);
    }

    #[test]
    fn a_program_without_linker_is_static() {
        // Its program headers, of 56 bytes, begin after a header of 64; the
        // interpreter's is of type 3.
        let program = changed(|b| {
            let headers = usize::from(u16::from_le_bytes([b[56], b[57]]));
            for h in b[64..].chunks_mut(56).take(headers) {
                if h[..4] == [3, 0, 0, 0] {
                    h[..4].fill(0);
                }
            }
        });
        assert_eq!(program, Program::Static);
        assert!(program.warning(false).unwrap().contains("--by bpf"));
    }

    #[test]
    fn scripts_are_what_runs_them() {
        let exe = std::env::current_exe().unwrap();
        let script = written(format!("#!{} -x\nexit\n", exe.display()).as_bytes());
        assert_eq!(interpreter_of_script(&script), Some(exe));
        assert_eq!(look(&script), Program::Ordinary);
        let env = written(b"#! /usr/bin/env -S sh -e\n");
        assert_eq!(interpreter_of_script(&env), which::which("sh").ok());
        // One that runs itself comes to an end.
        let path = written(b"");
        fs::write(&path, format!("#!{}\n", path.display())).unwrap();
        assert_eq!(look(&path), Program::Ordinary);
    }

    #[test]
    fn go_tells_its_version() {
        let mut info = b"\xff Go buildinf:\x08\x02".to_vec();
        info.resize(32, 0);
        info.extend(b"\x08go1.20.3\x00");
        assert_eq!(go_version(&info).as_deref(), Some("go1.20.3"));
        info[15] = 0;
        assert_eq!(go_version(&info), None);
        for (version, has) in [
            ("go1.20.3", false),
            ("go1.21", true),
            ("go1.22rc1", true),
            ("go2.0", true),
            ("devel +abc", true),
        ] {
            assert_eq!(has_mptcp(version), has, "{version}");
        }
        let old = Program::Go(Some("go1.20.3".into()));
        assert!(old.warning(false).unwrap().contains("go1.20.3"));
        assert_eq!(Program::Go(None).warning(false), None);
        assert!(Program::Go(None).warning(true).is_some());
    }

    proptest! {
        #[test]
        fn garbage_does_not_panic(tail in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = go_version(&tail);
            for start in [&b"\x7fELF\x02\x01\x01"[..], b"\x7fELF\x01\x01\x01", b"#!"] {
                let _ = look(&written(&[start, &tail].concat()));
            }
        }
    }
}
