# SPDX-License-Identifier: Apache-2.0
"""The metrics of a run with VCs, and the rows of `vcs.parquet`. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlane_lab.run_result import VcResult

from fairlane_controller.programs.gfr.model import jain_index


def vc_metrics(vcs: Sequence[VcResult]) -> dict[str, Any]:
    """What VCs add to the metrics of a run, or replace: `jain` and `fairness` over goodput per ideal goodput, (4) of the GFR paper."""
    if not vcs:
        return {}
    ratios = [vc.ratio for vc in vcs]
    ideal = sum(vc.ideal_bps * vc.active_s for vc in vcs)
    worst = [vc.mcr_met_5s for vc in vcs if vc.mcr_met_5s is not None]
    metrics: dict[str, Any] = {
        "jain": jain_index([vc.goodput_bps for vc in vcs], [vc.ideal_bps for vc in vcs]) if len(vcs) > 1 else None,
        "fairness": min(ratios) / max(ratios) if len(vcs) > 1 and max(ratios) > 0 else None,
        "goodput_share": sum(vc.goodput_bps * vc.active_s for vc in vcs) / ideal if ideal > 0 else None,
        "least_ratio": min(ratios),
        "mcr_met": min(vc.mcr_met for vc in vcs),
        "mcr_met_5s": min(worst, default=None),
    }
    for vc in vcs:
        metrics |= {
            f"vc_goodput_bps[{vc.vc}]": vc.goodput_bps,
            f"vc_ratio[{vc.vc}]": vc.ratio,
            f"mcr_met[{vc.vc}]": vc.mcr_met,
        }
        if vc.mcr_met_5s is not None:
            metrics[f"mcr_met_5s[{vc.vc}]"] = vc.mcr_met_5s
    return metrics


def vc_row(vc: VcResult) -> dict[str, Any]:
    """A row of `vcs.parquet`, without the key and the parameters."""
    return {
        "vc": vc.vc,
        "mcr_bps": vc.mcr_bps,
        "w_bps": vc.w_bps,
        "ideal_bps": vc.ideal_bps,
        "goodput_bps": vc.goodput_bps,
        "ratio": vc.ratio,
        "mcr_met": vc.mcr_met,
        "mcr_met_5s": vc.mcr_met_5s,
        "active_s": vc.active_s,
        **{f"drops_{verdict}": count for verdict, count in vc.drops.items()},
    }
