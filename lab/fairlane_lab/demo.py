# SPDX-License-Identifier: Apache-2.0
"""The experiment behind `make demo`: paper 000's four links side by side, drop-tail and then Qthresh with the controller's own threshold.

    h1 (Reno)  ─10M,1ms─┐                      10M,1ms
                        s1 ═══ rate, τ ═══ s2 ───────── h3 (discard)
    h2 (Vegas) ─10M,1ms─┘  ▲
                           queue of 50 packets, the rule

Each cell (link, scheme) runs at several start offsets, because Vegas may freeze on any whole number of its band and a
single run proves nothing (algorithms §1); rows hold the medians and the range.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairlane_hosts.variants import find_variant

from fairlane_lab.measures import fairness, spread, true_t_res_s
from fairlane_lab.paper import LINKS, PaperLink, paper_rows
from fairlane_lab.paths import REPOSITORY
from fairlane_lab.results import metadata
from fairlane_lab.run_result import RunError, RunResult
from fairlane_lab.scenario import Control, Flow, Scenario, TcpOptions

EXPERIMENT = "demo"
FIRST_INSTANCE = 1
SECONDS_BETWEEN_RUNS = 2.5
"""About what a run takes beside its own time: the senders start, the queues drain."""
SAMPLE_S = 0.05

MSS_BYTES = 960
"""The paper's packets have 1000 bytes at the IP layer."""
FRAME_BYTES = MSS_BYTES + 54
ACK_FRAME_BYTES = 54
ACCESS_RATE_BPS = 10_000_000
ACCESS_DELAY_S = 0.001
SENDERS = {"reno": "h1", "vegas": "h2"}
RECEIVER = "h3"

Tell = Callable[[str, float], None]
"""Told what happens now and how many seconds of the plan are done."""


@dataclass(frozen=True)
class RunOptions:
    """One measured run of both flows."""

    scheme: str
    """`drop_tail` or `qthresh`."""
    offset_s: float
    """How much later Vegas starts than Reno; negative when Vegas is first."""
    duration_s: float
    """How long both flows send together."""
    warmup_s: float
    """What of that is not counted."""
    qthresh: int | None = None
    """A fixed threshold in packets; None lets the controller choose."""

    def scenario(self, link: PaperLink, variants: tuple[str, str], seed: int) -> Scenario:
        """The run on one of the paper's links."""
        starts = {"reno": max(0.0, -self.offset_s), "vegas": max(0.0, self.offset_s)}
        chosen = dict(zip(SENDERS, variants, strict=True))
        flows = [Flow(n, n, SENDERS[n], RECEIVER, variant=chosen[n], start_s=starts[n]) for n in SENDERS]
        name = "drop-tail" if self.scheme == "drop_tail" else f"Qthresh {self.qthresh or 'by the controller'}"
        scheme = "drop_tail" if self.scheme == "drop_tail" else "qthresh"
        return Scenario(
            experiment=EXPERIMENT,
            point=f"{name}, Vegas {self.offset_s:+.1f} s",
            params={"link": link.link},
            topology=topology_of(link),
            flows=tuple(flows),
            duration_s=self.duration_s + abs(self.offset_s),
            warmup_s=self.warmup_s + abs(self.offset_s),
            tcp=TcpOptions(mss_bytes=MSS_BYTES),
            control=Control(scheme, "auto" if self.qthresh is None else self.qthresh, measure=True),
            seed=seed,
            sample_s=SAMPLE_S,
            series=True,
        )


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
        return sum(run.duration_s + abs(run.offset_s) + SECONDS_BETWEEN_RUNS for run in self.plan())


def topology_of(link: PaperLink) -> dict[str, Any]:
    """The dumbbell of `mininet/topologies/` with the bottleneck of `link`."""
    document = json.loads((REPOSITORY / "mininet" / "topologies" / "dumbbell.json").read_text())
    for entry in document["links"]:
        if (entry["a"], entry["b"]) == ("s1-p3", "s2-p1"):
            entry.update(bandwidth=link.rate_bps, delay=round(link.delay_ms * 1000))
    return document


def link_t_res_s(link: PaperLink) -> float:
    """The true T_res of a link's dumbbell, from what is configured."""
    return true_t_res_s(
        link.rate_bps, link.delay_ms / 1e3, FRAME_BYTES, ACK_FRAME_BYTES, ACCESS_RATE_BPS, ACCESS_DELAY_S
    )


