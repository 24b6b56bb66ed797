# SPDX-License-Identifier: Apache-2.0
"""`fairlane p4 compile` and `p4 test`: the P4 program of a folder, by p4c; its PTF tests, by the runner that `make ptf` has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from fairlane_controller.cli.output import say
from fairlane_controller.errors import bad_file, bad_input
from fairlane_controller.program.registry import is_folder, load_program

COMPILER = "p4c-bm2-ss"
INCLUDE = Path(__file__).parents[3] / "p4src" / "include"
"""Headers, parser, routing and packet checks that every program may include."""
TIMEOUT_S = 120


def compile_command(
    program: Annotated[str, typer.Argument(help="A program's folder, such as mine/ (docs/programs.md).")],
) -> None:
    """Compile a program: FOLDER/NAME.p4 becomes NAME.json and NAME.p4info.txtpb beside it. `#include "headers.p4"` finds p4src/include."""
    if not is_folder(program):
        problem = f"{program}: must be a folder (mine/); `make p4` compiles those of the tree"
        raise bad_input(problem)
    files = load_program(program).pipeline()
    source = files.json.with_suffix(".p4")
    if not source.is_file():
        raise bad_file(f"there is no {source}")
    options = ["--std", "p4-16", "--Wdisable=unused", "-I", str(INCLUDE), "--p4runtime-files", str(files.p4info)]
    try:
        subprocess.run([COMPILER, *options, "-o", str(files.json), str(source)], timeout=TIMEOUT_S, check=True)
    except FileNotFoundError:
        problem = f"{COMPILER} is not on the PATH: p4lang has packages and an image, see https://github.com/p4lang/p4c"
        raise bad_file(problem) from None
    except subprocess.SubprocessError as ex:
        raise bad_file(f"{source} was not compiled: {ex}") from None
    say(f"{files.json.name} and {files.p4info.name} in {source.parent}")


RUNNER = Path(__file__).parents[3] / "ptf_tests" / "run.py"


def ptf_command(
    program: Annotated[str, typer.Argument(help="A program's folder, such as mine/, or its name.")],
    tests: Annotated[
        list[str] | None, typer.Argument(help="Only these: MODULE or MODULE.CLASS; default all.", metavar="TEST...")
    ] = None,
    target: Annotated[
        Literal["embedded", "bmv2"], typer.Option("--target", help="The switch: embedded or bmv2.")
    ] = "embedded",
) -> None:
    """Test a program packet by packet: PTF runs FOLDER/ptf/*.py, and the tests that all programs share, on a switch that it starts.

    The switch and its interfaces are in a network namespace of their own. Root is not needed where users may have one.

    Example: `fairlane p4 test mine/`
    """
    os.execv(sys.executable, [sys.executable, str(RUNNER), "--target", target, "--program", program, *(tests or [])])
