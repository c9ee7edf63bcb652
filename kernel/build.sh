#!/usr/bin/env bash
# Builds the virtual-clock kernel, .build/kernel/linux, from the Debian package
# linux-source-6.12 or from the Linux source tree in $SOURCE; again only when
# something that goes into it has changed. See kernel/README.md.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
package=linux-source-6.12
out=${KERNEL_BUILD:-$here/../.build/kernel}
source=${SOURCE:-}

say() { printf 'kernel: %s\n' "$*" >&2; }
die() { # status, lines...
  local status=$1
  shift
  for line in "$@"; do say "$line"; done
  exit "$status"
}

# The same bytes from every folder, user, machine and day.
export KBUILD_BUILD_VERSION=1 KBUILD_BUILD_USER=braid KBUILD_BUILD_HOST=braid
export KBUILD_BUILD_TIMESTAMP='Thu Jan  1 00:00:00 UTC 1970' SOURCE_DATE_EPOCH=0
export LC_ALL=C TZ=UTC
unset MAKEFLAGS MFLAGS MAKELEVEL ARCH CROSS_COMPILE KCFLAGS KBUILD_OUTPUT LOCALVERSION
umask 022
cc=${CC:-gcc}
unset CC

for tool in flex bison bc patch xz tar make "$cc" ld flock; do
  command -v "$tool" >/dev/null || die 3 "$tool is missing" \
    "to install what a build needs: scripts/setup.sh kernel"
done

mkdir -p "$out"
out=$(cd "$out" && pwd)
exec 9>"$out/lock"
flock -n 9 || { say "waiting for another build in $out"; flock 9; }
log=$out/build.log
tree=$out/tree

# --- which source
deb=
if [ -n "$source" ]; then
  [ -f "$source/Makefile" ] && [ -f "$source/arch/um/Kconfig" ] && [ -f "$source/net/mptcp/protocol.c" ] ||
    die 2 "SOURCE=$source is not a Linux source tree: it has no arch/um/Kconfig or no net/mptcp"
  source=$(cd "$source" && pwd)
  identity="tree $source $(cd "$source" && find . -name .git -prune -o -type f -printf '%P %s %T@\n' |
    sort | sha256sum)"
else
  deb=$(find "$out" -maxdepth 1 -name "${package}_*.deb" | sort -V | tail -1)
  if [ -z "$deb" ]; then
    command -v apt-get >/dev/null ||
      die 3 "no apt-get here to download the Debian package $package with" \
        "name a Linux 6.12 source tree instead: make kernel SOURCE=/path/to/linux"
    say "downloading $package"
    rm -rf "$out/download" && mkdir "$out/download"
    sandbox=()
    [ "$(id -u)" != 0 ] || sandbox=(-o APT::Sandbox::User=root)
    fetch() { (cd "$out/download" && apt-get "${sandbox[@]}" -qq download "$package"); }
    # Fresh machines have no package lists yet.
    fetch >"$log" 2>&1 || { [ "$(id -u)" = 0 ] && apt-get -qq update >/dev/null 2>&1; } || true
    if ! compgen -G "$out/download/*.deb" >/dev/null && ! fetch >"$log" 2>&1; then
      rm -rf "$out/download"
      die 3 "could not download the Debian package $package; apt-get says:" "  $(tail -1 "$log")" \
        "if its package lists are old: sudo apt-get update" \
        "without network, put ${package}_VERSION_all.deb into $out," \
        "or name a Linux 6.12 source tree: make kernel SOURCE=/path/to/linux"
    fi
    mv "$out/download/${package}"_*.deb "$out/"
    rm -rf "$out/download"
    deb=$(find "$out" -maxdepth 1 -name "${package}_*.deb" | sort -V | tail -1)
  fi
  identity="package $(basename "$deb")"
fi

