# SPDX-License-Identifier: Apache-2.0
"""From a change of the network to a measurement that has settled: worked out by hand."""

from __future__ import annotations

import pytest
from fairlane_controller.programs.qthresh.lab.reactions import reaction_s


def samples(*values: float) -> list[tuple[float, float]]:
    """One a second, from 1 s on."""
    return [(float(t), value) for t, value in enumerate(values, start=1)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (samples(5, 5, 5, 4, 1, 1, 1, 1, 1, 1), 2.0),  # the change is at 3 s; at 5 s it is seen
        (samples(5, 5, 5, 1, 1, 1, 1, 1, 1, 1), 1.0),
        (samples(5, 5, 5, 5.2, 5.3, 5.3, 5.3, 5.3, 5.3, 5.3), None),  # less than a tenth
        (samples(), None),
        (samples(5, 5, 5), None),  # nothing after it
    ],
)
def test_the_reaction_to_one_change(values: list[tuple[float, float]], expected: float | None) -> None:
    assert reaction_s(values, [3.0], 10.0) == expected


def test_the_slowest_of_several_changes_counts() -> None:
    values = samples(5, 5, 1, 1, 1, 1, 3, 4, 5, 5, 5, 5)
    assert reaction_s(values, [2.0, 6.0], 12.0) == 3.0
