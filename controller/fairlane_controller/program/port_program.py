# SPDX-License-Identifier: Apache-2.0
"""A program whose managed ports have one entry each, in one table: most queueing schemes are so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from finsy import P4TableAction, P4TableEntry, P4TableMatch
from pydantic import Field

from fairlane_controller.program.contract import Config, Program, port_state
from fairlane_controller.program.quantities import Duration
from fairlane_controller.program.rows import Column, Reason
from fairlane_controller.program.settings import Settings
from fairlane_controller.state.run_state import PortState, RunState
from fairlane_controller.switch.entities import Entries
from fairlane_controller.switch.shared import VLAN_TAG_BYTES, longest_frame_bytes


@dataclass(frozen=True)
class Param:
    """The parameter of the action that has a setting's value; it annotates the field: `limit: Annotated[Packets, Param("packets")] = 10`."""

    name: str
    scale: float = 1.0
    "The parameter is the setting times this, rounded: 1e6 for a time in us."
    digits: int = 6
    "Decimals of the setting that is read back."
    values: tuple[Any, ...] = ()
    "All values of a setting that is a word, or one of a few numbers: the parameter is the index."

    def to_switch(self, value: Any) -> int:
        """The parameter of a setting."""
        return self.values.index(value) if self.values else round(value * self.scale)

    def from_switch(self, number: int, kind: Any) -> Any:
        """The inverse of `to_switch`.

        Args:
            number: The parameter; others may have written any.
            kind: The type of the setting.
        """
        if self.values:
            return self.values[min(number, len(self.values) - 1)]
        return bool(number) if kind is bool else round(number / self.scale, self.digits if kind is float else None)


class PortProgram(Program):
    """The table is the first of `tables`, its key `egress_port`. A field of `Settings` that a `Param` annotates is a parameter of the
    action; a program overrides `arguments` and `settings_from` for what has to be computed."""

    port_action: ClassVar[str] = ""
    "The action of the table; empty: `set_` and the program's name."
    ports_max: ClassVar[int] = 0
    "The highest port that the P4 program has state for; 0: all ports that a switch can have."

    def _params(self) -> Iterator[tuple[str, Param, Any]]:
        """The settings that have a parameter, with the parameter and the setting's type."""
        for name, field in self.Settings.model_fields.items():
            yield from ((name, one, field.annotation) for one in field.metadata if isinstance(one, Param))

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """The action's parameters for a port: those that `Param` names. Pure.

        Args:
            port: What the topology knows of the port.
            settings: What the port is set to.
        """
        values = ((param, getattr(settings, name)) for name, param, _ in self._params())
        return {param.name: param.to_switch(value) for param, value in values if value is not None}

    def settings_from(self, arguments: Mapping[str, int]) -> Any:
        """The inverse of `arguments`."""
        found = {name: param.from_switch(arguments[param.name], kind) for name, param, kind in self._params()}
        return self.Settings.model_construct(**found)

    def check(self, config: Config, run: RunState | None) -> Iterable[str]:
        """Problems of each port: by `ports_max`, `scheduler` and `check_port`."""
        for place, settings in (config.ports or {}).items():
            at = config.at.get(place, "{}:{}".format(*place))
            port = config.states.get(place) or port_state(run, place)
            if self.ports_max and place[1] > self.ports_max:
                yield f"{at}.port: {place[1]}: {self.name} manages ports 1 to {self.ports_max}"
            if self.scheduler and port.scheduler not in ("", self.scheduler) and (run is None or run.target != "bmv2"):
                yield f"{at}: the port's scheduler is {port.scheduler}; {self.name} needs {self.scheduler}"
            yield from (f"{at}.{problem}" for problem in self.check_port(port, settings))

    def check_port(self, port: PortState, settings: Any) -> Iterable[str]:
        """Problems of one port. Pure.

        Args:
            port: What is known of it; a port that no topology has is known by its number alone.
            settings: What it is to have.

        Returns:
            Each problem as `setting: what is wrong, and what is allowed`.
        """
        return ()

    def initial_config(self, run: RunState) -> Config:
        """The settings of the topology's ports; a bottleneck without settings has the defaults."""
        managed = {(one.name, port.port): self.Settings() for one in run.switches for port in run.managed_ports(one)}
        return Config({**managed, **(super().initial_config(run).ports or {})}, exact=True)

    def entries(self, port: PortState, settings: Any) -> Iterator[P4TableEntry]:
        """One entry."""
        action = P4TableAction(self.port_action or f"set_{self.name}", **self.arguments(port, settings))
        yield P4TableEntry(self.tables[0], match=P4TableMatch(egress_port=port.port), action=action)

    def ports_of(self, switch: str, current: Entries) -> dict[int, Any]:
        """The settings of each port that has an entry."""
        return {
            int(entry["egress_port"]): self.settings_from(entry.action.args)
            for entry in current.values()
            if entry.table_id == self.tables[0] and isinstance(entry.action, P4TableAction)
        }


class AqmProgram(PortProgram):
    """Active queue management that counts as `p4src/include/aqm/queue.p4` does: the columns of all such programs, and their drop reason."""

    DROPPED: ClassVar[int] = 11
    "The number of the reason of what queue management drops; the reason's name is the program's."
    dropped: ClassVar[str] = ""
    "What that reason means, in a few words."
    delay = Column("queue_delay_s", "delay", "s", "mean queueing delay of the packets sent", ratio=("waited_s", "sent"))
    drops = Column("aqm_dropped", "dropped", "packets", "packets dropped by queue management", reason=11, plot="drops")
    marks = Column("aqm_marked", "marked", "packets", "packets marked CE by queue management", counter="marked")
    sent = Column("sent", "sent", "packets", "packets sent", counter="sent", wide=True)
    waited = Column("waited_s", "waited", "s", "queueing delay of all packets sent, together", register="waited_us", scale=1e-6, total=True, wide=True)  # fmt: skip
    columns = (delay, drops, marks, sent, waited)

    def __init_subclass__(cls) -> None:
        """Make the drop reason."""
        super().__init_subclass__()
        if "dropped" in vars(cls):
            cls.reasons = {cls.DROPPED: Reason(cls.name, cls.dropped, in_queue=True), **cls.reasons}


class CodelSettings(Settings):
    """One port of a program with CoDel."""

    target: Annotated[Duration, Param("target_us", 1e6), Field(ge=1e-6, le=10)] = 0.005
    "Persistent queueing delay that is acceptable (RFC 8289 TARGET)."
    interval: Annotated[Duration, Param("interval_us", 1e6), Field(ge=1e-6, le=100)] = 0.1
    "How long it may be exceeded: about the longest RTT of the flows (RFC 8289 INTERVAL)."
    ecn: Annotated[bool, Param("ecn")] = True
    "Whether packets that can be marked (ECT) are marked instead of dropped."


class CodelProgram(AqmProgram):
    """CoDel (RFC 8289), of a port or of each of its queues."""

    Settings = CodelSettings
    reasons: ClassVar[Mapping[int, Reason]] = {
        AqmProgram.DROPPED: Reason("codel", "packets waited longer than the target for an interval", in_queue=True)
    }

    def arguments(self, port: PortState, settings: Any) -> Mapping[str, int]:
        """As `PortProgram`; the longest frame is the link's, with the tags of two VLANs."""
        return {
            **super().arguments(port, settings),
            "max_packet_bytes": longest_frame_bytes(port.mtu) + 2 * VLAN_TAG_BYTES,
        }
