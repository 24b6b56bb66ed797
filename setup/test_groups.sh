#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs make targets one after the other, also behind one that failed, and ends with a line for each and with every failure.
# Those joined by + run side by side: the first one's output comes as it is made, the others' when they have ended.
#   setup/test_groups.sh TARGET[+TARGET…]…
set -uo pipefail
cd "$(dirname "$0")/.."
logs=.setup/tests
mkdir -p $logs
summary=() failed=()

begin() { printf '\033[1m[test]\033[0m %s\n' "$1"; }
run() {  # TARGET; leaves when it ended
    make --no-print-directory "$1" 2>&1
    local code=$?
    echo "$SECONDS" >"$logs/$1.end"
    return $code
}
conclude() {  # TARGET EXIT-CODE START
    local verdict=ok
    [ "$2" = 0 ] || { verdict=FAILED; failed+=("$1"); }
    summary+=("$(printf '%-16s %-6s %5d s' "$1" $verdict $(($(<"$logs/$1.end") - $3)))")
}
trap 'for process in ${processes[@]+"${processes[@]}"}; do kill -INT -- "-$process" 2>/dev/null; done; exit 130' INT TERM

for step in "$@"; do
    IFS=+ read -ra groups <<<"$step"
    start=$SECONDS processes=()
    set -m  # without it what runs in the background ignores SIGINT, and tests of SIGINT fail
    for group in "${groups[@]:1}"; do
        run "$group" >"$logs/$group.log" &
        processes+=($!)
    done
    set +m
    begin "${groups[0]}"
    run "${groups[0]}" | tee "$logs/${groups[0]}.log"
    conclude "${groups[0]}" "${PIPESTATUS[0]}" "$start"
    for place in "${!processes[@]}"; do
        group=${groups[$((place + 1))]}
        wait "${processes[$place]}"
        code=$?
        begin "$group"
        cat "$logs/$group.log"
        conclude "$group" $code "$start"
    done
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
