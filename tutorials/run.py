#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`make tutorials`: the exercises of a p4lang/tutorials tree, solved, on the embedded switch, with what their READMEs say checked.

Nothing of the tree is changed: its exercises are copied to a temporary folder and compiled there (docs/tutorials-p4lang.md).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from exercises import EXERCISES
from place import COMPILER, CheckFailedError, Place, Tree

SUITES = ("basic", "basic_tunnel")
"""Exercises with PTF tests."""
GUIDE = {
    "demo1": ("demo1", "demo1.p4_16", "ptf"),
    "demo1-bitselect-key": ("demo1-bitselect-key", "demo1.p4_16", "ptf"),
    "demo2": ("demo2", "demo2.p4_16", "ptf"),
    "demo7": ("demo7", "demo7", "ptf"),
    **{
        name: (f"ptf-tests/{name}", name, ".")
        for name in ("idletimeout", "matchkinds", "packetinout", "registeraccess")
    },
}
"""PTF tests of jafingerhut/p4-guide: folder, program, folder of the tests in it."""
GUIDE_PREFIX = "p4-guide/"
MODULES = ("p4.v1.p4runtime_pb2_grpc", "p4runtime_sh.p4runtime", "grpc", "scapy.all", "ptf")
"""What the tutorials' controllers and PTF tests import."""
PTF_TIMEOUT_S = 360


class MissingError(Exception):
    """Something that the exercises need is not there; the text says what, and how to get it."""


def options(arguments: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, required=True, help="a p4lang/tutorials tree")
    parser.add_argument(
        "--python",
        default="",
        help="a Python with p4runtime-shell, scapy and ptf, for their controllers and PTF tests (default: ours)",
    )
    parser.add_argument("--guide", type=Path, help="a jafingerhut/p4-guide tree: its PTF tests are run too")
    names = [*EXERCISES, *(f"{name}-ptf" for name in SUITES)]
    guide = [f"{GUIDE_PREFIX}{name}" for name in GUIDE]
    parser.add_argument("names", nargs="*", metavar="EXERCISE", help=f"only these: {', '.join(names)}")
    chosen = parser.parse_args(arguments)
    if chosen.guide is not None:
        names += guide
    unknown = [name for name in chosen.names if name not in names]
    if unknown:
        parser.error(f"there is no exercise {unknown[0]!r}; there are {', '.join(names)}")
    chosen.names = chosen.names or names
    return chosen


def check_needs(chosen: argparse.Namespace) -> None:
    """Raise MissingError before anything is started."""
    if shutil.which(COMPILER) is None:
        raise MissingError(f"{COMPILER} is not on the PATH: docs/install.md says where p4c is to be had")
    absent = [name for name in EXERCISES if not (chosen.tree / "exercises" / name / "solution").is_dir()]
    if absent:
        raise MissingError(f"{chosen.tree} is no p4lang/tutorials tree: it has no exercises/{absent[0]}/solution")
    if chosen.guide is not None and not (chosen.guide / "testlib").is_dir():
        raise MissingError(f"{chosen.guide} is no jafingerhut/p4-guide tree: it has no testlib")
    if os.geteuid() != 0:
        raise MissingError("Mininet needs root: make tutorials asks for it")
    if any(name.startswith(GUIDE_PREFIX) for name in chosen.names) and not chosen.python:
        raise MissingError(f"p4-guide's tests need a Python with {', '.join(MODULES)}: name one as P4LANG_PYTHON")
    if chosen.python:
        command = [chosen.python, "-c", f"import {', '.join(MODULES)}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise MissingError(
                f"P4LANG_PYTHON={chosen.python}: {done.stderr.strip().splitlines()[-1]} (docs/tutorials-p4lang.md)"
            )


def run_one(name: str, tree: Tree) -> None:
    """Raises CheckFailedError."""
    exercise = name.removesuffix("-ptf")
    if name in EXERCISES:
        EXERCISES[name](tree.place(exercise))
    elif exercise in SUITES:
        run_ptf(tree.place(exercise), f"build/{exercise}.p4.p4info.txtpb", f"build/{exercise}.json", "ptf")
    else:
        folder, program, tests = GUIDE[name.removeprefix(GUIDE_PREFIX)]
        place = Place(tree, tree.folder / "p4-guide" / folder)
        files = (f"{program}.p4info.txtpb", f"{program}.json")
        place.compile(f"{program}.p4", *files)
        run_ptf(place, *files, tests, tree.folder / "p4-guide" / "testlib")


def run_ptf(place: Place, p4info: str, config: str, tests: str, library: Path = Path()) -> None:
    """Other people's PTF tests in a network namespace of their own. Raises CheckFailedError with ptf's last words."""
    command = [
        "unshare",
        "--net",
        sys.executable,
        str(Path(__file__).with_name("suite.py")),
        "--python",
        place.tree.python,
    ]
    command += ["--p4info", p4info, "--config", config, "--test-dir", tests, "--pypath", str(library)]
    log = place.log("ptf-output.log")
    with log.path.open("wb") as output:
        done = subprocess.run(
            command, cwd=place.folder, env=place.tree.environment, stdout=output, stderr=output, timeout=PTF_TIMEOUT_S
        )
    if done.returncode != 0:
        raise CheckFailedError(f"ptf: {log.tail()}")


def main(arguments: list[str]) -> int:
    """0: all exercises do what their READMEs say; 1: some do not; 2: something is missing."""
    chosen = options(arguments)
    try:
        check_needs(chosen)
    except (MissingError, OSError, subprocess.TimeoutExpired) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    failed: list[str] = []
    with tempfile.TemporaryDirectory(prefix="fairlane-tutorials-") as folder:
        os.environ["FAIRLANE_STATE_DIR"] = str(Path(folder) / "state")
        tree = Tree.copy(chosen.tree, chosen.guide, Path(folder), chosen.python)
        for name in chosen.names:
            began_s = time.monotonic()
            try:
                run_one(name, tree)
                print(f"ok      {name} ({time.monotonic() - began_s:.0f} s)", flush=True)
            except (CheckFailedError, subprocess.TimeoutExpired) as error:
                failed.append(name)
                print(f"FAILED  {name}: {error}", flush=True)
    print(
        f"{len(chosen.names) - len(failed)} of {len(chosen.names)} passed" + "".join(f"\n  {name}" for name in failed)
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
