# SPDX-License-Identifier: Apache-2.0
"""The experiment behind `make demo`: paper 000's four links side by side, drop-tail and then Qthresh with the controller's own threshold.

Each cell (link, scheme) runs at several start offsets, because Vegas may freeze on any whole number of its band and a
single run proves nothing (algorithms §1); rows hold the medians and the range.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairlane_hosts import loader

from fairlane_lab.dumbbell import SINK_PORT, Dumbbell, RunError, RunOptions, StalledError
from fairlane_lab.measures import spread
from fairlane_lab.paper import LINKS, PaperLink, paper_rows
from fairlane_lab.queue_sampler import QueueSampler, SamplerLoop
from fairlane_lab.results import metadata

EXPERIMENT = "demo"
FIRST_INSTANCE = 1
LOOP_READY_TIMEOUT_S = 60.0
BETWEEN_RUNS_S = 0.5
"""A queue of 50 packets at 512 kbit/s drains in 0.8 s; the senders reset their connections at the end."""

STALLED_RUNS_LIMIT = 2
"""How often one run is made again because this machine stood still."""

Tell = Callable[[str, float], None]
"""Told what happens now and how many seconds of the plan are done."""


@dataclass(frozen=True)
class DemoOptions:
    """What to run; the defaults are `make demo`'s."""

    links: tuple[PaperLink, ...] = LINKS
    offsets_s: tuple[float, ...] = (-0.5, 0.0, 0.5)
    """How much later Vegas starts than Reno."""
    duration_s: float = 29.0
    warmup_s: float = 11.0
    target: str = "embedded"
    seed: int = 1
    qthresh: tuple[int | None, ...] = (None,)
    """Thresholds to run; None is the controller's own."""
    drop_tail: bool = True
    variants: tuple[str, str] = ("reno", "vegas")
    """Variants of hosts/ that stand for the paper's TCP Reno and TCP Vegas."""

    def plan(self) -> list[RunOptions]:
        """Every run, in order; all links run it at the same time."""
        runs = (
            [RunOptions("drop_tail", offset, self.duration_s, self.warmup_s) for offset in self.offsets_s]
            if self.drop_tail
            else []
        )
        return runs + [
            RunOptions("qthresh", offset, self.duration_s, self.warmup_s, value)
            for value in self.qthresh
            for offset in self.offsets_s
        ]

    def seconds(self) -> float:
        """About how long the runs take."""
        return sum(_run_seconds(run) for run in self.plan())


def _run_seconds(run: RunOptions) -> float:
    return run.duration_s + abs(run.offset_s) + BETWEEN_RUNS_S + 2.0


def run(options: DemoOptions, folder: Path, tell: Tell) -> dict[str, Any]:
    """Run the experiment; cells go to `folder/cells` as they are made. Returns the summary.

    Raises RunError or RuntimeError; whatever was started is removed in any case.
    """
    about = {**metadata(), "variants": list(options.variants)}
    cells: list[dict[str, Any]] = []
    with ExitStack() as stack:
        tell("loading the TCP senders", 0.0)
        stack.enter_context(loader.acquire())
        samplers = stack.enter_context(SamplerLoop())
        dumbbells: list[Dumbbell] = []
        for number, link in enumerate(options.links):
            tell(f"starting the {link.link} dumbbell", 0.0)
            dumbbell = Dumbbell(link, FIRST_INSTANCE + number, options.target, options.seed + number, options.variants)
            stack.callback(dumbbell.stop)
            dumbbell.start()
            dumbbells.append(dumbbell)
        tell("programming the switches", 0.0)
        stack.callback(_end_loop, _start_loop(dumbbells))
        done_s = 0.0
        for order, planned in enumerate(options.plan()):
            experiment = _Run(planned, order, folder, samplers)
            cells += experiment.run(dumbbells, lambda text, seconds, base=done_s: tell(text, base + seconds))
            done_s += _run_seconds(planned)
        for dumbbell in dumbbells:
            events = dumbbell.state / "controller-events.jsonl"
            if events.exists():
                (folder / f"events-{dumbbell.link.link}.jsonl").write_bytes(events.read_bytes())
    rows = summarise(cells, {d.link.link: d.true_t_res_s() for d in dumbbells})
    return {
        "experiment": EXPERIMENT,
        "runtime": "mininet",
        "target": options.target,
        "git": about["git"],
        "seed": options.seed,
        "params": {**{k: v for k, v in asdict(options).items() if k != "links"}, "about": about},
        "rows": rows,
        "paper": [row for row in paper_rows() if row["link"] in {link.link for link in options.links}],
    }