# --- is it built already
shopt -s nullglob
patches=("$here"/patches/*.patch)
sources=("$here"/mptcp/*)
digest() { (cd "$here" && sha256sum "${@#"$here"/}") | sha256sum | cut -d' ' -f1; }
tree_key="$identity patches $(digest "${patches[@]}")"
key="$tree_key rest $(digest "$here/build.sh" "$here/config" "${sources[@]}")"
key="$key $("$cc" --version | head -1), $(ld --version | head -1)"
if [ -x "$out/linux" ] && [ "$(cat "$out/linux.key" 2>/dev/null)" = "$key" ]; then
  say "$out/linux is up to date"
  exit 0
fi

# --- the patched tree; it takes its place only when whole
if [ "$(cat "$out/tree.key" 2>/dev/null)" != "$tree_key" ]; then
  rm -rf "$out/tree.key" "$out/linux.key" "$tree" "$tree.new"
  mkdir "$tree.new"
  if [ -n "$deb" ]; then
    say "unpacking $(basename "$deb")"
    dpkg-deb --fsys-tarfile "$deb" | tar -xO "./usr/src/$package.tar.xz" |
      tar -xJ -C "$tree.new" --strip-components=1 --exclude='*/drivers/gpu/drm/amd/include/*' \
        --exclude='*/arch/*/boot/dts/*' || {
      rm -rf "$tree.new"
      die 1 "could not unpack $deb: no space left in $out, or a damaged download" \
        "to download it again: rm $deb"
    }
  else
    say "copying $source"
    tar -C "$source" --exclude=.git -cf - . | tar -C "$tree.new" -xf - ||
      die 1 "could not copy $source to $tree.new"
    make -s -C "$tree.new" ARCH=um mrproper >"$log" 2>&1 ||
      die 1 "could not clean the copy of $source: see $log"
  fi
  for patch in "${patches[@]}"; do
    if ! patch -d "$tree.new" -p1 --batch --forward --no-backup-if-mismatch <"$patch" >"$log" 2>&1; then
      version=$(make -s -C "$tree.new" ARCH=um kernelversion 2>/dev/null || echo unknown)
      rm -rf "$tree.new"
      die 1 "kernel/patches/$(basename "$patch") does not apply to ${source:-$deb} (Linux $version);" \
        "$(grep -m1 -E 'FAILED|No file|find file' "$log" || echo "see $log")" \
        "the series is for Linux 6.12"
    fi
  done
  mv "$tree.new" "$tree"
  echo "$tree_key" >"$out/tree.key"
fi
rm -f "$out/linux.key"

# --- our own files beside the kernel's
while read -r old; do
  [ -e "$here/mptcp/$old" ] || rm -f "$tree/net/mptcp/$old"
done < <(cat "$out/tree.files" 2>/dev/null || true)
for file in "${sources[@]}"; do
  cmp -s "$file" "$tree/net/mptcp/$(basename "$file")" || cp "$file" "$tree/net/mptcp/"
done
printf '%s\n' "${sources[@]##*/}" >"$out/tree.files"

# --- configure; a wish that the tree does not know would otherwise vanish
build() { make -C "$tree" ARCH=um CC="$cc" HOSTCC="$cc" "$@"; }
build -s KCONFIG_ALLCONFIG="$here/config" allnoconfig >"$log" 2>&1 ||
  die 1 "the kernel could not be configured: see $log" "$(tail -1 "$log")"
while read -r wish; do
  grep -qxF "$wish" "$tree/.config" ||
    die 1 "kernel/config asks for $wish, which Linux $(build -s kernelversion) does not grant here"
done < <(grep '^CONFIG_' "$here/config")

# --- compile
say "compiling Linux $(build -s kernelversion), about 4 minutes on 2 cores the first time (log: $log)"
if ! build -s -j"${JOBS:-$(nproc)}" linux >"$log" 2>&1; then
  grep -E -m5 'error:|Error [0-9]|undefined reference|No space' "$log" >&2 || tail -5 "$log" >&2
  die 1 "the kernel did not compile: see $log"
fi
strip -s -o "$out/linux.new" "$tree/linux"
mv "$out/linux.new" "$out/linux"
echo "$key" >"$out/linux.key"
say "$out/linux: Linux $(build -s kernelrelease), $(stat -c %s "$out/linux") bytes, \
sha256 $(sha256sum "$out/linux" | cut -c1-16)"
