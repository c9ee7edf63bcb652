#!/bin/sh
# Downloads over recorded drives with a modem for each of 5G and 4G, on the virtual clock.
# What has run is kept; started again, it goes on.
#
# usage: scripts/downloads-paired.sh BRAID FOLDER DRIVE...
set -eu
if [ $# -lt 3 ]; then
	echo "usage: $0 BRAID FOLDER DRIVE..." >&2
	exit 2
fi
braid=$(realpath "$1")
folder=$2
shift 2
here=$(dirname "$(realpath "$0")")/../campaigns/downloads

for drive in "$@"; do
	name=$(basename "$drive")
	to=$folder/$name
	mkdir -p "$to/plans"
	for case in sp 1 2; do
		# The paper's delays are of cells of up to 200 Mbit/s. One way, 5G NR has 10 ms
		# in measurements of Navarro-Ortiz et al. (Sensors 24, 6022, 2024).
		"$braid" trace plan "$drive" --case "$case" --delay "10 ms" \
			--out "$to/plans/drive.$case.plan.csv" --force
	done
	cp "$here/scenario-paired.toml" "$here/paired.toml" "$to/"
	"$braid" lab campaign "$to/paired.toml" --out "$to/campaign"
done
