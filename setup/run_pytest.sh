#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs pytest. Where few tests fail, these are run once more, one at a time: some of what fails on a busy machine holds on a quiet one.
# A test that fails twice has failed; see conftest.py for tests of real time. FAIRLANE_AGAIN=1 makes the second run only, FAIRLANE_AGAIN=later the first.
#   setup/run_pytest.sh CACHE PYTEST…
set -uo pipefail
most=10
cache=$1
shift
again=${FAIRLANE_AGAIN:-}
if [ "$again" != 1 ]; then
    env -u FAIRLANE_AGAIN "$@" -o cache_dir="$cache"
    code=$?
    [ $code = 1 ] || rm -f "$cache/v/cache/lastfailed"  # it did not come to run all: a second run would forgive that
    [ $code = 1 ] && [ "$again" != later ] || exit $code
fi
count=$(grep -c '": true' "$cache/v/cache/lastfailed")
[ "$count" -le $most ] || exit 1
printf '\033[1m[test]\033[0m %s\n' "$count of these tests failed: once more, one at a time"
FAIRLANE_AGAIN=1 exec "$@" -o cache_dir="$cache" -n 0 --last-failed --last-failed-no-failures none
