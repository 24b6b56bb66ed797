# SPDX-License-Identifier: Apache-2.0
"""Measures the pipeline alone: nanoseconds that a packet takes in qthresh.p4, in gfr.p4 and in ena.p4, by the crate's own example."""

from __future__ import annotations

from typing import Any

from summary import Run
from testbed import COMPILED, run_example

NS_AIM = 250.0
GFR_AIM = 1.5
"""gfr.p4's time against that of qthresh.p4 with as many flows as VCs."""
VCS = (6, 1000)
ENA_AIM = 1.6
"""ena.p4's time for frames of 114 bytes against that of qthresh.p4 with as many flows."""
ENA_FLOWS = 1000
ENA_PATHS = {
    "plain": "forwarding only",
    "acks": "ACKs to a far side",
    "data": "data from a far side",
    "full": "the same, 1,514 bytes",
    "errors": "corrupted data made into ACKs",
    "marks": "ACKs that are marked",
}
"""What the example calls them; those with a verdict are `ENA_JUDGED`."""
ENA_JUDGED = ("plain", "acks", "data")


def parse(text: str) -> list[dict[str, Any]]:
    """Rows of the example's table, by column name; numbers as floats. Raises ValueError when there is no table."""
    lines = [line.replace("total ns", "total_ns").split() for line in text.splitlines()]
    header = next((i for i, words in enumerate(lines) if "flows" in words and "total_ns" in words), None)
    if header is None:
        raise ValueError(f"no table in what ns_per_packet printed: {text!r}")
    names = lines[header]
    return [
        {name: word if name == "path" else float(word) for name, word in zip(names, words, strict=True)}
        for words in lines[header + 1 :]
        if len(words) == len(names)
    ]


def measure(program: str, number: int | None = None) -> list[dict[str, Any]]:
    """The example's rows for a compiled program, with that many flows or VCs; None: its own choice."""
    words = [] if number is None else [str(number)]
    return parse(run_example("v1model", "ns_per_packet", COMPILED / f"{program}.json", *words))


def add_gfr(run: Run, qthresh: list[dict[str, Any]], gfr: list[dict[str, Any]]) -> None:
    """gfr.p4 with and without policing, each beside qthresh.p4's whole way with as many flows."""
    counted = {line["flows"]: line["total_ns"] for line in qthresh if line["path"] == "counted"}
    for line in gfr:
        ns, beside = line["total_ns"], counted[line["flows"]]
        where = "with policing" if line["path"] == "edge" else "without policing"
        group = f"gfr.p4 alone, a packet (aim: {GFR_AIM:g} times qthresh.p4 with as many flows)"
        run.row(group, f"{where}, {line['flows']:,.0f} VCs", ns, "ns", at_most=GFR_AIM * beside)


def add_ena(run: Run, beside: list[dict[str, Any]], ena: list[dict[str, Any]]) -> None:
    """Each way through ena.p4, those that every packet takes beside qthresh.p4's whole way with as many flows."""
    (whole,) = [line["total_ns"] for line in beside if line["path"] == "counted"]
    for path, what in ENA_PATHS.items():
        ns = next(line["total_ns"] for line in ena if line["path"] == path)
        group = f"ena.p4 alone, a packet (aim: {ENA_AIM:g} times qthresh.p4 with as many flows)"
        run.row(group, what, ns, "ns", at_most=ENA_AIM * whole if path in ENA_JUDGED else None)


def bench(run: Run) -> None:
    """All three programs."""
    table = measure("qthresh")
    for line in table:
        of = f"{line['flows']:,.0f} flow{'s' if line['flows'] > 1 else ''}"
        way = "whole way" if line["path"] == "counted" else "forwarding only"
        run.row("qthresh.p4 alone, a packet", f"{way}, {of}", line["total_ns"], "ns", at_most=NS_AIM)
    beside = [line for vcs in VCS for line in measure("qthresh", vcs)]
    gfr = [line for vcs in VCS for line in measure("gfr", vcs)]
    add_gfr(run, beside, gfr)
    ena = measure("ena", ENA_FLOWS)
    add_ena(run, measure("qthresh", ENA_FLOWS), ena)
    run.raw |= {
        "ns_per_packet": table,
        "gfr_ns_per_packet": gfr,
        "qthresh_beside_gfr": beside,
        "ena_ns_per_packet": ena,
    }
