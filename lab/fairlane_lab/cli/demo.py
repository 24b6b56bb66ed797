# SPDX-License-Identifier: Apache-2.0
"""`fairlane lab demo`: paper 000's four links in Mininet, live; and the table of its run folders."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from fairlane_lab.cli.output import console, fail


def demo(
    target: Annotated[str, typer.Option(help="Which switch runs the program: embedded or bmv2.")] = "embedded",
    duration: Annotated[
        float, typer.Option(help="Seconds that both flows send in each run.", min=15.0, max=600.0)
    ] = 29.0,
    offsets: Annotated[
        str, typer.Option(help="Start offsets in seconds: how much later Vegas starts than Reno.")
    ] = "-0.5,0,0.5",
    qthresh: Annotated[
        str, typer.Option(help="Thresholds to run: auto (the controller's own) or packets, with commas.")
    ] = "auto",
    link: Annotated[list[str] | None, typer.Option(help="Only this link of the paper; repeat for several.")] = None,
    drop_tail: Annotated[bool, typer.Option(help="Run drop-tail first.")] = True,
    reno: Annotated[
        str, typer.Option(help="Variant that stands for TCP Reno; `fairlane hosts list` has them.")
    ] = "reno",
    vegas: Annotated[str, typer.Option(help="Variant that stands for TCP Vegas.")] = "vegas",
    seed: Annotated[int, typer.Option(help="Seed of the emulated links.")] = 1,
    results: Annotated[Path | None, typer.Option(help="Where run folders go; default results/ of this tree.")] = None,
) -> None:
    """Reno and Vegas on the paper's four links, side by side: drop-tail, then Qthresh with the controller's own threshold."""
    from fairlane_controller.errors import FairlaneError
    from fairlane_hosts.errors import HostsError

    from fairlane_lab import demo as experiment
    from fairlane_lab.paper import LINKS
    from fairlane_lab.plots import make_plots
    from fairlane_lab.results import new_folder, publish
    from fairlane_lab.run_result import RunError

    if os.geteuid() != 0:
        fail("Mininet needs root: sudo make demo")
    if target not in ("embedded", "bmv2"):
        fail(f"--target {target!r}: must be embedded or bmv2")
    names = {entry.link: entry for entry in LINKS}
    unknown = [name for name in link or [] if name not in names]
    if unknown:
        fail(f"--link {unknown[0]!r}: there is no such link; there are {', '.join(names)}")
    options = experiment.DemoOptions(
        links=tuple(names[name] for name in link) if link else LINKS,
        offsets_s=_numbers("--offsets", offsets),
        duration_s=duration,
        target=target,
        seed=seed,
        qthresh=_thresholds(qthresh),
        drop_tail=drop_tail,
        variants=(reno, vegas),
    )
    folder = new_folder(experiment.EXPERIMENT, results)
    columns = (
        TextColumn("{task.description:<44}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    try:
        with Progress(*columns, console=console) as progress:
            task = progress.add_task("starting", total=options.seconds())
            summary = experiment.run(
                options, folder, lambda text, done: progress.update(task, description=text, completed=done)
            )
            progress.update(task, description="done", completed=options.seconds())
    except (RunError, RuntimeError, FairlaneError, HostsError) as error:
        fail(f"{error} (what was measured until then is in {folder})")
    path = publish(folder, summary)
    pictures = make_plots(folder)
    console.print(comparison_table(summary))
    console.print(f"data   {path}", soft_wrap=True)
    for picture in pictures:
        console.print(f"plot   {picture}", soft_wrap=True)


def comparison_table(summary: dict[str, Any]) -> Table:
    """The rows of a summary, each above the paper's row; 80 columns wide."""
    title = f"Goodput of TCP Reno and TCP Vegas on one bottleneck, medians ({summary['runtime']}, {summary['target']})"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 0, 0, 1), show_edge=False)
    table.add_column("link, scheme", no_wrap=True)
    for name in (
        "Reno\nkbit/s",
        "Vegas\nkbit/s",
        "util.\n%",
        "fairness\n%",
        "range\n%",
        "BW\nkbit/s",
        "T_res ms\n(true)",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    paper = {(row["link"], row["scheme"]): row for row in summary["paper"]}
    link = None
    for row in summary["rows"]:
        if row["link"] != link:
            link = row["link"]
            table.add_section()
            table.add_row(f"[bold]{link}[/bold]")
        table.add_row(" " + _scheme(row), *_rates(row), *_spread(row), *_measured(row))
        theirs = paper.get((row["link"], row["scheme"]))
        if theirs:
            table.add_row(
                "   paper" + (f", {theirs['qthresh']}" if theirs["qthresh"] else ""), *_rates(theirs), style="dim"
            )
    return table


def _scheme(row: dict[str, Any]) -> str:
    if row["scheme"] == "drop_tail":
        return "drop-tail"
    return f"Qthresh {row['qthresh']}" + (" auto" if row["controller"] else "")


def _rates(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        f"{row['reno_kbps']:.1f}",
        f"{row['vegas_kbps']:.1f}",
        f"{row['utilisation'] * 100:.1f}",
        f"{row['fairness'] * 100:.1f}",
    )


def _spread(row: dict[str, Any]) -> tuple[str, ...]:
    return (f"{row['fairness_min'] * 100:.0f}..{row['fairness_max'] * 100:.0f}" if row["runs"] > 1 else "one run",)


def _measured(row: dict[str, Any]) -> tuple[str, ...]:
    rate, t_res = row["measured_rate_bps"], row["measured_t_res_ms"]
    return "-" if rate is None else f"{rate / 1e3:.1f}", (
        "-" if t_res is None else f"{t_res:.2f}"
    ) + f" ({row['true_t_res_ms']:.2f})"


def _numbers(option: str, text: str) -> tuple[float, ...]:
    try:
        values = tuple(float(word) for word in text.split(","))
    except ValueError:
        fail(f"{option} {text!r}: must be seconds with commas, such as -0.5,0,0.5")
    if any(abs(value) > 10 for value in values):
        fail(f"{option} {text!r}: each must be between -10 and 10 seconds")
    return values


def _thresholds(text: str) -> tuple[int | None, ...]:
    values: list[int | None] = []
    for word in text.split(","):
        if word == "auto":
            values.append(None)
        elif word.isdigit() and 1 <= int(word) <= 50:
            values.append(int(word))
        else:
            fail(f"--qthresh {word!r}: must be auto, or 1 to 50 packets")
    return tuple(values)
