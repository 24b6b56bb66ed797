#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the PTF tests: for each program a network namespace of its own, interface pairs, a switch, ptf; nothing is left behind.

A namespace has no name: it ends with its process, and its interfaces with it, also after a crash.
A user who is not root gets a user namespace around it, where the system lets him.
Programs run side by side: their tests wait for packets and hardly need a processor.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from fairlane_controller.errors import FairlaneError
from fairlane_controller.program.registry import load_program
from fairlane_controller.switch.client import PipelineFiles

from interfaces import make_interfaces
from targets import GRPC, REPOSITORY, TARGETS, TargetError, TargetOptions, start

PORTS = (1, 2, 3)
MTU = 9000
SLOW_PORT = 3
SLOW_RATE_BPS = 4000  # a frame takes 0.2 s
FRAME_BYTES = 100
QUEUE_PACKETS = 60
SUITE_TIMEOUT_S = 1200  # of the tests of one program: none takes two minutes on an idle machine
TEST_TIMEOUT_S = 300  # a test starts again up to twelve times where the machine is too slow for it
ATTEMPTS = 3
"""Of a test in real time: the second and the third run only what failed before."""
SIDE_BY_SIDE = 5
INSIDE = "--inside"
OWN_ONLY = "--own-only"
CASES = REPOSITORY / "ptf_tests" / "cases"
SHARED = CASES / "shared"
"""Cases of what programs include from `p4src/include`. All programs together run them once for each way in: see `way_in`."""
EXAMPLES = REPOSITORY / "docs" / "examples"
CARRIED = REPOSITORY / "ptf_tests" / "carried" / "run_ptf"
PTF = [sys.executable, str(CARRIED if CARRIED.exists() else Path(sys.executable).with_name("ptf"))]
"""A wheel carries it: some of what its package asks for wants a compiler, and is not used here."""


@dataclass(frozen=True)
class Suite:
    """The tests of one program."""

    program: str
    """Name, or path of its folder."""
    files: PipelineFiles
    folders: tuple[Path, ...]

    @classmethod
    def from_program(cls, program: str) -> Suite:
        """Of `cases/<name>/`, or of `ptf/` in a program's own folder. Raises TargetError when there are none."""
        try:
            files = load_program(program).pipeline()
        except FairlaneError as error:
            raise TargetError(error.message) from None
        own = Path(program).resolve() / "ptf" if "/" in program else CASES / program
        if not own.is_dir():
            raise TargetError(f"no tests for the program {program}: there is no folder {own}")
        return cls(program, files, (SHARED, own))

    def own_only(self) -> Suite:
        """Without the shared cases."""
        return replace(self, folders=tuple(folder for folder in self.folders if folder != SHARED))

    def way_in(self) -> str:
        """What decides the shared cases: the parser, the deparser and where the ingress control begins, from the compiled program.

        Programs that include the same parser and the same first control differ only behind both.
        """
        compiled = json.loads(self.files.json.read_text())
        ingress = next(pipeline for pipeline in compiled["pipelines"] if pipeline["name"] == "ingress")
        parts = _without_places([compiled["parsers"], compiled["deparsers"]])
        return json.dumps([*parts, ingress["init_table"]])

    def select_tests(self, tests: list[str]) -> list[tuple[Path, list[str]]]:
        """(folder, test specs) to run; all without `tests`. A spec is a module, or a class of it: `module.Class`."""
        found: list[tuple[Path, list[str]]] = []
        for folder in self.folders:
            modules = sorted(path.stem for path in folder.glob("*.py"))
            there = [test for test in tests if test.partition(".")[0] in modules] if tests else modules
            found += [(folder, there)] if there else []
        return found


