# SPDX-License-Identifier: Apache-2.0
"""`fairlane hosts check`: the machine, then each variant on its kernel, and what is used instead of one that it cannot run."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated, Any

import typer
from fairlane_controller.cli.complete import complete_names
from rich.console import Console
from rich.table import Table

from .. import loader
from ..errors import HostsError
from ..variants import VARIANTS, Variant, find_variant
from .results import Result
from .run import check_variants

_out, _err = Console(), Console(stderr=True)
complete_variant = complete_names(lambda _: {variant.name: variant.paper for variant in VARIANTS.values()})


def _print(machine: list[loader.Check], variants: list[Result]) -> None:
    for item in machine:
        mend = "" if item.ok else f": {item.hint}"
        line = f"{'ok  ' if item.ok else 'FAIL'} {item.what}: {item.found}{mend}"
        _out.print(line, markup=False, highlight=False, soft_wrap=True)
    if not variants:
        return
    table = Table("variant", "on this kernel", "seen", "instead", title="TCP variants on the running kernel")
    for result in variants:
        instead = "" if result.ok else result.instead or "none"
        table.add_row(result.variant, result.status, result.found, instead)
    _out.print(table)
    failed = [result for result in variants if result.status == "cannot"]
    if failed:
        names = ", ".join(result.variant for result in failed)
        _out.print(
            f"`fairlane hosts use` refuses {names}; --instead NAME uses another one, and says so.",
            markup=False,
            highlight=False,
        )


def _check_all(wanted: list[Variant]) -> tuple[list[loader.Check], list[Result]]:
    machine = loader.check()
    if not all(item.ok for item in machine):
        return machine, []
    with _err.status("") as status:

        def progress(variant: Variant, number: int) -> None:
            status.update(f"trying {variant.name} ({number + 1} of {len(wanted)})")

        try:
            results = check_variants(wanted, progress)
        except HostsError as error:
            return [*machine, loader.Check("loading", False, error.message, error.hint)], []
    return [*machine, loader.Check("loading", True, f"{len(loader.programs())} congestion controls")], results


def check_command(
    variants: Annotated[
        list[str] | None, typer.Argument(help="Variants to try; all when left out.", autocompletion=complete_variant)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Whether this machine can run the variants: tries each on the running kernel in throw-away namespaces.

    Exit code 1 when something is missing or a variant does not do what defines it; what to use instead is said, and
    nothing is used instead by itself.
    """
    try:
        wanted = [find_variant(name) for name in variants] if variants else list(VARIANTS.values())
    except HostsError as error:
        _err.print(f"fairlane hosts: {error}", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(2) from error
    machine, found = _check_all(wanted)
    if as_json:
        document: dict[str, Any] = {
            "machine": [dataclasses.asdict(item) for item in machine],
            "variants": [dataclasses.asdict(result) for result in found],
        }
        print(json.dumps(document, indent=1))
    else:
        _print(machine, found)
    if not all(item.ok for item in machine) or any(result.status == "cannot" for result in found):
        raise typer.Exit(1)
