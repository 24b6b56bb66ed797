# SPDX-License-Identifier: Apache-2.0
"""Runs the harnesses of the Python inputs: `python controller/tests/fuzz.py --examples 500 --seed 1 [--seconds 60] [NAME…]`.

Each harness gets so many examples; with `--seconds` it is run again with the next seed until its share of the time is over. A
finding ends it with exit code 1, after the shortest input that shows it and the seed.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
FOLDERS = ("controller/tests", "lab/tests", "mininet/tests")
HARNESSES = {
    "run-state": "fuzz_run_state:explore_run_state",
    "configuration": "fuzz_configuration:explore_configuration",
    "gfr-configuration": "fuzz_configuration:explore_gfr",
    "loop-requests": "fuzz_loop:explore_requests",
    "loop-socket": "fuzz_loop:explore_socket",
    "web": "fuzz_web:explore_web",
    "topology": "fuzz_topology:explore_topology",
    "runtime-json": "fuzz_topology:explore_runtime",
    "experiment": "fuzz_experiment:explore_experiment",
    "summary": "fuzz_experiment:explore_summary",
}
"""Name → module and function `explore(examples, seed)`, which raises on a finding."""


def harness(name: str) -> Callable[[int, int], None]:
    """The function of that name."""
    for folder in FOLDERS:
        if str(REPOSITORY / folder) not in sys.path:
            sys.path.insert(0, str(REPOSITORY / folder))
    module, _, function = HARNESSES[name].partition(":")
    return getattr(importlib.import_module(module), function)


def main() -> int:
    """Exit code 0 without a finding."""
    parser = argparse.ArgumentParser(description="Hostile inputs for everything that Python reads.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all of {', '.join(HARNESSES)}")
    parser.add_argument("--examples", type=int, default=200, help="of each harness and seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.0, help="in all; 0: each harness once")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in HARNESSES]
    if unknown:
        parser.error(f"there is no harness {unknown[0]!r}; there are {', '.join(HARNESSES)}")
    names = options.names or list(HARNESSES)
    for name in names:
        end_s = time.monotonic() + options.seconds / len(names)
        seed, done = options.seed, 0
        while True:
            try:
                harness(name)(options.examples, seed)
            except Exception:
                text = traceback.format_exc()
                print(text if len(text) < 20_000 else text[:4000] + "\n…\n" + text[-8000:], file=sys.stderr)
                print(f"fuzz: {name}: a finding with --seed {seed} --examples {options.examples}", file=sys.stderr)
                return 1
            done += options.examples
            seed += 1
            if time.monotonic() >= end_s:
                break
        print(f"fuzz: {name}: {done} examples, seeds {options.seed} to {seed - 1}, no finding", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
