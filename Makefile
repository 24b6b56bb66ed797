# SPDX-License-Identifier: Apache-2.0
# The only entry point. `make help` lists the targets; each does the set-up that it needs.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
ROOT := $(shell [ "$$(id -u)" = 0 ] || echo "sudo -E env PATH=$$PATH")
PY := .venv/bin/python
CARGO := cargo --color=auto
MANIFEST := --locked --manifest-path switch/Cargo.toml
TARGET ?= embedded
SWITCH ?= embedded
TOPOLOGY ?= mininet/topologies/dumbbell.json
PROGRAM ?= qthresh
CONTROLLER ?= fairlane
ifeq ($(filter fairlane none,$(CONTROLLER)),)
$(error CONTROLLER=$(CONTROLLER): choose fairlane, or none to bring your own)
endif
FOLDER ?=
SECONDS ?= 60
SEED := $(or $(SEED),$(shell date +%s))
FUZZ ?=
PYTEST := env -u MAKEFLAGS -u MFLAGS setup/run_pytest.sh .setup/pytest
TESTS := p4src controller hosts lab mininet switch bench setup tutorials
# Where no program's name may be.
NO_PROGRAM := controller/fairlane controller/fairlane_controller lab/fairlane_lab mininet ptf_tests -name '*.py' -not -path '*/fairlane_controller/programs/*' \
	-not -path 'ptf_tests/cases/*' -not -name qdisc.py -not -name 'test_*' -not -name 'fuzz_*' -not -path 'ptf_tests/ena_*' -not -path 'ptf_tests/gfr_*' -not -path 'ptf_tests/qthresh_*' -not -path 'ptf_tests/rank_*' -not -path 'ptf_tests/*_oracle.py'
export PATH := $(CURDIR)/.setup/rust:$(PATH)$(shell command -v cargo >/dev/null || echo ":$(HOME)/.cargo/bin")
ifneq ($(wildcard .setup/rust-toolchain),)  # set-up found no pinned tool chain
export RUSTUP_TOOLCHAIN ?= $(shell cat .setup/rust-toolchain)
endif
export PYO3_PYTHON := $(CURDIR)/.venv/bin/python
unexport PYTHONDONTWRITEBYTECODE  # without bytecode every command of fairlane starts in twice the time

.PHONY: help setup demo run stop test check test-rust test-python test-kernel test-timed ptf fuzz fuzz-short conformance clients differential tutorials bench kernel dist docs doctor lint format typecheck lock p4 clean

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

setup: ## install and build everything that is missing (apt, Python, Rust, BPF)
	@setup/setup.sh all

demo: ## Reno and Vegas on the paper's four links, drop-tail then Qthresh: table, data, plots
	@setup/setup.sh demo
	@$(ROOT) .venv/bin/fairlane lab run demo --runtime mininet

run: setup ## start the topology and open Mininet's CLI (SWITCH=embedded|bmv2, TOPOLOGY=file, PROGRAM=qthresh|gfr|ena|codel|fq_codel|pie|dualpi2|red|fred|afd|cebinae|afq|sp_pifo|aifo|packs|folder/, CONTROLLER=fairlane|none, FOLDER=of the commands, PLAIN=1: no TLS, PROCESSES=separate: one for each switch)
	@$(ROOT) $(PY) mininet/fairlane_topology/run.py --topology $(TOPOLOGY) --target $(SWITCH) --program $(PROGRAM) \
		$(if $(filter none,$(CONTROLLER)),--no-controller) $(if $(FOLDER),--folder $(FOLDER)) $(if $(PLAIN),--plain) $(if $(PROCESSES),--processes $(PROCESSES))

stop: ## remove exactly what our topologies made, also after a crash
	@$(ROOT) $(PY) -m fairlane_topology.stop

test: setup ## everything that CI runs; a group that fails keeps no other one from running
	@setup/test_groups.sh test-kernel,test-timed ptf,fuzz-short lint,typecheck,test-rust,test-python

check: setup ## formatters, linters, types and the tests of files that take no 3 s: for every save
	@$(MAKE) --no-print-directory lint typecheck
	@$(ROOT) env FAIRLANE_FAST=1 $(PYTEST)-check $(PY) -m pytest -q -m "not kernel and not timed" -n 2 --dist loadfile $(TESTS)

test-rust: setup ## unit and integration tests of the Rust workspace
	@$(CARGO) test --quiet --no-fail-fast $(MANIFEST) --workspace

test-python: setup ## tests of the Python packages, side by side
	@setup/setup.sh browser
	@$(ROOT) $(PYTEST)-python $(PY) -m pytest -q -m "not kernel and not timed" -n 4 --dist loadfile $(TESTS)

test-kernel: setup ## tests of senders and topologies in the machine's one kernel (Mininet)
	@$(ROOT) $(PYTEST)-kernel $(PY) -m pytest -q -m "kernel and not timed" -n 3 --dist loadfile $(TESTS)

