# SPDX-License-Identifier: Apache-2.0
"""`fairlane setup certs`: a CA and certificates for trying TLS and mutual TLS; not a replacement for an own PKI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairlane_controller.cli.options import JsonOption
from fairlane_controller.cli.output import print_json, print_table


def certs_command(
    folder: Annotated[Path, typer.Argument(help="Folder for the files; it is made when it is not there.")],
    days: Annotated[int, typer.Option("--days", help="Valid for so many days from now.", metavar="DAYS")] = 365,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host", help="Name or address of the switches, besides localhost, 127.0.0.1 and ::1; may be repeated."
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--overwrite", help="Replace files of these names, the CA's key included.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Make a CA and certificates that it signed: for switches, for a controller, for an observer (reads only).

    docs/security.md says how switches and commands use them.
    """
    from fairlane_controller.switch.certificates import make_certificates  # takes 0.1 s to import

    made = make_certificates(folder, days=days, hosts=host or [], force=force)
    rows = [one.to_json() for one in made]
    if as_json:
        print_json(rows)
        return
    print_table("certificates", ("for", "certificate", "key", "valid until"), [tuple(row.values()) for row in rows])
