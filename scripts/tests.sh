#!/usr/bin/env bash
# Runs every test, and says at the end which were skipped, and why: a test that lacks
# something passes, so that the rest can be run without it.
set -euo pipefail
cd "$(dirname "$0")/.."
log=${BUILD:-.build}/tests.log
mkdir -p "$(dirname "$log")"

profile=${PROFILE:-checks}

# Guests have a time of their own, and one core: the compilers take what they leave.
kernel_log=$(dirname "$log")/kernel-tests.log
set -m # a process group, to end it whole
(kernel/test/run.sh schedulers && kernel/test/run.sh soak 500) >"$kernel_log" 2>&1 &
kernel=$!
set +m
trap 'kill -- "-$kernel" 2>/dev/null || true' EXIT
cargo test --workspace --locked --profile "$profile" --no-run
if ! wait "$kernel"; then
  cat "$kernel_log"
  echo "the tests of the kernel's schedulers failed" >&2
  exit 1
fi
trap - EXIT
tail -n 3 "$kernel_log"
# Guests run the program as the tests have built it: with another set of features most would be
# built twice.
scripts/guest.sh "${BRAID:-target/$profile/braid}" .build/guest

# What passing tests print goes into the log only.
ended=0
cargo test --workspace --locked --profile "$profile" --no-fail-fast "$@" -- --show-output 2>&1 | tee "$log" |
  awk '/^successes:$/ { quiet = 1 } /^(failures:$|test result)/ { quiet = 0 } !quiet' || ended=$?

reasons=$(grep -a '^skipped: ' "$log" | sed 's/^skipped: //' | sort | uniq -c | sort -rn || true)
if [ -z "$reasons" ]; then
  echo 'skipped: none'
else
  echo "skipped, in all $(echo "$reasons" | awk '{ n += $1 } END { print n }') (all output: $log):"
  echo "$reasons"
fi

# Again at the end: between them lie the tests of all other programs.
if [ "$ended" != 0 ]; then
  echo 'failed, and what those tests printed:'
  awk '/^failures:$/ { show = 1 } /^test result/ { show = 0 } show' "$log"
  exit "$ended"
fi
