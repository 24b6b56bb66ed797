# SPDX-License-Identifier: Apache-2.0
# The only entry point. `make help` lists the targets; each does the set-up that it needs.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
ROOT := $(shell [ "$$(id -u)" = 0 ] || echo "sudo -E env PATH=$$PATH")
PY := .venv/bin/python
CARGO := cargo --color=auto
MANIFEST := --manifest-path switch/Cargo.toml
TARGET ?= embedded
SWITCH ?= embedded
TOPOLOGY ?= mininet/topologies/dumbbell.json
PROGRAM ?= qthresh
TESTS := p4src controller hosts lab mininet switch bench setup
export PATH := $(CURDIR)/.setup/rust:$(HOME)/.cargo/bin:$(PATH)
export FAIRLANE_PYTHON := $(CURDIR)/.venv/bin/python
export PYO3_PYTHON := $(CURDIR)/.venv/bin/python

.PHONY: help setup demo run stop test test-rust test-python test-kernel test-timed ptf conformance bench doctor lint format typecheck p4 clean

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

setup: ## install and build everything that is missing (apt, Python, Rust, BPF)
	@setup/setup.sh all

demo: setup ## Reno and Vegas on the paper's four links, drop-tail then Qthresh: table, data, plots
	@$(ROOT) .venv/bin/fairlane lab demo

run: setup ## start the topology and open Mininet's CLI (SWITCH=embedded|bmv2, TOPOLOGY=file, PROGRAM=qthresh|gfr|ena)
	@$(ROOT) $(PY) mininet/run.py --topology $(TOPOLOGY) --target $(SWITCH) --program $(PROGRAM)

stop: ## remove exactly what our topologies made, also after a crash
	@$(ROOT) python3 mininet/stop.py

test: setup lint typecheck test-rust test-python ptf ## everything that CI runs
	@echo "all tests passed"

test-rust: setup ## unit and integration tests of the Rust workspace
	@$(CARGO) test --quiet $(MANIFEST) --workspace

test-python: setup ## tests of the Python packages side by side, then those that need the machine (Mininet, kernel senders)
	@setup/setup.sh browser
	@$(ROOT) $(PY) -m pytest -q -m "not kernel and not timed" -n 4 --dist loadfile $(TESTS)
	@$(MAKE) --no-print-directory -j2 --output-sync=target test-kernel test-timed

test-kernel test-timed: test-%:
	@$(ROOT) env -u MAKEFLAGS -u MFLAGS $(PY) -m pytest -q -m $* $(TESTS)

ptf: setup ## PTF tests of the P4 programs through P4Runtime (TARGET=embedded|bmv2)
	@$(ROOT) $(PY) ptf_tests/run.py --target $(TARGET)

conformance: ## p4c's own packet tests through the embedded switch (P4C=path of a p4c tree)
	@test -n "$${P4C:-}" || { echo "name a p4c tree: make conformance P4C=../p4c (p4c-bm2-ss must be on the PATH)"; exit 2; }
	@$(CARGO) run --quiet --release $(MANIFEST) -p conformance -- --p4c-tree "$(P4C)" --at-least 190

bench: setup ## performance as ratios measured in one run
	@$(ROOT) $(PY) bench/run.py

doctor: ## say what is missing on this machine and how to mend it
	@/usr/bin/env python3 setup/doctor.py

lint: setup ## formatters and linters, all blocking
	@.venv/bin/ruff format --check -q . && .venv/bin/ruff check -q .
	@$(CARGO) fmt $(MANIFEST) --all --check
	@$(CARGO) clippy --quiet $(MANIFEST) --workspace --all-targets -- -D warnings

format: setup ## format everything
	@.venv/bin/ruff format -q . && .venv/bin/ruff check -q --fix . || true
	@$(CARGO) fmt $(MANIFEST) --all

typecheck: setup ## pyright, strict
	@.venv/bin/pyright --warnings

p4: ## recompile the P4 programs (needs p4c-bm2-ss on the PATH)
	@python3 p4src/compile.py

clean: stop ## remove what set-up and builds made
	@rm -rf .venv .setup switch/target switch/fairlane_switch/native.abi3.so hosts/build
