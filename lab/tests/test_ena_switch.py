# SPDX-License-Identifier: Apache-2.0
"""ENA in the switch in virtual time (docs/schemes.md): the same sender does at least as well as with a receiver that knows ENA, and its table is kept.

`FAIRLANE_UPDATE_SNAPSHOTS=1 pytest lab/tests/test_ena_switch.py` writes the table anew; the diff then belongs into the commit that caused it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from fairlane_lab.definition.expansion import Selection
from fairlane_lab.definition.loading import load
from fairlane_lab.run_result import SIM
from fairlane_lab.sweep.campaign import Campaign, run_campaign
from fairlane_lab.sweep.runners import local_executor

SNAPSHOT = Path(__file__).parent / "snapshots" / "ena-switch.txt"
SHORT = {"ber": (1e-5,), "file_bytes": (1_000_000,)}
METRICS = ("transfer_bps", "retransmits", "timeouts", "ena_corrupted", "ena_notified", "ena_kept", "ena_reduced")
ENA_SENDERS = ("ena-sack", "ena-reno", "ena-tahoe")

Points = dict[tuple[str, str], dict[str, float]]


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> Points:
    """{(sender, who notifies): metrics} over five short runs each."""
    pytest.importorskip("fairlane_switch.native", reason="the simulator is not built")
    folder = tmp_path_factory.mktemp("ena-switch")
    selection = Selection(repeats=5, values=SHORT)
    done = run_campaign(Campaign(load("ena-switch"), selection, folder / "run"), local_executor(SIM))
    if any("unknown field" in str(failure) for failure in done.failures):
        pytest.skip("the native module is older than its senders: make setup builds it anew")
    assert done.complete, done.failures
    rows: list[dict[str, Any]] = done.summary["points"]
    return {(row["params"]["sender"], row["params"]["control"]): row["metrics"] for row in rows}


@pytest.mark.parametrize("sender", ENA_SENDERS)
def test_the_switch_does_as_well_as_a_receiver_that_knows_ena(points: Points, sender: str) -> None:
    receiver, switch = points[sender, "receiver"], points[sender, "switch"]
    assert switch["transfer_bps"] > 0.8 * receiver["transfer_bps"]  # more: it also names what a bad IPv4 header hides
    # Who finds the corrupted segments is the one, then the other.
    assert (receiver["ena_corrupted"] > 0, switch["ena_corrupted"]) == (True, 0)
    # The receiver's ACKs name each once, and some are hit themselves; the switch marks every ACK while one is missing.
    assert 0.9 * receiver["ena_corrupted"] < receiver["ena_notified"] <= receiver["ena_corrupted"]
    assert switch["ena_notified"] > 2 * receiver["ena_notified"]


def test_ena_in_the_switch_is_worth_it(points: Points) -> None:
    assert points["ena-sack", "switch"]["transfer_bps"] > 5 * points["sack", "switch"]["transfer_bps"]


def test_a_sender_without_ena_is_not_disturbed(points: Points) -> None:
    plain, switch = points["sack", "receiver"], points["sack", "switch"]
    assert switch["transfer_bps"] == pytest.approx(plain["transfer_bps"], rel=0.05)
    assert switch["retransmits"] == pytest.approx(plain["retransmits"], rel=0.05)


def test_the_table_is_the_one_that_is_kept(points: Points) -> None:
    lines: list[str] = []
    for (sender, notifier), metrics in points.items():
        lines.append(f"{sender}, told by the {notifier}")
        lines += [f"  {name:<16}{metrics[name]:>12.0f}" for name in METRICS if name in metrics]
    text = "\n".join(lines) + "\n"
    if os.environ.get("FAIRLANE_UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(text)
    assert text == SNAPSHOT.read_text(), "see the head of this file"
