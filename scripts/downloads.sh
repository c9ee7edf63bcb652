#!/bin/sh
# Downloads over cells of a generated drive: Tables 4 and 5 of paper 003, on the virtual
# clock. What has run is kept; started again, it goes on.
#
# usage: scripts/downloads.sh BRAID FOLDER [residential|road ...]
set -eu
if [ $# -lt 2 ]; then
	echo "usage: $0 BRAID FOLDER [residential|road ...]" >&2
	exit 2
fi
braid=$(realpath "$1")
folder=$2
shift 2
[ $# -gt 0 ] || set -- residential road
here=$(dirname "$(realpath "$0")")/../campaigns/downloads

mkdir -p "$folder"
[ -e "$folder/drive.csv" ] || "$braid" trace drive --seed 1 --out "$folder/drive.csv"
for segment in "$@"; do
	if ! [ -e "$here/$segment.toml" ]; then
		echo "$0: no campaign \"$segment\": there are residential and road" >&2
		exit 2
	fi
	mkdir -p "$folder/$segment"
	"$braid" trace plan "$folder/drive.csv" --segment "$segment" \
		--out "$folder/$segment/plans" --force
	cp "$here/scenario.toml" "$here/$segment.toml" "$folder/$segment/"
	"$braid" lab campaign "$folder/$segment/$segment.toml" --out "$folder/$segment/campaign"
done