test-timed: setup ## tests that assert what holds in real time
	@$(ROOT) $(PYTEST)-timed $(PY) -m pytest -q -m timed $(TESTS)

ptf: setup ## PTF tests of the P4 programs through P4Runtime (TARGET=embedded|bmv2)
	@$(ROOT) $(PY) ptf_tests/run.py --target $(TARGET)

fuzz: setup ## hostile programs, configs, requests, frames, gNMI, files (SECONDS=60 for each, FUZZ="program gnmi" only these, SEED=1)
	@switch/crates/fuzz/run.sh $(SECONDS) $(SEED) $(FUZZ)
	@[ -n "$(FUZZ)" ] || $(PY) controller/tests/fuzz.py --seed $(SEED) --seconds $$(( $(SECONDS) * 5 ))

fuzz-short: setup ## the same in a few minutes, always with the same inputs
	@$(CARGO) test --quiet $(MANIFEST) --workspace --test inputs -- --ignored --nocapture

conformance: ## packet tests (STF) through the embedded switch (P4C=a p4c tree, or any folder of tests and programs)
	@test -n "$${P4C:-}" || { echo "name a p4c tree: make conformance P4C=../p4c (p4c-bm2-ss must be on the PATH)"; exit 2; }
	@$(CARGO) run --quiet --release $(MANIFEST) -p conformance -- "$(P4C)"

differential: ## our programs, and those of P4C=folder, on the embedded switch and on BMv2, packet by packet
	@$(CARGO) run --quiet --release $(MANIFEST) -p conformance -- --bmv2 --programs p4src/compiled p4src/differential $(P4C)

clients: ## other projects' P4Runtime and gNMI clients, unchanged, against the switch (CLIENTS=folder of their trees)
	@$(ROOT) switch/tests/clients/run.sh "$(CLIENTS)"

tutorials: setup ## p4lang/tutorials' exercises, solved, on the embedded switch (P4LANG_TUTORIALS=a tree, P4LANG_PYTHON=for their controllers, P4_GUIDE=a p4-guide tree; EXERCISE=only these)
	@test -n "$${P4LANG_TUTORIALS:-}" || { echo "name a p4lang/tutorials tree: make tutorials P4LANG_TUTORIALS=../tutorials (p4c-bm2-ss must be on the PATH)"; exit 2; }
	@$(ROOT) $(PY) tutorials/run.py --tree "$(P4LANG_TUTORIALS)" --python "$(P4LANG_PYTHON)" $(if $(P4_GUIDE),--guide "$(P4_GUIDE)") $(EXERCISE)

bench: setup ## performance as ratios measured in one run
	@$(ROOT) $(PY) bench/run.py

kernel: ## build the kernel of --runtime kernel: real Linux TCP in virtual time (apt source package, once, 3 to 6 minutes)
	@setup/setup.sh kernel

dist: setup ## one wheel of everything that needs no root: switch, wire, simulator, controller, lab (into dist/)
	@setup/setup.sh dist

docs: ## build the documentation as a site in site/ (strict: every link is checked; needs no Rust build)
	@setup/setup.sh python
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --quiet
	@echo "the documentation: site/index.html (with search: python3 -m http.server --directory site)"

doctor: ## say what is missing on this machine and how to mend it
	@/usr/bin/env python3 setup/doctor.py

lint: setup ## formatters and linters, all blocking
	@.venv/bin/ruff format --check -q . && .venv/bin/ruff check -q .
	@.venv/bin/reuse lint --lines
	@.venv/bin/lint-imports --no-cache > .setup/imports.log || { cat .setup/imports.log; exit 1; }
	@test -z "$$(find $(NO_PROGRAM) -exec grep -lEi 'qthresh|gfr|fq_codel|dualpi2|cebinae|(^|[^a-z])(ena|pie)([^a-z]|$$)' {} + | tee /dev/stderr)" || { echo "these name a program"; exit 1; }
	@$(CARGO) fmt --manifest-path switch/Cargo.toml --all --check
	@$(CARGO) clippy --quiet $(MANIFEST) --workspace --all-targets -- -D warnings

format: setup ## format everything
	@.venv/bin/ruff format -q . && .venv/bin/ruff check -q --fix . || true
	@$(CARGO) fmt --manifest-path switch/Cargo.toml --all

typecheck: setup ## pyright, strict
	@.venv/bin/pyright --warnings

lock: ## renew the locked versions of Python packages and Rust crates
	@setup/setup.sh lock

p4: ## recompile the P4 programs (needs p4c-bm2-ss on the PATH)
	@python3 p4src/compile.py

clean: stop ## remove what set-up and builds made
	@rm -rf .venv .setup dist site switch/target switch/fairlane_switch/native.abi3.so hosts/build
