#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs make targets in lanes: the targets of a lane one after the other, also behind one that failed, and the lanes side by side.
# The first lane has the machine: the others are nicer. What fails there may be run once more when all have ended, alone: see
# run_pytest.sh. It ends with a line for each target and with every failure.
#   setup/test_groups.sh TARGET[,TARGET…]…
set -uo pipefail
cd "$(dirname "$0")/.."
logs=.setup/tests
rm -rf $logs .setup/pytest-*/v/cache/lastfailed  # what failed in a run before this one says nothing
mkdir -p $logs
failed=()
with_sigint="env --default-signal=INT"  # a shell without job control starts in the background what ignores it; tests send it

run_lane() {  # TARGET… ; leaves of each what it said, and its exit code and seconds when it ended
    for target in "$@"; do
        local start=$SECONDS
        FAIRLANE_AGAIN=later $with_sigint make --no-print-directory "$target" >"$logs/$target.log" 2>&1
        echo "$? $((SECONDS - start))" >"$logs/$target.new"
        mv "$logs/$target.new" "$logs/$target.end"
    done
}
stop() {
    for lane in ${lanes[@]+"${lanes[@]}"}; do kill -INT -- "-$lane" 2>/dev/null; done
    exit 130
}
trap stop INT TERM

lanes=()
set -m  # without it what runs in the background ignores SIGINT, and tests of SIGINT fail
for lane in "$@"; do
    IFS=, read -ra targets <<<"$lane"
    run_lane "${targets[@]}" &
    lanes+=($!)
    [ ${#lanes[@]} = 1 ] || renice -n 10 -g $! >/dev/null
done
set +m
IFS=' ' read -ra targets <<<"${*//,/ }"
for target in "${targets[@]}"; do
    printf '\033[1m[test]\033[0m %s\n' "$target"
    until [ -e "$logs/$target.log" ]; do sleep 0.2; done
    tail -n +1 -f "$logs/$target.log" &
    until [ -e "$logs/$target.end" ]; do sleep 0.2; done
    sleep 1.5  # tail looks once a second
    kill $! && wait $! 2>/dev/null
done

summary=
for target in "${targets[@]}"; do
    read -r code seconds <"$logs/$target.end"
    verdict=ok
    if [ "$code" != 0 ]; then
        verdict=FAILED
        if [ "$target" = ptf ] || [ -e ".setup/pytest-${target#test-}/v/cache/lastfailed" ]; then
            printf '\033[1m[test]\033[0m %s\n' "$target again"
            FAIRLANE_AGAIN=1 $with_sigint make --no-print-directory "$target" 2>&1 | tee "$logs/$target.again.log"
            [ "${PIPESTATUS[0]}" != 0 ] || verdict="ok, but not at once"
        fi
        [[ $verdict = ok* ]] || failed+=("$target")
    fi
    summary+=$(printf '%-16s %5d s  %s' "$target" "$seconds" "$verdict")$'\n'
done
printf '\n%s' "$summary"
# What pytest, cargo test, PTF, the linters and the compilers call a failure.
pattern='^(FAILED|ERROR)[: ]|^test .* FAILED$|^error(\[|:)|^    [a-z_0-9:]+$|[0-9]+:[0-9]+ - error|panicked at|\*\*\* '
for target in "${targets[@]}"; do
    read -r code _ <"$logs/$target.end"
    [ "$code" != 0 ] || continue
    printf '\nfailures of %s (whole output: %s):\n' "$target" "$logs/$target.log"
    grep -hE "$pattern" "$logs/$target".*log "$logs/$target.log" | sort -u | head -n 60 || true
done
[ ${#failed[@]} = 0 ] && { echo "all tests passed"; exit 0; }
exit 1
