//! Builds the library of `src/preload/shim.rs` for the target of this crate.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

const SOURCE: &str = "src/preload/shim.rs";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name: &str| env::var(name).unwrap_or_else(|e| panic!("{name}: {e}"));
    let out = PathBuf::from(variable("OUT_DIR")).join("libbraid_mptcp.so");
    let mut rustc = Command::new(variable("RUSTC"));
    rustc
        .args([
            "--edition=2024",
            "--crate-type=cdylib",
            "--crate-name=braid_mptcp_shim",
        ])
        .args(["-Cpanic=abort", "-Copt-level=s", "-Cstrip=symbols"])
        // dlsym stands in libdl before glibc 2.34.
        .args(["-Clink-arg=-ldl", "-Clink-arg=-lc", "--target"])
        .arg(variable("TARGET"))
        .arg("-o")
        .arg(&out)
        .arg(SOURCE);
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg(format!("-Clinker={linker}"));
    }
    let status = rustc
        .status()
        .unwrap_or_else(|e| panic!("run {rustc:?}: {e}"));
    assert!(status.success(), "{rustc:?} failed: {status}");
    assert!(
        fs::metadata(&out).is_ok_and(|m| m.len() > 0),
        "{} is empty",
        out.display()
    );
}
