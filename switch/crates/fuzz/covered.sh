#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# RUSTC_WORKSPACE_WRAPPER of `make fuzz`: our own crates tell libFuzzer which of their code is reached and what is compared, others
# do not; nor do build scripts, which are linked without it.
rustc=$1
shift
case " $* " in *" build_script_build "*) exec "$rustc" "$@" ;; esac
exec "$rustc" "$@" -C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=4 -C llvm-args=-sanitizer-coverage-inline-8bit-counters \
    -C llvm-args=-sanitizer-coverage-pc-table -C llvm-args=-sanitizer-coverage-trace-compares
