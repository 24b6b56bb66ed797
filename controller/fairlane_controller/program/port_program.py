# SPDX-License-Identifier: Apache-2.0
"""A program whose managed ports have one entry each, in one table: most queueing schemes are so."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from fairlane_controller.program.contract import Config, Program
from fairlane_controller.program.settings import Settings
from fairlane_controller.state.run_state import PortState, RunState
from fairlane_controller.switch.entities import Entries


class PortProgram(Program):
    """The table is the first of `tables`, its key `egress_port`. A program says what its settings are as the action's parameters, and back."""

    port_action: ClassVar[str]
    "The action of the table."

    @abstractmethod
    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """The action's parameters for a port with these settings. Pure."""

    @abstractmethod
    def settings_from(self, arguments: Mapping[str, int]) -> Settings:
        """The inverse of `arguments`."""

    def initial_config(self, run: RunState) -> Config:
        """What the topology's ports say; a bottleneck that says nothing has the defaults."""
        places = {
            (switch.name, port.port): self.Settings() for switch in run.switches for port in run.managed_ports(switch)
        }
        return Config({**places, **(super().initial_config(run).ports or {})}, exact=True)

    def entries(self, port: PortState, settings: Any) -> Iterator[P4TableEntry]:
        """One entry."""
        action = P4TableAction(self.port_action, **self.arguments(port, settings))
        yield P4TableEntry(self.tables[0], match=P4TableMatch(egress_port=port.port), action=action)

    def ports_of(self, switch: str, current: Entries) -> dict[int, Any]:
        """The settings of each port that has an entry."""
        del switch
        return {
            int(entry["egress_port"]): self.settings_from(entry.action.args)
            for entry in current.values()
            if entry.table_id == self.tables[0] and isinstance(entry.action, P4TableAction)
        }
