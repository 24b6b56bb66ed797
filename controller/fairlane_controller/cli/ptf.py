# SPDX-License-Identifier: Apache-2.0
"""`fairlane p4 test`: the PTF tests of a program, by the runner that `make ptf` has."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

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
