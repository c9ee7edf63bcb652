#!/bin/sh
# A picture of a run's report, for documents: the top of the page, or with a
# height as much of it as that.
#   scripts/picture.sh RUN_DIR PICTURE.png [WIDTH [HEIGHT]]    THEME=dark for dark
set -eu
if [ $# -lt 2 ]; then
    sed -n '2,4s/^# *//p' "$0" >&2
    exit 2
fi
dir=$(cd "$1" && pwd)
picture=$2
width=${3:-1280}
height=${4:-1180}
if [ ! -f "$dir/report.html" ]; then
    echo "$dir has no report.html: make it with \`braid lab report $1\`" >&2
    exit 2
fi
for browser in chromium chromium-browser google-chrome google-chrome-stable; do
    command -v "$browser" >/dev/null && break
    browser=
done
if [ -z "$browser" ]; then
    echo "no Chromium found: install it with \`apt-get install chromium\`" >&2
    exit 3
fi
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
# The sandbox does not work for root.
sandbox=
[ "$(id -u)" != 0 ] || sandbox=--no-sandbox
# 0 is dark, 1 is light.
scheme=1
[ "${THEME:-light}" != dark ] || scheme=0
"$browser" --headless --disable-gpu --hide-scrollbars --disable-background-networking \
    $sandbox --user-data-dir="$profile" --force-device-scale-factor=1.5 \
    --blink-settings=preferredColorScheme=$scheme --window-size="$width,$height" \
    --timeout=8000 --screenshot="$picture" "file://$dir/report.html" 2>/dev/null
[ -s "$picture" ] || { echo "$browser made no picture of $dir/report.html" >&2; exit 1; }
echo "$picture"
