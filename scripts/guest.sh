#!/usr/bin/env bash
# Makes the user space of the virtual clock's guests: `guest.sh BRAID FOLDER`. It holds the program,
# the libraries that it is linked with, where its loader looks for them, and the empty folders
# that the guest mounts on. Copies, so that a guest takes nothing of the host's while it runs.
set -euo pipefail
braid=$1 folder=$2
say() { printf 'guest: %s\n' "$*" >&2; }

linked=$(ldd "$braid") || { say "ldd cannot tell the libraries of $braid: is it built?"; exit 1; }
if grep -q 'not found' <<<"$linked"; then
  say "$braid lacks libraries: $(grep 'not found' <<<"$linked")"
  exit 1
fi
mkdir -p "$(dirname "$folder")"
new=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf "$new"' EXIT
chmod 755 "$new"
mkdir "$new"/{proc,sys,dev,run,tmp,io}
# Lines are "name => path (address)", of the loader "path (address)".
while read -r library; do
  install -Dm755 "$library" "$new$library"
done < <(awk '$2 == "=>" && $3 ~ /^\// { print $3 } $1 ~ /^\// { print $1 }' <<<"$linked")
install -sm755 "$braid" "$new/braid"
# Last: what is cut off before leaves the old one.
rm -rf "$folder"
mv "$new" "$folder"
