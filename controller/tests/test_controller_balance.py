# SPDX-License-Identifier: Apache-2.0
"""Self-tuning in virtual time: against made-up flows whose shares follow the threshold, hole and all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fairlane_controller.loop.balance import Balance, BalanceOptions, Balancer, FlowCount, measure

FRAME = 1000
PERIOD_S = 0.5


class Flows:
    """A held and a free flow that share 2 Mbit/s as `ratio(threshold)` says, and their counters."""

    def __init__(self, ratio: Callable[[int], float], names: tuple[str, str] = ("held", "free")) -> None:
        self.ratio = ratio
        self.names = names
        self.counts = dict.fromkeys(names, FlowCount(0, 0, 0, 0))

    def pass_time(self, threshold: int, seconds: float) -> None:
        """Let both flows send for a while."""
        total = 250 * seconds
        ratio = self.ratio(threshold)
        for name, share, drops in ((self.names[0], ratio / (1 + ratio), 2), (self.names[1], 1 / (1 + ratio), 0)):
            old = self.counts[name]
            packets = round(total * share) + drops
            self.counts[name] = FlowCount(
                old.arrived_packets + packets,
                old.arrived_bytes + packets * FRAME,
                old.dropped_packets + drops,
                old.dropped_bytes + drops * FRAME,
            )


def run(balancer: Balancer, flows: Flows, planned: int, seconds: float, start_s: float = 0.0) -> list[int]:
    """The thresholds in force over time; a change comes into force half a second after it was asked for."""
    threshold = planned + balancer.trim_packets
    history: list[int] = []
    for step in range(int(seconds / PERIOD_S)):
        flows.pass_time(threshold, PERIOD_S)
        balancer.observe(start_s + step * PERIOD_S, flows.counts, threshold, planned)
        history.append(threshold)
        threshold = planned + balancer.trim_packets
    return history


def test_flows_that_share_well_are_left_alone() -> None:
    assert set(run(Balancer(), Flows(lambda _: 1.1), 6, 60)) == {6}


def test_a_held_flow_that_gets_more_lowers_the_threshold_until_it_does_not() -> None:
    history = run(Balancer(), Flows(lambda q: q / 4), 6, 60)
    assert history[-1] == 4
    assert history == sorted(history, reverse=True)


def test_a_held_flow_that_gets_less_raises_it() -> None:
    assert run(Balancer(), Flows(lambda q: q / 9), 6, 60)[-1] == 8  # 8/9 is within the deadband, 7/9 is not


def test_between_two_bad_values_the_better_one_stays() -> None:
    # As measured at 2 Mbit/s: at 4 the held flow loses far more than it wins at 5.
    shares = {3: 0.82, 4: 0.44, 5: 1.4, 6: 2.1}
    history = run(Balancer(), Flows(lambda q: shares.get(q, 3.0)), 6, 120)
    assert set(history[-100:]) == {5}


def test_it_never_leaves_the_bounds_of_equation_9() -> None:
    options = BalanceOptions()
    low = run(Balancer(), Flows(lambda _: 9.0), 8, 200)
    high = run(Balancer(), Flows(lambda _: 0.1), 8, 200)
    assert min(low) == 8 * options.low_factor
    assert max(high) == round(8 * options.high_factor + 0.4)


def test_a_change_counts_only_when_it_is_in_force() -> None:
    balancer, flows = Balancer(), Flows(lambda q: q / 3)
    step = 0
    while not balancer.trim_packets:
        step += 1
        assert step < 20
        flows.pass_time(6, PERIOD_S)
        balancer.observe(step * PERIOD_S, flows.counts, 6, 6)
    asked = balancer.trim_packets  # which the switch never takes
    for later in range(1, 6):
        flows.pass_time(6, PERIOD_S)
        assert not balancer.observe((step + later) * PERIOD_S, flows.counts, 6, 6)
    assert balancer.trim_packets == asked < 0


def test_other_flows_start_from_equation_9_again() -> None:
    balancer = Balancer()
    assert run(balancer, Flows(lambda q: q / 4), 6, 60)[-1] == 4
    history = run(balancer, Flows(lambda _: 1.0, ("a", "b")), 6, 20, start_s=70.0)
    assert history[-1] == 6
    assert balancer.trim_packets == 0


def test_with_too_many_flows_equation_9_alone_decides() -> None:
    balancer = Balancer(BalanceOptions(max_flows=1))
    assert set(run(balancer, Flows(lambda q: q / 4), 6, 60)) == {6}


@pytest.mark.parametrize(
    ("drops", "expected"),
    [((5, 0), Balance(8000.0, 8000.0, 1, 1)), ((0, 0), None), ((5, 5), None)],
)
def test_a_balance_needs_a_held_and_a_free_flow(drops: tuple[int, int], expected: Balance | None) -> None:
    before = {"a": FlowCount(0, 0, 0, 0), "b": FlowCount(0, 0, 0, 0)}
    after = {name: FlowCount(10 + n, (10 + n) * FRAME, n, n * FRAME) for name, n in zip(("a", "b"), drops, strict=True)}
    assert measure(before, after, 10.0) == expected


def test_a_weight_divides_a_flow_s_rate() -> None:
    before = {"a": FlowCount(0, 0, 0, 0, 2.0), "b": FlowCount(0, 0, 0, 0)}
    after = {"a": FlowCount(21, 21_000, 1, 1000, 2.0), "b": FlowCount(10, 10_000, 0, 0)}
    balance = measure(before, after, 10.0)
    assert balance is not None
    assert balance.ratio == pytest.approx(1.0)
