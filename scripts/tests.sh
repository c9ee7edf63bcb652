#!/usr/bin/env bash
# Lints, builds and runs every test, and says at the end which were skipped, and why: a test that
# lacks something passes, so that the rest can be run without it.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-.build}
mkdir -p "$build"
build=$(cd "$build" && pwd)
log=$build/tests.log
profile=${PROFILE:-checks}
# The longest program of tests takes 15 minutes on a slow machine: one that hangs ends, and says so.
patience=1800

# What has a time of its own takes what others leave of the processors.
beside=(nice -n 19)
! chrt -i 0 true 2>/dev/null || beside=(chrt -i 0)

children=()
cleanup() {
  for pid in "${children[@]}"; do kill -- "-$pid" 2>/dev/null || true; done
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# Runs a command beside all that follows, as a process group, to end it whole: log, command.
start_beside() {
  set -m
  "${beside[@]}" "${@:2}" >"$1" 2>&1 &
  set +m
  children+=($!)
}

# The kernel of the virtual clock, and its tests: guests have a time of their own, and one core.
kernel_log=$build/kernel-tests.log
start_beside "$kernel_log" bash -c \
  'kernel/build.sh && kernel/test/run.sh schedulers && kernel/test/run.sh soak 500'
kernel=$!

stage() { echo "[$SECONDS s] $*"; }

make --no-print-directory lint
stage 'build of the tests'
# Not the examples, which lint has checked.
cargo test --workspace --locked --profile "$profile" --lib --bins --tests --no-run \
  --message-format=json-render-diagnostics >"$build/tests.json"
stage 'the kernel of the virtual clock, and its tests, which began with lint'
wait "$kernel" || {
  cat "$kernel_log"
  echo "the kernel of the virtual clock, or a test of its schedulers, failed" >&2
  exit 1
}
children=() # its number may be another's now
tail -n 3 "$kernel_log"
# Guests run the program as the tests have built it: with another set of features most would be
# built twice.
scripts/guest.sh "${BRAID:-target/$profile/braid}" "$build/guest"

# Folder of the package and program of each set of tests, in the order of the packages.
programs() {
  sed -n 's|.*"manifest_path":"\([^"]*\)/Cargo.toml".*"profile":{[^}]*"test":true}.*"executable":"\([^"]*\)".*|\1 \2|p' \
    "$build/tests.json" | sort -u
}
mapfile -t all < <(programs)
[ ${#all[@]} -gt 0 ] || {
  echo "cargo named no program of tests in $build/tests.json" >&2
  exit 1
}

# Simulations compute, and know no time but their own: beside tests that mostly wait.
is_mpquic() { [[ $1 == */crates/mpquic\ */braid_mpquic-* ]]; }
sims_log=$build/simulations.log
sims=
for one in "${all[@]}"; do
  if is_mpquic "$one" && [ $# = 0 ]; then
    start_beside "$sims_log" env -C "${one% *}" "${one##* }" --show-output sim:: net::rehearsal::
    sims=$!
  fi
done

# What passing tests print goes into the log only.
shown() { tee -a "$log" | awk '/^successes:$/ { quiet = 1 } /^(failures:$|test result)/ { quiet = 0 } !quiet'; }
: >"$log"
failed=()
for one in "${all[@]}"; do
  folder=${one% *} program=${one##* } own=()
  name="$(basename "$folder") $(basename "$program" | sed 's/-[0-9a-f]*$//')"
  ! { is_mpquic "$one" && [ -n "$sims" ]; } || own=(--skip sim:: --skip net::rehearsal::)
  stage "tests of $name" | tee -a "$log"
  (cd "$folder" && timeout --foreground --verbose --kill-after=10 "$patience" \
    "$program" --show-output "${own[@]}" "$@" 2>&1) | shown || failed+=("$name")
done
if [ -n "$sims" ]; then
  stage 'simulations of mpquic, which began with the first tests'
  wait "$sims" || failed+=('mpquic, simulations')
  children=()
  shown <"$sims_log"
fi
stage 'examples in the documentation'
cargo test --workspace --locked --profile "$profile" --doc --quiet 2>&1 | tee -a "$log" ||
  failed+=('examples in the documentation')

stage 'all tests have run'
reasons=$(grep -a '^skipped: ' "$log" | sed 's/^skipped: //' | sort | uniq -c | sort -rn || true)
if [ -z "$reasons" ]; then
  echo 'skipped: none'
else
  echo "skipped, in all $(echo "$reasons" | awk '{ n += $1 } END { print n }') (all output: $log):"
  echo "$reasons"
fi

# Again at the end: between them lie the tests of all other programs.
if [ ${#failed[@]} -gt 0 ]; then
  echo 'failed, and what those tests printed:'
  awk '/^failures:$/ { show = 1 } /^test result/ { show = 0 } show' "$log"
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
fi