def _without_places(part: Any) -> Any:
    """A part of a compiled program without numbers and lines of source, which differ between programs."""
    if isinstance(part, dict):
        fields = cast("dict[str, Any]", part)
        return {key: _without_places(value) for key, value in fields.items() if key not in ("id", "source_info")}
    return [_without_places(each) for each in cast("list[Any]", part)] if isinstance(part, list) else part


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=sorted(TARGETS), default=os.environ.get("TARGET", "embedded"))
    parser.add_argument("--list", action="store_true", help="list the tests and end")
    parser.add_argument("--program", help="only the tests of this program (a name, or the path of a folder with ptf/)")
    parser.add_argument(OWN_ONLY, action="store_true", help="without the cases that programs share")
    parser.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("tests", nargs="*", help="test specs as ptf takes them, such as threshold.AtThreshold")
    options = parser.parse_args(argv)
    if options.target not in TARGETS:  # argparse does not check a default, here $TARGET
        parser.error(f"TARGET={options.target}: choose from {', '.join(sorted(TARGETS))}")
    return options


def suites(options: argparse.Namespace) -> list[Suite]:
    """Those to run. Raises TargetError for tests that are nowhere, or in the folders of several programs."""
    if options.program:
        found = [Suite.from_program(options.program)]
    else:
        own = [path.name for path in sorted(CASES.iterdir()) if path.is_dir() and path != SHARED]
        own += [f"{folder.parent}/" for folder in sorted(EXAMPLES.glob("*/ptf"))]
        found = [Suite.from_program(program) for program in own]
        first = {suite.way_in(): suite for suite in reversed(found)}.values()
        found = [suite if suite in first else suite.own_only() for suite in found]
    if options.own_only:
        found = [suite.own_only() for suite in found]
    for test in options.tests:
        own = [suite for suite in found if suite.select_tests([test])]
        if not own:
            names = [path.stem for suite in found for folder in suite.folders for path in sorted(folder.glob("*.py"))]
            raise TargetError(f"no test is called {test}; there are {', '.join(dict.fromkeys(names))}")
        if len(own) > 1 and not any(folder == SHARED for folder, _ in own[0].select_tests([test])):
            names = " and ".join(suite.program for suite in own)
            raise TargetError(f"{test} is a test of {names}: say which with --program")
    return [suite for suite in found if suite.select_tests(options.tests)]


def ptf_command(
    options: argparse.Namespace,
    folder: Path,
    tests: list[str],
    ptf_ends: dict[int, str],
    files: PipelineFiles,
    control: Path,
) -> list[str]:
    parameters = {
        "grpc": GRPC,
        "device_id": 1,
        "target": options.target,
        "p4info": str(files.p4info),
        "json": str(files.json),
        "control": str(control),
    }
    command = [*PTF, "--test-dir", str(folder)]
    command += ["--pypath", str(REPOSITORY / "ptf_tests")]
    command += ["--test-params", ";".join(f"{key}={value!r}" for key, value in parameters.items())]
    command += [
        "--socket-recv-size",
        str(MTU + 100),  # with the Ethernet header
        "--test-case-timeout",
        str(TEST_TIMEOUT_S),
        "--default-timeout",
        "3",
        "--random-seed",
        "1",
    ]
    for port, name in ptf_ends.items():
        command += ["-i", f"{port}@{name}"]
    return command + tests


def in_namespace() -> list[str]:
    """What a command in a network namespace of its own begins with; who has no right to one gets it with a user namespace. Raises TargetError."""
    if shutil.which("ip") is None:
        raise TargetError("there is no `ip` on the PATH, which makes the interfaces: apt-get install iproute2")
    for command in (["unshare", "--net"], ["unshare", "--user", "--map-root-user", "--net"]):
        probe = [*command, "ip", "link", "add", "type", "veth"]
        tried = subprocess.run(probe, capture_output=True, text=True, timeout=10)
        if tried.returncode == 0:
            return command
    raise TargetError(
        f"no network namespace with interfaces can be made here ({tried.stderr.strip()}): run it as root, "
        "or in a container with the capabilities NET_ADMIN and SYS_ADMIN"
    )


