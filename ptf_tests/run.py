#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the PTF tests: a network namespace of its own, interface pairs, a switch, ptf; nothing is left behind.

The namespace has no name: it ends with this process, and its interfaces with it, also after a crash.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from interfaces import make_interfaces
from targets import REPOSITORY, TARGETS, TargetError, TargetOptions

PORTS = (1, 2, 3)
MTU = 9000
SLOW_PORT = 3
SLOW_RATE_BPS = 4000  # 100-byte frame: 0.2 s
SLOW_RATE_PPS = 5
QUEUE_PACKETS = 60
SUITE_TIMEOUT_S = 300  # of the tests of one program
TEST_TIMEOUT_S = 30
INSIDE = "--inside"
CASES = REPOSITORY / "ptf_tests" / "cases"
DEFAULT_PROGRAM = "qthresh"
PROGRAMS = {"gfr_": "gfr", "ena_": "ena"}
"""The program that cases/<prefix>*.py test; the others test DEFAULT_PROGRAM."""
SHARED = ("bad_packets", "forwarding", "packet_io")
"""Cases of what all programs include: they run on each."""


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=sorted(TARGETS), default=os.environ.get("TARGET", "embedded"))
    parser.add_argument("--list", action="store_true", help="list the tests and end")
    parser.add_argument("--program", help="only the tests of this program; with tests named: run them on this program")
    parser.add_argument(INSIDE, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("tests", nargs="*", help="test specs as ptf takes them, such as threshold.AtThreshold")
    options = parser.parse_args(argv)
    if options.target not in TARGETS:  # argparse does not check a default, here $TARGET
        parser.error(f"TARGET={options.target}: choose from {', '.join(sorted(TARGETS))}")
    return options


def program_of(test: str) -> str:
    """The program that a test spec (module, module.Class) belongs to."""
    return next((name for prefix, name in PROGRAMS.items() if test.startswith(prefix)), DEFAULT_PROGRAM)


def tests_by_program(options: argparse.Namespace) -> dict[str, list[str]]:
    """{program: test specs}, each program's tests run on a switch of their own."""
    if options.program and options.tests:
        return {options.program: options.tests}
    groups: dict[str, list[str]] = {}
    for test in options.tests or sorted(path.stem for path in CASES.glob("*.py")):
        groups.setdefault(program_of(test), []).append(test)
        if test in SHARED and not options.tests:
            for program in PROGRAMS.values():
                groups.setdefault(program, []).append(test)
    if options.program:
        if options.program not in groups:
            raise TargetError(f"no tests for the program {options.program}; there are some for {', '.join(groups)}")
        return {options.program: groups[options.program]}
    return groups


def ptf_command(
    options: argparse.Namespace, tests: list[str], ptf_ends: dict[int, str], grpc: str, files: TargetOptions
) -> list[str]:
    parameters = {
        "grpc": grpc,
        "device_id": files.device_id,
        "target": options.target,
        "p4info": str(files.p4info),
        "json": str(files.json),
        "control": str(files.control),
    }
    command = [str(Path(sys.executable).with_name("ptf")), "--test-dir", str(CASES)]
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


def run_inside(options: argparse.Namespace) -> int:
    switch_ends, ptf_ends = make_interfaces(PORTS, MTU)
    code = 0
    for program, tests in tests_by_program(options).items():
        code = run_program(options, program, tests, switch_ends, ptf_ends) or code
    return code


def run_program(
    options: argparse.Namespace, program: str, tests: list[str], switch_ends: dict[int, str], ptf_ends: dict[int, str]
) -> int:
    """Starts a switch for the program, runs the tests, stops it; the exit code."""
    compiled = REPOSITORY / "p4src" / "compiled"
    with tempfile.TemporaryDirectory(prefix="fairlane-ptf-") as folder:
        target_options = TargetOptions(
            interfaces=switch_ends,
            slow_port=SLOW_PORT,
            slow_rate_bps=SLOW_RATE_BPS,
            slow_rate_pps=SLOW_RATE_PPS,
            queue_packets=QUEUE_PACKETS,
            json=compiled / f"{program}.json",
            p4info=compiled / f"{program}.p4info.txtpb",
            log=Path(folder) / "switch.log",
            control=Path(folder) / "control",
        )
        target = TARGETS[options.target](target_options)
        try:
            command = ptf_command(options, tests, ptf_ends, target.grpc, target_options)
            code = subprocess.run(command, cwd=folder, timeout=SUITE_TIMEOUT_S).returncode
            if target.process.poll() is not None:
                print(f"the switch ended during the tests with code {target.process.returncode}", file=sys.stderr)
                code = 1
            if code != 0:
                print(f"last lines of {target.name}:\n{target.tail()}", file=sys.stderr)
            return code
        except subprocess.TimeoutExpired:
            print(f"the tests of {program} did not end in {SUITE_TIMEOUT_S} s", file=sys.stderr)
            return 1
        finally:
            target.stop()


def main(argv: list[str]) -> int:
    options = parse(argv)
    if options.list:
        command = [str(Path(sys.executable).with_name("ptf")), "--test-dir", str(CASES)]
        return subprocess.run(
            [*command, "--pypath", str(CASES.parent), "--list", "--allow-user"], timeout=60
        ).returncode
    if os.geteuid() != 0:
        print("the PTF tests make network interfaces: run them as root (make ptf does)", file=sys.stderr)
        return 2
    if not options.inside:
        os.execvp("unshare", ["unshare", "--net", sys.executable, str(Path(__file__).resolve()), INSIDE, *argv])
    try:
        return run_inside(options)
    except TargetError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
