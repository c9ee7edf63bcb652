#!/usr/bin/env bash
# Tests the schedulers inside the virtual-clock kernel, as any user:
#   kernel/test/run.sh schedulers [NAME]        what each scheduler promises
#   kernel/test/run.sh soak [COUNT [FIRST]]     random scenarios; SEED=1, JOBS=processors
#   kernel/test/run.sh netem rate=100 delay=10 queue=50 cc=reno   goodput of one path, Mbit/s
# KERNEL is the kernel to test, .build/kernel/linux if not set.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
kernel=$(realpath -m "${KERNEL:-$here/../../.build/kernel/linux}")
seed=${SEED:-1}
jobs=${JOBS:-$(nproc)}
batch=500		# scenarios of a guest; a failure repeats with its batch
patience=${PATIENCE:-1800}	# seconds that a guest may take

say() { printf 'kernel test: %s\n' "$*" >&2; }
[ -x "$kernel" ] || { say "there is no kernel at $kernel: make kernel"; exit 3; }

set -m			# each guest a process group, to end it whole
root=$(mktemp -d)
memory=.		# where the guests' memory lies: better not on a disk
[ ! -w /dev/shm ] || memory=/dev/shm
pids=()
cleanup() {
  for pid in "${pids[@]}"; do kill -- "-$pid" 2>/dev/null || true; done
  rm -rf "$root"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
mkdir -p "$root/root/proc"
ln -s "$kernel" "$root/linux"
"${CC:-cc}" -O2 -Wall -Wextra -Wno-unused-parameter -static -o "$root/root/init" "$here"/*.c -lm

# A guest; its lines but those of the kernel's own start. No path of the host is
# in its command line, which is part of its randomness: a run would not repeat.
guest() {
  { cd "$root" && setarch -R env -i HOME=. TMPDIR="$memory" timeout "$patience" ./linux mem=512M \
    hostfs=/proc/self/cwd root=/dev/root rootfstype=hostfs rootflags=root ro init=/init \
    time-travel=inf-cpu time-travel-start=1700000000000000000 random-seed="$seed" \
    con=null con0=null,fd:1 ssl=null quiet loglevel=4 norandmaps "$@" </dev/null 2>&1 ||
    [ $? != 124 ] || echo "STOPPED after $patience s of wall time (PATIENCE=... for more)"; } |
    sed -uE '/^Core dump limits|^[[:space:]]+(soft|hard) -|^Checking |^reboot: |^Warning: tempdir/d'
}

passed() { [ "$(grep -c '^RESULT passed' "$1")" = 1 ]; }

case ${1:-} in
schedulers)
  guest test=schedulers ${2:+only="$2"} | tee "$root/log"
  passed "$root/log" || { say "a scheduler does not keep its promise, or the guest ended early"; exit 1; }
  ;;
soak)
  count=${2:-500} first=${3:-0} end=$((${2:-500} + ${3:-0})) failed=0
  while [ "$first" -lt "$end" ] || [ ${#pids[@]} -gt 0 ]; do
    if [ "$first" -lt "$end" ] && [ ${#pids[@]} -lt "$jobs" ]; then
      n=$((end - first < batch ? end - first : batch))
      guest test=soak first="$first" count="$n" seed="$seed" >"$root/$first.log" &
      pids+=($!)
      first=$((first + n))
      continue
    fi
    wait "${pids[0]}"
    pids=("${pids[@]:1}")
    say "$(cat "$root"/*.log | grep -c '^FAIL') failures; $(cat "$root"/*.log | grep -c '^RESULT') guests done"
  done
  for log in "$root"/*.log; do
    grep -vE '^(AT|RESULT) ' "$log" || true
    passed "$log" || { failed=1; tail -5 "$log" >&2; }
  done
  [ $failed = 0 ] || { say "not all of $count scenarios came out right, see above; again: SEED=$seed $0 soak COUNT FIRST"; exit 1; }
  say "$count scenarios, seed $seed: every byte arrived once and in its place"
  ;;
netem)
  guest test=netem "${@:2}" >"$root/log"
  passed "$root/log" || { cat "$root/log" >&2; say "the transfer over netem failed"; exit 1; }
  sed -n 's/^NETEM //p' "$root/log"
  ;;
*)
  sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
