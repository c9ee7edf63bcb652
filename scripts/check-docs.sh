#!/usr/bin/env bash
# Holds the documentation against the program: every link in it leads somewhere,
# and every whole scenario in it is one that braid accepts.
set -euo pipefail
cd "$(dirname "$0")/.."
braid=${CARGO_TARGET_DIR:-target}/release/braid
fail=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for page in README.md CONTRIBUTING.md docs/*.md; do
  while read -r target; do
    [ -e "$(dirname "$page")/$target" ] || { echo "$page: broken link: $target" >&2; fail=1; }
  done < <(grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -vE '^(https?|mailto):' || true)

  # Blocks of TOML that begin a scenario are run for a case that does not exist:
  # the answer names the cases there are if the rest was accepted.
  awk -v out="$scratch/$(basename "$page")" '
    /^```toml/ { n++; on = 1; next } /^```/ { on = 0 } on { print > (out "." n ".toml") }' "$page"
done
for block in "$scratch"/*.toml; do
  [ -e "$block" ] || continue
  grep -q '^name = ' "$block" && grep -q '^\[\[case\]\]' "$block" || continue
  answer=$("$braid" lab run "$block" --only 'no such case' 2>&1 || true)
  case $answer in
  *'no case is called'*) ;;
  *) echo "$(basename "$block"): not a scenario that braid accepts: $answer" >&2; fail=1 ;;
  esac
done
[ $fail = 0 ] && echo "documentation: links and scenarios are right"
exit $fail
