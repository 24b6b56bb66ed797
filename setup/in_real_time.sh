#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs pytest. Where few tests fail, these are run once more, alone: what holds in real time fails where the machine stands still.
# A test that fails twice has failed.
#   setup/in_real_time.sh CACHE PYTEST…
set -uo pipefail
most=3
cache=$1
shift
"$@" -o cache_dir="$cache"
code=$?
[ $code = 1 ] || exit $code
count=$(grep -c '": true' "$cache/v/cache/lastfailed")
[ "$count" -le $most ] || exit 1
printf '\033[1m[test]\033[0m %s\n' "$count of the tests in real time failed: once more, alone"
exec "$@" -o cache_dir="$cache" --last-failed --last-failed-no-failures none
