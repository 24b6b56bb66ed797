#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs make targets one after the other, also behind one that failed, and ends with a line for each and with every failure.
#   setup/test_groups.sh TARGET…
set -uo pipefail
cd "$(dirname "$0")/.."
logs=.setup/tests
mkdir -p $logs
summary=() failed=()
for group in "$@"; do
    printf '\033[1m[test]\033[0m %s\n' "$group"
    start=$SECONDS
    if make --no-print-directory "$group" 2>&1 | tee "$logs/$group.log"; then
        verdict=ok
    else
        verdict=FAILED
        failed+=("$group")
    fi
    summary+=("$(printf '%-16s %-6s %5d s' "$group" "$verdict" $((SECONDS - start)))")
done
echo
printf '%s\n' "${summary[@]}"
[ ${#failed[@]} = 0 ] && { echo "all tests passed"; exit 0; }
# What pytest, cargo test, PTF, the linters and the compilers call a failure.
for group in "${failed[@]}"; do
    echo
    echo "failures of $group (whole output: $logs/$group.log):"
    grep -E '^(FAILED|ERROR)[: ]|^test .* FAILED$|^error(\[|:)|^    [a-z_0-9:]+$|[0-9]+:[0-9]+ - error|panicked at|\*\*\* ' "$logs/$group.log" | sort -u | head -n 60 || true
done
exit 1
