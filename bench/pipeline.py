# SPDX-License-Identifier: Apache-2.0
"""Measures the pipeline alone: nanoseconds that a packet takes in qthresh.p4, by the crate's own example."""

from __future__ import annotations

import os
import subprocess
from typing import Any

from testbed import ROOT

NS_AIM = 250.0


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


def bench() -> dict[str, Any]:
    """Rows and raw numbers, in the form that `bench/forwarding.py` describes."""
    command = ["cargo", "run", "--release", "--quiet", "--package", "v1model", "--example", "ns_per_packet"]
    done = subprocess.run(command, cwd=ROOT / "switch", env=os.environ, capture_output=True, text=True, timeout=1800)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    table = parse(done.stdout)
    rows: list[dict[str, Any]] = []
    for line in table:
        ns = line["total_ns"]
        of = f"{line['flows']:.0f} flow{'s' if line['flows'] > 1 else ''}"
        way = "whole way" if line["path"] == "counted" else "forwarding only"
        ok = ns <= NS_AIM
        rows.append(
            {
                "name": f"pipeline alone, {way}, {of}",
                "value": ns,
                "unit": "ns a packet",
                "aim": f"<= {NS_AIM:.0f}",
                "ok": ok,
            }
        )
    return {"rows": rows, "raw": {"ns_per_packet": table}}
