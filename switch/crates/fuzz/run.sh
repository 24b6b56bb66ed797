#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: run.sh SECONDS SEED [TARGET...]
# libFuzzer on each target, or on all, for so long or until its first finding, whose input, made small, stays in corpus/TARGET. Inputs
# that reach more are kept in switch/target/fuzz/TARGET for the next time. Exit code 1: something was found.
cd "$(dirname "$0")" || exit
seconds=$1 seed=$2
shift 2
built=$(cd ../../target && pwd) || exit
RUSTC_WORKSPACE_WRAPPER=$PWD/covered.sh cargo build --quiet --profile fuzzing -p fuzz --features libfuzzer || exit 2
code=0
for target in ${*:-program config requests frames gnmi wire}; do
    export FUZZ_TARGET="$target"
    found=corpus/$target/found-$(date +%s).json
    mkdir -p "corpus/$target" "$built/fuzz/$target"
    echo "$target"
    "$built/fuzzing/fuzz" -seed="$seed" -max_total_time="$seconds" -max_len=65536 -timeout=120 -rss_limit_mb=4096 -verbosity=0 -print_funcs=0 -print_final_stats=1 \
        -exact_artifact_path="$found" "$built/fuzz/$target" "corpus/$target" && continue
    code=1
    [ -f "$found" ] || continue
    "$built/fuzzing/fuzz" -minimize_crash=1 -max_total_time=10 -timeout=120 -exact_artifact_path="$found.small" "$found" >/dev/null 2>&1
    [ -f "$found.small" ] && mv "$found.small" "$found"
    echo "FOUND in $target; its input: switch/crates/fuzz/$found"
done
exit "$code"