def run(options: DemoOptions, folder: Path, tell: Tell) -> dict[str, Any]:
    """Run the experiment; cells go to `folder/cells` as they are made. Returns the summary.

    Raises RunError or RuntimeError; whatever was started is removed in any case.
    """
    from fairlane_lab.runners.mininet import MininetOptions, run_many  # Mininet is there on Linux only

    about = {**metadata(), "variants": list(options.variants)}
    keeper = _Cells(folder)
    scenarios: list[Scenario] = []
    for order, planned in enumerate(options.plan()):
        for link in options.links:
            scenarios.append(planned.scenario(link, options.variants, options.seed))
            keeper.planned[id(scenarios[-1])] = (order, link, planned)
    points = {scenario.point for scenario in scenarios}
    started_s: list[float] = []

    def say(text: str, seconds: float) -> None:
        if text in points and not started_s:
            started_s.append(seconds)
        tell(text, seconds - started_s[0] if started_s else 0.0)

    how = MininetOptions(options.target, len(options.links), FIRST_INSTANCE, raw=folder / "raw")
    run_many(scenarios, how, keeper.on_result, say)
    keeper.write_events()
    rows = summarise(keeper.cells, {link.link: link_t_res_s(link) for link in options.links})
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


class _Cells:
    """Turns results into cells, the demo's own records, and writes them as they come."""

    def __init__(self, folder: Path) -> None:
        self.planned: dict[int, tuple[int, PaperLink, RunOptions]] = {}
        """By the scenario's identity: its place in the plan, its link, what was asked for."""
        self.cells: list[dict[str, Any]] = []
        self._folder = folder
        self._events: dict[str, list[dict[str, Any]]] = {}
        (folder / "cells").mkdir(parents=True, exist_ok=True)

    def on_result(self, scenario: Scenario, result: RunResult | RunError) -> None:
        """Keep one. Raises the RunError of a run that failed: the table would have a hole."""
        order, link, planned = self.planned[id(scenario)]
        if isinstance(result, RunError):
            raise RunError(f"{link.link}: {result}")
        made = {"order": order, **cell(link, planned, result)}
        self.cells.append(made)
        self._events.setdefault(link.link, []).extend({"run": order, **event} for event in result.events)
        path = self._folder / "cells" / f"{order:02d}-{link.link}-{planned.scheme}.json"
        path.write_text(json.dumps(made, separators=(",", ":")) + "\n")

    def write_events(self) -> None:
        """The controller's events of each link, one a line."""
        for link, events in self._events.items():
            lines = "".join(json.dumps(event) + "\n" for event in events)
            (self._folder / f"events-{link}.jsonl").write_text(lines)


def cell(link: PaperLink, planned: RunOptions, result: RunResult) -> dict[str, Any]:
    """What one run on one link gave: goodputs in the common window, series, what the controller measured."""
    (port,) = result.ports
    goodputs = {flow.flow: flow.goodput_bps for flow in result.flows}
    flows: dict[str, Any] = {}
    for flow in result.flows:
        series = {
            metric: [
                (point.t_s, digits(point.value)) for point in result.series if (point.flow, point.metric) == wanted
            ]
            for metric, wanted, digits in (
                ("goodput", (flow.flow, "goodput_bps"), round),
                ("cwnd", (flow.flow, "cwnd_packets"), int),
                ("queue", (flow.flow, "queue_packets"), int),
            )
        }
        cc = find_variant(flow.variant).congestion_control
        flows[flow.flow] = {"goodput_bps": flow.goodput_bps, "retransmits": flow.retransmits, "cc": cc, **series}
    in_force = [point.value for point in result.series if (point.flow, point.metric) == ("", "qthresh_packets")]
    return {
        "link": link.link,
        **asdict(planned),
        "fixed_qthresh": planned.qthresh,
        "qthresh": in_force[-1] if in_force else None,
        "utilisation": sum(goodputs.values()) * FRAME_BYTES / MSS_BYTES / link.rate_bps,
        "fairness": fairness(list(goodputs.values())),
        "measured": {
            "bw_bps": port.bw_bps,
            "t_res_s": None if port.t_res_ms is None else port.t_res_ms / 1e3,
            "l_d_bytes": port.l_d_bytes,
            "n_c": port.n_c,
        },
        "flows": flows,
    }


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
