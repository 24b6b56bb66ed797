# SPDX-License-Identifier: Apache-2.0
"""`fairlane watch export`: a time series of snapshots into a file."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from fairlane_controller.cli.complete import complete_row_kinds
from fairlane_controller.cli.options import JsonOption, StateOption, SwitchOption
from fairlane_controller.cli.output import console, error_console, print_json
from fairlane_controller.cli.signals import make_end_event
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.cli.types import Seconds, time_option
from fairlane_controller.export import Writer, check_file, open_writers
from fairlane_controller.live.model import Snapshot
from fairlane_controller.live.pictures import need_switches
from fairlane_controller.live.source import LiveSource
from fairlane_controller.units import counted, format_time

DURATION, INTERVAL = Seconds(10), Seconds(0.5)


def export_command(
    file: Annotated[Path, typer.Argument(help="NAME.csv, NAME.parquet or NAME.jsonl.", metavar="FILE")],
    duration: Annotated[Seconds, time_option("--for", help="How long.")] = DURATION,
    interval: Annotated[Seconds, time_option("--interval", "-i", help="Between two snapshots.", at_least=0.05, at_most=3600)] = INTERVAL,
    rows: Annotated[
        list[str] | None,
        typer.Option("--rows", help="Of a CSV or Parquet file: ports, drops, or objects of the program by their plural, such as flows; repeatable.", metavar="KIND", autocompletion=complete_row_kinds),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a file that is there.")] = False,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Write what happens into a file: a row a port, object or drop reason every half second. Ctrl-C keeps what is there.

    CSV and Parquet hold the ports unless --rows says what; several kinds make a file each (NAME-ports.csv, NAME-flows.csv). A JSON
    line is a whole snapshot.

    Examples: `fairlane watch export run.csv --for 1m`, `fairlane watch export run.parquet --rows flows --interval 0.1s`, `fairlane watch export run.jsonl`
    """
    targets = resolve(state, switch)
    check_file(file)
    taken, ended_early, writers = asyncio.run(
        _export(
            targets, duration, interval, lambda first: open_writers(file, rows or ["ports"], first, overwrite=overwrite)
        )
    )
    if as_json:
        files = [{"file": str(one.path), "rows": one.rows} for one in writers]
        print_json({"snapshots": taken, "ended_early": ended_early, "files": files})
        return
    for one in writers:
        text = f"{one.path}: {counted(one.rows, 'row')} of {counted(taken, 'snapshot')}"
        console.print(text, markup=False, soft_wrap=True)


async def _export(
    targets: Targets, duration_s: float, period_s: float, open_files: Callable[[Snapshot], list[Writer]]
) -> tuple[int, bool, list[Writer]]:
    """How many snapshots were written, whether ^C ended it, and the files. The first has no rates: it says what columns there are."""
    loop, stop = asyncio.get_running_loop(), make_end_event()
    numbers = range(1, max(1, math.floor(duration_s / period_s + 1e-9)) + 1)
    columns = (
        TextColumn("export"),
        BarColumn(),
        TextColumn("{task.completed:.0f} of {task.total:.0f} snapshots"),
        TimeElapsedColumn(),
    )
    with (
        contextlib.ExitStack() as stack,
        Progress(*columns, console=error_console, transient=True, disable=not error_console.is_terminal) as progress,
    ):
        async with LiveSource(targets) as source:
            writers = open_files(need_switches(await source.snapshot()))
            for writer in writers:
                stack.callback(writer.close)
            begun_s = loop.time()
            for number in progress.track(numbers):
                with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                    await asyncio.wait_for(stop.wait(), max(0.0, begun_s + number * period_s - loop.time()))
                if stop.is_set():
                    error_console.print(f"ended after {format_time(round(loop.time() - begun_s, 1))}", markup=False)
                    return number - 1, True, writers
                snapshot = await source.snapshot()
                for writer in writers:
                    writer.add(snapshot)
    return numbers[-1], False, writers
