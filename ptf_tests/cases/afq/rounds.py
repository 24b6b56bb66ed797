# SPDX-License-Identifier: GPL-2.0-or-later
"""AFQ's rounds: which packets wait, in which order they leave, and which are refused, beside a model. The slow port has 8 queues."""

from __future__ import annotations

from typing import Any, ClassVar

from afq_oracle import Afq
from aqm_base import FRAME_BYTES, REASON_AQM, AqmTest
from base import SLOW_PORT
from packets import FiveTuple, flow, flow6

QUEUES, ROUND_SHIFT = 8, 8
"""A round has 256 bytes: two frames of a flow and a half."""


class AfqTest(AqmTest):
    """A managed slow port under the calendar."""

    REFUSALS: ClassVar[tuple[int, ...]] = (REASON_AQM,)
    WAITING_REGISTER = ""

    def setUp(self) -> None:
        super().setUp()
        self.needs_embedded("BMv2 has no calendar")
        self.ask({"op": "set_port", "port": SLOW_PORT, "scheduler": "calendar"})
        self.insert("afq_port", {"egress_port": SLOW_PORT}, "set_afq", round_shift=ROUND_SHIFT, queues_count=QUEUES)
        self.model = Afq(1 << ROUND_SHIFT, QUEUES)

    def tearDown(self) -> None:
        if self.is_embedded:
            self.ask({"op": "set_port", "port": SLOW_PORT, "scheduler": "strict"})
        super().tearDown()

    def check(self, *orders: tuple[FiveTuple, int]) -> tuple[list[tuple[int, int]], int]:
        """([(source port, number in its burst)] as they leave, how many were refused), both as the model has them."""
        sent = [(one.src_port, number) for one, count in orders for number in range(count)]
        expected: list[Any] = []
        refused = 0
        for name in sent:
            refused += not self.model.enqueue(name[0], FRAME_BYTES, name)
            if name == sent[0]:  # on the line at once
                expected.append(self.model.dequeue())
        while (one := self.model.dequeue()) is not None:
            expected.append(one)
        self._frames: list[Any] = []
        self.bursts(*orders)
        assert self.drops(REASON_AQM)[0] == refused
        left = [(frame["TCP"].sport, bytes(frame)[-1]) for frame in self.receive_all()]
        assert left == [name for name, _ in expected], (left, expected)
        return left, refused


class RoundsInTurn(AfqTest):
    """A flow with a long burst lets one with a short burst, which came later, pass; each flow stays in order."""

    def runTest(self) -> None:
        left, refused = self.check((flow(1), 9), (flow(2), 4), (flow6(3), 2))
        assert refused == 0
        ports = [port for port, _ in left]
        assert ports.index(flow(2).src_port) < len(ports) - 1 - ports[::-1].index(flow(1).src_port)


class BeyondTheLastQueue(AfqTest):
    """What would come after the last round is refused, and costs the flow nothing; another flow finds room."""

    def runTest(self) -> None:
        _, refused = self.check((flow(1), 24), (flow(2), 2))
        assert refused > 0


class AnIdleFlowSavesNothing(AfqTest):
    """A flow that was silent begins at the current round: it may be no more ahead than one that sent."""

    def runTest(self) -> None:
        self.check((flow(1), 8))
        before = self.drops(REASON_AQM)[0]
        assert before == 0
        assert self.register("current_round", SLOW_PORT) == self.model.current_round > 0
        _, refused = self.check((flow(2), 24), (flow(1), 1))
        assert refused > 0