@dataclass(frozen=True)
class _Run:
    """One planned run on all dumbbells at the same time."""

    planned: RunOptions
    order: int
    folder: Path
    samplers: SamplerLoop

    def run(self, dumbbells: Sequence[Dumbbell], tell: Tell) -> list[dict[str, Any]]:
        """The cells, also written to the run folder. A run during which this machine stood still is made again."""
        planned = self.planned
        name = "drop-tail" if planned.scheme == "drop_tail" else f"Qthresh {planned.qthresh or 'by the controller'}"
        text = f"{name}, Vegas {planned.offset_s:+.1f} s"
        stalled = 0
        while True:
            try:
                cells = self._once(dumbbells, lambda seconds, text=text: tell(text, seconds))
                break
            except StalledError as error:
                stalled += 1
                if stalled > STALLED_RUNS_LIMIT:
                    raise RunError(f"{error}; {stalled} times in a row: this machine is too busy") from None
                text = f"{name}, again: {error}"
        (self.folder / "cells").mkdir(exist_ok=True)
        for cell in cells:
            path = self.folder / "cells" / f"{self.order:02d}-{cell['link']}-{cell['scheme']}.json"
            path.write_text(json.dumps(cell, separators=(",", ":")) + "\n")
        return cells

    def _once(self, dumbbells: Sequence[Dumbbell], progress: Callable[[float], None]) -> list[dict[str, Any]]:
        planned = self.planned
        with ExitStack() as stack:
            queues: list[QueueSampler] = []
            for dumbbell in dumbbells:
                dumbbell.use_scheme(planned.scheme, planned.qthresh)
                dumbbell.begin(planned, self.folder / "raw" / f"{self.order:02d}-{dumbbell.link.link}")
                queues.append(stack.enter_context(self.samplers.sample(dumbbell.endpoint(), SINK_PORT)))
            started = time.monotonic()
            while (passed := time.monotonic() - started) < planned.duration_s + abs(planned.offset_s):
                progress(passed)
                time.sleep(0.25)
        for dumbbell in dumbbells:
            dumbbell.wait()
        time.sleep(BETWEEN_RUNS_S)
        return [{"order": self.order, **d.cell(queue)} for d, queue in zip(dumbbells, queues, strict=True)]


def _start_loop(dumbbells: Sequence[Dumbbell]) -> subprocess.Popen[bytes]:
    """Program all switches and start one control loop for all of them."""
    fairlane = str(Path(sys.executable).parent / "fairlane")
    for dumbbell in dumbbells:
        done = subprocess.run(
            [fairlane, "init", "--state", str(dumbbell.state)], capture_output=True, text=True, timeout=60
        )
        if done.returncode != 0:
            raise RunError(f"{dumbbell.link.link}: fairlane init: {(done.stderr or done.stdout).strip()}")
        dumbbell.shape()
    first = dumbbells[0].state
    ready = first / "loop.ready"
    ready.unlink(missing_ok=True)
    states = [word for dumbbell in dumbbells for word in ("--state", str(dumbbell.state))]
    log = first / "log" / "controller.log"
    with log.open("wb") as output:
        loop = subprocess.Popen(
            [fairlane, "run", *states, "--ready-file", str(ready)],
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
        )
    dumbbells[0].network.adopt(loop.pid, "fairlane run")
    deadline = time.monotonic() + LOOP_READY_TIMEOUT_S
    while not ready.exists():
        if loop.poll() is not None or time.monotonic() > deadline:
            _end_loop(loop)
            raise RunError(f"the control loop does not start: {log.read_text(errors='replace').strip()[-500:]}")
        time.sleep(0.05)
    return loop


def _end_loop(loop: subprocess.Popen[bytes]) -> None:
    loop.terminate()
    try:
        loop.wait(timeout=10)
    except subprocess.TimeoutExpired:
        loop.kill()
        loop.wait(timeout=5)


def summarise(cells: Sequence[dict[str, Any]], true_t_res_s: dict[str, float]) -> list[dict[str, Any]]:
    """One row per link and scheme (and fixed threshold, where those were run): medians over the runs, and the range of fairness."""
    groups: dict[tuple[str, str, Any], list[dict[str, Any]]] = {}
    for cell in cells:
        fixed = cell.get("fixed_qthresh")
        groups.setdefault((cell["link"], cell["scheme"], fixed), []).append(cell)
    links = {link.link: link for link in LINKS}
    rows: list[dict[str, Any]] = []
    for (name, scheme, fixed), group in sorted(
        groups.items(), key=lambda item: ([*links].index(item[0][0]), item[0][1], item[0][2] or 0)
    ):
        link = links[name]
        median_fairness, low, high = spread([cell["fairness"] for cell in group])
        qthresh = [cell["qthresh"] for cell in group if cell["qthresh"] is not None]
        rows.append(
            {
                "link": name,
                "rate_bps": link.rate_bps,
                "delay_ms": link.delay_ms,
                "scheme": scheme,
                "qthresh": round(spread(qthresh)[0]) if qthresh else None,
                "controller": scheme == "qthresh" and fixed is None,
                "reno_kbps": round(spread([c["flows"]["reno"]["goodput_bps"] for c in group])[0] / 1e3, 2),
                "vegas_kbps": round(spread([c["flows"]["vegas"]["goodput_bps"] for c in group])[0] / 1e3, 2),
                "utilisation": round(spread([cell["utilisation"] for cell in group])[0], 4),
                "fairness": round(median_fairness, 4),
                "fairness_min": round(low, 4),
                "fairness_max": round(high, 4),
                "runs": len(group),
                "measured_rate_bps": _median_measured(group, "bw_bps", 1.0, 0),
                "measured_t_res_ms": _median_measured(group, "t_res_s", 1e3, 3),
                "true_t_res_ms": round(true_t_res_s[name] * 1e3, 3),
            }
        )
    return rows


def _median_measured(group: Sequence[dict[str, Any]], key: str, scale: float, digits: int) -> float | None:
    values = [cell["measured"][key] for cell in group if cell["measured"][key] is not None]
    return round(spread(values)[0] * scale, digits) if values else None
