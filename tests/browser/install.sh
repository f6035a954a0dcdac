#!/bin/sh
# Makes sure that a Chromium is here for the tests of the dashboard: the one on the machine, else Debian's as
# root. Does nothing, quickly, when there is nothing to do; where none can be had, the tests say so.

for name in chromium chromium-browser google-chrome google-chrome-stable; do
    command -v "$name" >/dev/null 2>&1 && exit 0
done
[ -n "$MILLPOND_TEST_BROWSER" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing Chromium for the tests of the dashboard (apt-get)"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >/dev/null 2>&1
    apt-get install -y -qq --no-install-recommends chromium fonts-inter fonts-liberation >/dev/null 2>&1 && exit 0
fi
echo "There is no Chromium and none could be installed; the tests of the dashboard will be skipped." >&2
echo "Install one (Debian: apt-get install chromium), or name it: MILLPOND_TEST_BROWSER=/path/to/chromium" >&2
exit 0
