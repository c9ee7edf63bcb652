#!/usr/bin/env bash
# Holds the documentation against the program: every link and file in it leads somewhere,
# every whole scenario in it is one that braid accepts, and every library the
# workspace uses has its reason.
set -euo pipefail
cd "$(dirname "$0")/.."
braid=${BRAID:-${CARGO_TARGET_DIR:-target}/release/braid}
fail=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for page in README.md CONTRIBUTING.md docs/*.md docs/*/*.md; do
  while read -r target; do
    [ -e "$(dirname "$page")/$target" ] || { echo "$page: broken link: $target" >&2; fail=1; }
  done < <(grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -vE '^(https?|mailto):' || true)

  # Blocks of TOML that begin a scenario are run for a case that does not exist:
  # the answer names the cases there are if the rest was accepted.
  awk -v out="$scratch/${page//\//-}" '
    /^```toml/ { n++; on = 1; next } /^```/ { on = 0 } on { print > (out "." n ".toml") }' "$page"
done
# Plans that examples name.
mkdir -p "$scratch/plans"
printf 't_s,interface,state,operator,carrier,cell,rate_mbps,delay_ms,address\n0,1,up,a,b,c,10,10,1\n600,,end,,,,,,\n' |
  tee "$scratch/plans/drive.sp.plan.csv" > "$scratch/plans/drive.3.plan.csv"
for block in "$scratch"/*.toml; do
  [ -e "$block" ] || continue
  # A part of a scenario has no name of its own at its top.
  sed '/^\[/,$d' "$block" | grep -q '^name = ' && grep -q '^\[\[case\]\]' "$block" || continue
  answer=$("$braid" lab run "$block" --only 'no such case' 2>&1 || true)
  case $answer in
  *'no case is called'*) ;;
  *) echo "$(basename "$block"): not a scenario that braid accepts: $answer" >&2; fail=1 ;;
  esac
done
# The map of the tree names files that are there.
for file in $(grep -oE 'crates/[a-z0-9_/-]+\.rs' docs/internals/where.md); do
  [ -e "$file" ] || { echo "docs/internals/where.md: no such file: $file" >&2; fail=1; }
done
# Every library of the workspace has its reason.
for crate in $(sed -n '/^\[workspace.dependencies\]/,/^\[workspace.lints/s/^\([a-z0-9_-]*\) = .*/\1/p' Cargo.toml | grep -v '^braid-'); do
  grep -qE "\b$crate\b" docs/dependencies.md || { echo "docs/dependencies.md: no line for $crate" >&2; fail=1; }
done
[ $fail = 0 ] && echo "documentation: links, scenarios and dependencies are right"
exit $fail
