#!/usr/bin/env bash
# Counts doc comments whose first word is a riddle without what stands before it (What, Of,
# That, The same, ...): docs of an item are read alone. The count may only fall: it is held
# against scripts/openings.max. `--list` prints them.
set -euo pipefail
cd "$(dirname "$0")/.."

openings() {
  find crates -name '*.rs' | sort | xargs awk '
    FNR == 1 { before = 0 }
    {
      doc = /^[ \t]*\/\/[\/!]/
      riddle = /^[ \t]*\/\/[\/!] (What|Who|Whom|Whose|Of|That|Those|These|It|They|Them|The same|Has|None|Which)([ ,.:;`]|$)/
      if (doc && !before && riddle) print FILENAME ":" FNR ": " $0
      before = doc
    }'
}

if [ "${1:-}" = --list ]; then
  openings
  exit
fi
now=$(openings | wc -l)
most=$(<scripts/openings.max)
if [ "$now" -gt "$most" ]; then
  echo "doc comments: $now open with What, Of, That, ...; $most did before: begin with a noun of the field or a verb (scripts/check-openings.sh --list)" >&2
  exit 1
elif [ "$now" -lt "$most" ]; then
  echo "doc comments: only $now open with What, Of, That, ... now: write $now into scripts/openings.max" >&2
  exit 1
fi
echo "doc comments: $now open with What, Of, That, ..."
