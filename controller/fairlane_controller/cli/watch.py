# SPDX-License-Identifier: Apache-2.0
"""`fairlane watch`: the live view in a terminal; `watch export`: a time series of snapshots into files."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from fairlane_controller.cli.lazy import LazyCommand, lazy_app
from fairlane_controller.cli.options import JsonOption, Seconds, StateOption, SwitchOption, time_option
from fairlane_controller.cli.output import console, print_json, say
from fairlane_controller.cli.signals import make_end_event
from fairlane_controller.cli.targets import Targets, on_switches, resolve
from fairlane_controller.errors import bad_input
from fairlane_controller.export import Export
from fairlane_controller.live.events import EventTail
from fairlane_controller.live.pictures import need_switches, snapshots
from fairlane_controller.live.source import LiveSource
from fairlane_controller.live.terminal import watch
from fairlane_controller.state.events import log_of
from fairlane_controller.units import counted

PeriodOption = Annotated[
    Seconds, time_option("--interval", "-i", help="Between two snapshots.", at_least=0.1, at_most=60)
]
PERIOD = Seconds(0.5)
_ELSEWHERE = "Elsewhere than in the terminal"


COMMANDS = [
    LazyCommand("web", ".web:web_command", "The same as a live page in the browser.", _ELSEWHERE),
    LazyCommand("metrics", ".web:metrics_command", "Prometheus metrics of all of it.", _ELSEWHERE),
    LazyCommand("export", ".watch:export_command", "A time series in a file: CSV, Parquet, JSON lines.", _ELSEWHERE),
]  # fmt: skip
watch_app = lazy_app(COMMANDS, invoke_without_command=True, no_args_is_help=False)


@watch_app.callback()
def watch_command(
    ctx: typer.Context, state: StateOption = None, switch: SwitchOption = None, interval: PeriodOption = PERIOD
) -> None:
    """Watch ports, queues, objects of the program, drops and decisions live. Keys: q quit, p pause, arrows choose the port, a all ports.

    Elsewhere than in a terminal `fairlane status --watch --json` prints the same, one snapshot a line.
    """
    if ctx.invoked_subcommand is not None:
        return
    targets = resolve(state, switch)
    if not console.is_terminal:
        raise bad_input("watch draws in a terminal; elsewhere use `fairlane status --watch --json`")
    tail = EventTail(log_of(targets.run), first=300)
    asyncio.run(watch(LiveSource(targets), tail, Console(highlight=False), interval))


DURATION, INTERVAL = Seconds(10), Seconds(0.5)


@on_switches
def export_command(
    file: Annotated[Path, typer.Argument(help="NAME.csv, NAME.parquet or NAME.jsonl.", metavar="FILE")],
    duration: Annotated[Seconds, time_option("--for", help="How long.")] = DURATION,
    interval: Annotated[Seconds, time_option("--interval", "-i", help="Between two snapshots.", at_least=0.05, at_most=3600)] = INTERVAL,
    rows: Annotated[
        list[str] | None,
        typer.Option("--rows", help="Of a CSV or Parquet file: ports, drops, or objects of the program by their plural, such as flows; repeatable.", metavar="KIND"),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
    *,
    targets: Targets,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Write what happens into a file: a row a port, object or drop reason every half second. What is in the file stays after Ctrl-C.

    CSV and Parquet have the ports unless --rows names other rows; several kinds make a file each (NAME-ports.csv, NAME-flows.csv). A JSON
    line is a whole snapshot.

    Examples: `fairlane watch export run.csv --for 1m`, `fairlane watch export run.parquet --rows flows --interval 0.1s`, `fairlane watch export run.jsonl`
    """
    count = max(1, int(duration / interval + 1e-9))
    work = _export(targets, file, list(dict.fromkeys(rows or ["ports"])), overwrite, count, interval)
    taken, files = asyncio.run(work)
    if as_json:
        listed = [{"file": str(path), "rows": number} for path, number in files.items()]
        print_json({"snapshots": taken, "ended_early": taken < count, "files": listed})
        return
    for path, number in files.items():
        say(f"{path}: {counted(number, 'row')} of {counted(taken, 'snapshot')}")


async def _export(
    targets: Targets, file: Path, kinds: list[str], overwrite: bool, count: int, period_s: float
) -> tuple[int, dict[Path, int]]:
    """How many snapshots were written, less than `count` after ^C, and the rows of each file. The first snapshot has no rates: it only gives the columns."""
    async with contextlib.aclosing(snapshots(targets, period_s, make_end_event())) as source:
        first = need_switches(await anext(source))
        with Export(file, kinds, first, overwrite=overwrite) as export:
            taken = 0
            async for snapshot in source:
                export.add(snapshot)
                taken += 1
                if taken == count:
                    break
    return taken, export.rows
