# SPDX-License-Identifier: Apache-2.0
"""The lab's part of programs with ranks: what a PIFO would drop, shares between two readings, and runs in virtual time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.programs import find_part
from fairlane_lab.programs.ranks import Ports, pifo_drops
from fairlane_lab.runners.sim import run
from sim_scenarios import exact

PORT: tuple[str, int] = ("s1", 2)


def ranks(**values: tuple[int, int, int]) -> dict[str, Any]:
    """`r5=(arrivals, drops, inversions)`."""
    names = ("arrivals", "drops", "inversions")
    return {"rank": {rank[1:]: dict(zip(names, of_rank, strict=True)) for rank, of_rank in values.items()}}


def test_a_pifo_drops_the_largest_ranks() -> None:
    assert pifo_drops({1: 10, 2: 10, 3: 4}, 6) == {3: 4, 2: 2}
    assert pifo_drops({1: 10}, 0) == {}


def test_shares_are_of_what_came_between_two_readings() -> None:
    before: Ports = {PORT: ranks(r3=(100, 10, 5))}
    after: Ports = {PORT: ranks(r3=(150, 30, 20), r47=(50, 10, 0))}
    assert find_part("sp_pifo").derived_values(before, after) == {
        "inversion_share": 15 / 70,
        "refused_share": 0.3,
        "wrong_drops": 20 / 30,  # a PIFO drops 30 of rank 47: 20 of rank 3 were dropped wrongly
        "lowest_refused": 3.0,
        "rank_drops[0]": 0.4,
        "rank_inversions[0]": 0.5,
        "rank_drops[40]": 0.2,
        "rank_inversions[40]": 0.0,
    }
    assert find_part("aifo").derived_values(after, after) == {}


def shares(control: str, experiment: str = "ranks-udp") -> dict[str, float | None]:
    """Uniform ranks at 110 % of the line, 20 s of which 5 s do not count: 9,400 packets."""
    values = {"control": [control], **({"ranks": ["uniform"]} if experiment != "ranks-tcp" else {})}
    (one,) = expand(exact(experiment), Selection(values=values, repeats=1))
    return dict(run(replace(one, duration_s=20.0)).values)


def test_a_fifo_inverts_nearly_all_and_drops_any_rank() -> None:
    found = shares("FIFO")
    assert found["inversion_share"] == pytest.approx(0.98, abs=0.01)
    assert found["refused_share"] == pytest.approx(0.1 / 1.1, abs=0.001)
    assert found["wrong_drops"] == pytest.approx(0.9, abs=0.03)
    drops = [value for name, value in found.items() if name.startswith("rank_drops")]
    assert len(drops) == 10
    assert drops == pytest.approx([0.1 / 1.1] * 10, abs=0.04)


def test_sp_pifo_orders() -> None:
    found = shares("SP-PIFO")
    assert found["inversion_share"] == pytest.approx(0.19, abs=0.03)
    assert found["refused_share"] == pytest.approx(0.1 / 1.1, abs=0.001)
    assert found["rank_inversions[0]"] < found["rank_inversions[50]"]  # type: ignore[operator]


def test_packs_orders_and_drops_the_largest_ranks() -> None:
    found = shares("PACKS", "ranks-packs")
    assert found["inversion_share"] == pytest.approx(0.12, abs=0.03)
    assert found["refused_share"] == pytest.approx(0.1 / 1.1, abs=0.002)
    assert found["wrong_drops"] < 0.35  # type: ignore[operator]
    assert found["rank_drops[30]"] == 0.0


def test_aifo_drops_the_largest_ranks_and_does_not_order() -> None:
    found = shares("AIFO")
    assert found["inversion_share"] == pytest.approx(0.925, abs=0.02)
    assert found["refused_share"] == pytest.approx(0.1 / 1.1, abs=0.002)
    assert found["wrong_drops"] == pytest.approx(0.285, abs=0.05)
    assert found["rank_drops[30]"] == 0.0
    assert found["rank_drops[90]"] > 0.5  # type: ignore[operator]
