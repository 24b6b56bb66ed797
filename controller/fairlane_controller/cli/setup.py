# SPDX-License-Identifier: Apache-2.0
"""`fairlane setup doctor|install|certs`: what a machine needs before it runs switches.

`doctor` and `install` are scripts, because they must also run before anything is installed.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Annotated

import typer

from fairlane_controller.cli.conventions import App
from fairlane_controller.cli.options import JsonOption
from fairlane_controller.cli.output import print_json, print_table

TREE = Path(__file__).parents[3]
setup_app = App(help="What this machine lacks: report it, install it; test certificates.")


@setup_app.command("doctor")
def doctor_command() -> None:
    """Report what this machine lacks for fairlane, and how to mend it; exit code 1 where something is missing.

    Example: `fairlane setup doctor`
    """
    runpy.run_path(str(TREE / "setup" / "doctor.py"), run_name="__main__")


@setup_app.command("install")
def install_command() -> None:
    """Install what Mininet needs, with apt (asks sudo for root) on Debian and Ubuntu, and compile the senders for Linux (BPF).

    Virtual time, P4Runtime and PTF need none of it. It reports what it does, and skips what is there. In a clone it is `make setup`.

    Example: `fairlane setup install`
    """
    steps = ["all"] if (TREE / "Makefile").exists() else ["wheel", sys.executable]
    os.execv("/bin/bash", ["bash", str(TREE / "setup" / "setup.sh"), *steps])


@setup_app.command("certs")
def certs_command(
    folder: Annotated[Path, typer.Argument(help="Folder for the files; it is made when it is not there.")],
    days: Annotated[int, typer.Option("--days", help="Valid for so many days from now.", metavar="DAYS", min=1, max=3650)] = 365,
    host: Annotated[list[str] | None, typer.Option("--host", help="Name or address of the switches, besides localhost, 127.0.0.1 and ::1; repeatable.")] = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Make a CA and certificates that it signed: for switches, for a controller, for an observer (reads only).

    docs/security.md says how switches and commands use them; they do not replace a PKI of your own.
    """
    from fairlane_controller.switch.certificates import make_certificates  # takes 0.1 s to import

    rows = make_certificates(folder, days=days, hosts=host or [])
    if as_json:
        print_json(rows)
    else:
        print_table("certificates", ("for", "certificate", "key", "valid until"), [[*row.values()] for row in rows])
