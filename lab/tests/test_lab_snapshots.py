# SPDX-License-Identifier: Apache-2.0
"""Small tables of the main experiments as they come out of the simulator, kept as text: a change of behaviour shows as a readable diff.

`FAIRLANE_UPDATE_SNAPSHOTS=1 pytest lab/tests/test_lab_snapshots.py` writes them anew; the diff then belongs into the commit that caused it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fairlane_lab.definition.expansion import Selection
from fairlane_lab.definition.loading import load
from fairlane_lab.run_result import SIM
from fairlane_lab.sweep.campaign import Campaign, run_campaign
from fairlane_lab.sweep.runners import local_executor

SNAPSHOTS = Path(__file__).parent / "snapshots"
SHORT: dict[str, Sequence[Any]] = {"duration_s": (20,), "warmup_s": (8,)}
GFR: dict[str, Sequence[Any]] = {"duration_s": (9,), "warmup_s": (3,)}
TABLES: dict[str, dict[str, Sequence[Any]]] = {
    "qthresh-table1": SHORT,
    "qthresh-table2": {**SHORT, "threshold": (1, 4, 6, 20)},
    "qthresh-fig3": {**SHORT, "window_packets": (3, 6, 30)},
    "qthresh-fig9": SHORT,
    "qthresh-selftuning": {**SHORT, "case": ("2M-2ms",)},
    "qthresh-weights": {**SHORT, "case": ("reno-vegas-newreno",), "control": ("drop-tail", "fixed")},
    "qthresh-short-flows": SHORT,
    "tcp-truth": SHORT,
    "senders-truth": {**SHORT, "variant": ("cubic", "bbr")},
    "senders-shares": {**SHORT, "case": ("cubic-kernel", "cubic-bbr")},
    "gfr-table2": {**GFR, "control": ("Double-EPD", "DFBA", "proposed+ FIFO", "proposed+ WRR")},
    "ena-fig10": {"file_bytes": (316_000,)},
    "bcr-fig4": {"loss": (0.001,), "sender": ("newreno", "erto", "bcr")},
    "fasttcp-fig3": {"file_bytes": (5120, 10_240), "sender": ("org", "nss", "mrto")},
    "police-greedy": {**SHORT, "sender": ("org", "nss-32KB"), "control": ("drop-tail", "auto")},
    "video": {"duration_s": (60,), "warmup_s": (20,), "flows_2": (3,), "control": ("drop-tail", "Qthresh")},
    "gfr-table6": {**GFR, "control": ("WFBA", "threshold WRR", "proposed+ WRR")},
}
SENDERS = ("ena-fig10", "bcr-fig4", "fasttcp-fig3", "police-greedy")
METRICS = (
    "utilisation",
    "fairness",
    "jain",
    "retransmits",
    "timeouts",
    "drops",
    "queue_packets",
    "qthresh_packets",
    "goodput_share",
    "least_ratio",
    "mcr_met",
    "mcr_met_5s",
)
OF_SENDERS = (
    "transfer_bps",
    "ceiling_bps",
    "transfer_s",
    "packets_sent",
    "relative_time",
    "relative_packets",
    "window_reductions",
    "ena_kept",
    "after_spike_bytes",
    "after_spike_drops",
    "after_spike_retransmits",
    "recovery_s",
)


@pytest.mark.parametrize("name", TABLES)
def test_the_table_is_the_one_that_is_kept(name: str, tmp_path: Path) -> None:
    pytest.importorskip("fairlane_switch.native", reason="the simulator is not built")
    selection = Selection(repeats=1, values=TABLES[name])
    done = run_campaign(Campaign(load(name), selection, tmp_path / "run"), local_executor(SIM))
    assert done.complete, done.failures
    text = table(done.summary["points"], of_senders=name in SENDERS)
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("FAIRLANE_UPDATE_SNAPSHOTS"):
        path.write_text(text)
    assert text == path.read_text(), "see the head of this file"


def table(points: Sequence[dict[str, Any]], of_senders: bool = False) -> str:
    """One line a metric and point; rates in whole bit/s, the rest to six digits."""
    lines: list[str] = []
    named = (*METRICS, *OF_SENDERS) if of_senders else METRICS
    groups = (
        "goodput",
        "cwnd",
        "completion",
        "played",
        "stalled",
        "rate_switches",
        "vc_ratio[",
        *(("fair_share_ratio[",) if of_senders else ()),
    )
    for point in points:
        lines.append(point["point"])
        metrics: dict[str, float] = point["metrics"]
        own = [key for key in metrics if "[" in key and key.startswith(groups)]
        for key in (*named, *sorted(key for key in own if not key.endswith(("_lo", "_hi")))):
            if key in metrics:
                value = metrics[key]
                lines.append(f"  {key:<28}{value:>14.0f}" if "bps" in key else f"  {key:<28}{value:>14.6g}")
    return "\n".join(lines) + "\n"
