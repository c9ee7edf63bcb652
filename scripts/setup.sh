#!/usr/bin/env bash
# Installs what `make` needs and lacks: `setup.sh build|kernel|lint|test`.
# Without root it names the line that installs it and uses what is there.
# `setup.sh features` says what cargo is to build with what there is.
set -euo pipefail
cd "$(dirname "$0")/.."
stage=${1:-build}
tools=$PWD/.build/tools

say() { printf 'setup: %s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# Debian packages that are missing, by the command that shows their absence.
missing=()
need() { have "$1" || missing+=("$2"); }
# The eBPF programs take clang, libbpf that loads them the others.
need_bpf() {
  need clang clang && need make make && need pkg-config pkg-config
  [ -e /usr/include/libelf.h ] || missing+=(libelf-dev)
  [ -e /usr/include/zlib.h ] || missing+=(zlib1g-dev)
}

if [ "$stage" = features ]; then
  need_bpf
  if [ ${#missing[@]} -gt 0 ]; then
    say "without ${missing[*]} the eBPF congestion controls are left out"
    echo "--no-default-features"
  fi
  exit 0
fi

# A browser only draws the report in a test, and iperf3, curl and tcpdump are
# programs that tests run unchanged over MPTCP.
case $stage in
build)
  need cc gcc && need ld binutils
  need_bpf
  ;;
test)
  have chromium || have chromium-browser || have google-chrome || missing+=(chromium)
  need iperf3 iperf3
  need curl curl
  need tcpdump tcpdump
  need tc iproute2
  need nft nftables
  need setpriv util-linux
  ;;
kernel)
  need flex flex && need bison bison && need bc bc && need make make
  need patch patch && need xz xz-utils
  need gcc gcc && need ld binutils
  ;;
lint) ;;
*) say "unknown stage $stage: expected build, kernel, lint or test"; exit 2 ;;
esac
case $stage in build | kernel) [ -e /usr/include/stdio.h ] || missing+=(libc6-dev) ;; esac

apt=(apt-get install -y --no-install-recommends)
if [ ${#missing[@]} -gt 0 ]; then
  if ! have apt-get; then
    say "please install: ${missing[*]}"
  elif [ "$(id -u)" = 0 ]; then
    say "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    "${apt[@]}" -qq "${missing[@]}" >/dev/null
  elif have sudo && sudo -n true 2>/dev/null; then
    say "installing ${missing[*]}"
    sudo apt-get update -qq
    sudo "${apt[@]}" -qq "${missing[@]}" >/dev/null
  else
    say "without root these stay missing: ${missing[*]}"
    say "to install them: sudo apt-get update && sudo ${apt[*]} ${missing[*]}"
  fi
fi

# `static` has BBR; for root the kernel loads it by itself.
controls=/proc/sys/net/ipv4/tcp_available_congestion_control
if [ "$stage" = build ] && [ "$(id -u)" != 0 ] && ! grep -qsw bbr $controls; then
  sudo -n modprobe tcp_bbr 2>/dev/null ||
    say "without root the congestion control BBR stays missing: sudo modprobe tcp_bbr"
fi

# Prometheus scrapes the daemons in a test. Unpacked, not installed: the package would start a
# service on the user's machine.
if [ "$stage" = test ] && ! have prometheus && [ ! -x "$tools/prometheus/usr/bin/prometheus" ]; then
  fetched=$(mktemp -d)
  if have apt-get && have dpkg-deb && (cd "$fetched" && apt-get download -qq prometheus >/dev/null 2>&1); then
    say "unpacking prometheus for a test (once)"
    mkdir -p "$tools/prometheus"
    dpkg-deb -x "$fetched"/prometheus_*.deb "$tools/prometheus"
  else
    say "without prometheus one test is skipped: apt-get install prometheus"
  fi
  rm -rf "$fetched"
fi

[ "$stage" != kernel ] || exit 0

# Rust: the version that Cargo.toml asks for, from rustup if the distribution's is older.
wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
rust_ok() {
  have cargo && have rustc || return 1
  local has
  has=$(rustc --version | cut -d' ' -f2)
  [ "$(printf '%s\n%s\n' "$wanted" "$has" | sort -V | head -1)" = "$wanted" ]
}
if ! rust_ok; then
  line="curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal -c clippy -c rustfmt"
  say "Rust $wanted or later is missing; installing it for this user with rustup"
  if have rustup; then
    rustup toolchain install stable --profile minimal -c clippy -c rustfmt && rustup default stable
  elif [ "$(id -u)" = 0 ] && have apt-get && apt-cache policy rustup 2>/dev/null | grep -q 'Candidate: [0-9]'; then
    "${apt[@]}" -qq rustup >/dev/null && rustup default stable
  else
    { have curl || { [ "$(id -u)" = 0 ] && "${apt[@]}" -qq curl ca-certificates >/dev/null; }; } || true
    eval "$line" || { say "could not install Rust; do it by hand: $line"; exit 3; }
  fi
fi

# Checkers of `make lint`, kept in the tree's ignored build folder.
installed() { # command, version
  [ -x "$tools/bin/$1" ] && "$tools/bin/$1" --version 2>/dev/null | grep -q "$2"
}
if [ "$stage" = lint ]; then
  cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 ||
    rustup component add rustfmt clippy
  if ! installed cargo-deny 0.20.2; then
    say "building cargo-deny 0.20.2 (once, two minutes)"
    # As released it is linked by one core for many minutes, and it runs for seconds.
    CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=256 CARGO_PROFILE_RELEASE_OPT_LEVEL=0 \
    cargo install --quiet --locked --root "$tools" --target-dir "$PWD/.build/tools-target" --version 0.20.2 cargo-deny
    rm -rf .build/tools-target
  fi
  if ! installed typos 1.52.0; then
    # The same program from PyPI comes built; building it takes minutes.
    say "installing typos 1.52.0 (once)"
    mkdir -p "$tools/bin"
    if python3 -m pip --version >/dev/null 2>&1 &&
      python3 -m pip install --quiet --disable-pip-version-check --no-deps --target "$tools/typos" typos==1.52.0; then
      ln -sf ../typos/bin/typos "$tools/bin/typos"
    else
      cargo install --quiet --locked --root "$tools" --target-dir "$PWD/.build/tools-target" --version 1.52.0 typos-cli
      rm -rf .build/tools-target
    fi
  fi
fi
