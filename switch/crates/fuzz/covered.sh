#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# RUSTC_WORKSPACE_WRAPPER of `make fuzz`: our own crates count the regions of their code that are reached, others do not.
rustc=$1
shift
exec "$rustc" "$@" -C instrument-coverage --cfg covered
