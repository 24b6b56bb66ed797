# SPDX-License-Identifier: Apache-2.0
"""The run time on a topology: settings that are stored, and options."""

from __future__ import annotations

from fairlane import RunState, TopologyControl
from fairlane.measure import MeasureOptions

from .control import QthreshControl
from .settings import QthreshLoop
from .store import LoopStore


class QthreshTopology(TopologyControl):
    """Settings of the policies of all switches."""

    control_type = QthreshControl

    def __init__(
        self,
        run: RunState | None = None,
        *,
        probes: bool = True,
        keeps_counts: bool = True,
        store: LoopStore | None = None,
    ) -> None:
        """Begin without connections.

        Args:
            run: the topology; None: single switches.
            probes: whether to send probes.
            keeps_counts: whether the switch gets a hash key, and what it counts as waiting is compared with its queues (`measure/occupancy.py`).
            store: the settings of policies; None: those of the topology's state file.
        """
        super().__init__(run, probes=probes)
        self.store = store or LoopStore(run.folder if run is not None else None)
        self.keeps_counts = keeps_counts
        self.loop = QthreshLoop()
        self.measure = MeasureOptions(sample_includes_t_d=run is None or run.target != "bmv2")