def run_side_by_side(options: argparse.Namespace, chosen: list[Suite]) -> int:
    """Each suite in a process and a namespace of its own; its output comes whole when it ended. The exit code."""

    def run(suite: Suite) -> subprocess.CompletedProcess[str]:
        command = [*in_namespace(), sys.executable, str(Path(__file__).resolve()), INSIDE]
        command += ["--target", options.target, "--program", suite.program]
        command += [] if SHARED in suite.folders else [OWN_ONLY]
        # It ends by its own limits, and says what it waited for.
        return subprocess.run(
            [*command, *options.tests], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )

    code = 0
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        for suite, done in zip(chosen, pool.map(run, chosen), strict=True):
            print(f"{suite.program}:\n{done.stdout}", flush=True)
            code = done.returncode or code
    return code


def run_inside(options: argparse.Namespace) -> int:
    switch_ends, ptf_ends = make_interfaces(PORTS, MTU)
    (suite,) = suites(options)
    return run_suite(options, suite, switch_ends, ptf_ends)


def run_ptf(command: list[str], folder: str) -> tuple[int, list[str]]:
    """Runs ptf and prints what it says as it comes; its exit code and the specs of the tests that failed.

    Raises subprocess.TimeoutExpired.
    """
    failed: list[str] = []
    ptf = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    limit = threading.Timer(SUITE_TIMEOUT_S, ptf.kill)
    limit.start()
    with ptf:
        for line in ptf.stdout or ():
            print(line, end="", flush=True)
            if found := re.match(r"(?:FAIL|ERROR): (\w+\.\w+)$", line):
                failed.append(found[1])
    if not limit.is_alive():
        raise subprocess.TimeoutExpired(command, SUITE_TIMEOUT_S)
    limit.cancel()
    return ptf.returncode, failed


def run_suite(options: argparse.Namespace, suite: Suite, switch_ends: dict[int, str], ptf_ends: dict[int, str]) -> int:
    """Starts a switch for the program, runs the tests, stops it; the exit code."""
    with tempfile.TemporaryDirectory(prefix="fairlane-ptf-") as folder:
        target_options = TargetOptions(
            interfaces=switch_ends,
            slow_port=SLOW_PORT,
            slow_rate_bps=SLOW_RATE_BPS,
            frame_bytes=FRAME_BYTES,
            queue_packets=QUEUE_PACKETS,
            log=Path(folder) / "switch.log",
            control=Path(folder) / "control",
        )
        target = start(options.target, target_options)
        try:
            code = 0
            for cases, tests in suite.select_tests(options.tests):
                failed = 0
                for attempt in range(ATTEMPTS):
                    command = ptf_command(options, cases, tests, ptf_ends, suite.files, target_options.control)
                    failed, again = run_ptf(command, folder)
                    if not again or target.has_ended or attempt == ATTEMPTS - 1:
                        break
                    tests = again
                    print(f"{cases.name}: once more, a test in real time fails where the machine stands still:", *tests)
                code = failed or code
            if how := target.death():
                print(f"the switch {how} during the tests", file=sys.stderr)
                code = 1
            if code != 0:
                last = "\n".join(target.words.splitlines()[-20:])
                print(f"last lines of {target.what}:\n{last}", file=sys.stderr)
            return code
        except subprocess.TimeoutExpired:
            print(f"the tests of {suite.program} did not end in {SUITE_TIMEOUT_S} s", file=sys.stderr)
            return 1
        finally:
            target.stop()


def main(argv: list[str]) -> int:
    options = parse(argv)
    if options.list:
        folders = dict.fromkeys(folder for suite in suites(options) for folder in suite.folders)
        for folder in folders:
            command = [*PTF, "--test-dir", str(folder), "--pypath", str(CASES.parent), "--list", "--allow-user"]
            subprocess.run(command, timeout=60, check=True)
        return 0
    try:
        if options.inside:
            return run_inside(options)
        chosen = suites(options)
        if len(chosen) > 1:
            return run_side_by_side(options, chosen)
        command = [*in_namespace(), sys.executable, str(Path(__file__).resolve()), INSIDE]
        command += argv if options.program else ["--program", chosen[0].program, *argv]
        os.execvp(command[0], command)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
