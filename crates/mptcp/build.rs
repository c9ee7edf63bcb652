//! Builds the library of `src/preload/shim.rs` for the target of this crate, and
//! the eBPF programs of `bpf/`.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

const SOURCE: &str = "src/preload/shim.rs";

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    shim();
    #[cfg(feature = "bpf")]
    bpf();
}

fn shim() {
    println!("cargo::rerun-if-changed={SOURCE}");
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

/// One object of each `bpf/*.bpf.c`; they include what Braid's kernel has too.
#[cfg(feature = "bpf")]
fn bpf() {
    println!("cargo::rerun-if-changed=bpf");
    println!("cargo::rerun-if-changed=../../kernel/mptcp");
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let arch = match &*variable("CARGO_CFG_TARGET_ARCH") {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        "riscv64" => "riscv",
        "powerpc64" => "powerpc",
        "s390x" => "s390",
        other => panic!("eBPF on {other} is not known to build.rs"),
    };
    for name in [
        "lia",
        "olia",
        "balia",
        "wvegas",
        "swing",
        "wrr",
        "protocol",
        "congestion",
        "queues",
        "unbound",
        "namespaces",
    ] {
        let out = PathBuf::from(variable("OUT_DIR")).join(format!("{name}.bpf.o"));
        let mut command = Command::new(&clang);
        command
            // v3: 32-bit comparisons and jumps, which every kernel with
            // struct_ops has. -g: the BTF by which libbpf fits it to a kernel.
            .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g"])
            .args(["-Wall", "-Wno-unused-function", "-Werror"])
            .arg(format!("-D__TARGET_ARCH_{arch}"))
            .arg(format!("-I{}", variable("DEP_BPF_INCLUDE")))
            .arg("-c")
            .arg(format!("bpf/{name}.bpf.c"))
            .arg("-o")
            .arg(&out);
        let status = command
            .status()
            .unwrap_or_else(|e| panic!("run {clang}: {e}; to install it: apt-get install clang"));
        assert!(status.success(), "{command:?} failed: {status}");
    }
}
