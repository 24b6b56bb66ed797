# SPDX-License-Identifier: Apache-2.0
"""`p4src/qthresh.p4` (docs/p4.md): per-flow thresholds of managed ports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fairlane import (
    Config,
    Entries,
    P4TableEntry,
    Place,
    Plan,
    PortState,
    Program,
    Reading,
    Reason,
    Row,
    RunState,
    SwitchState,
    find_by_name,
)

from . import names, view
from .policies import ConfigPlan, InForce, LoopStore, SetupPlan, class_rule, limit_entry, plain_policy, problems_of
from .settings import QthreshLoop, QthreshPort, QthreshSections


class Qthresh(Program):
    """Per-flow queue thresholds."""

    name = "qthresh"
    title = "Qthresh: a threshold for each TCP flow, computed from the link and tuned by goodput."
    tables = (names.TABLE_PORT_LIMIT, names.TABLE_POLICY, names.TABLE_CLASS)
    Settings = QthreshPort
    Sections = QthreshSections
    LoopSettings = QthreshLoop
    control = "control:QthreshTopology"
    first_commands = ("threshold show", "flows")
    dynamic_tables = tuple(names.TABLE_FLOW.values())
    loop_tables = {
        **dict.fromkeys(names.TABLE_FLOW.values(), "it makes and deletes flow entries itself"),
        names.TABLE_POLICY: "use `fairlane threshold`",
    }
    units = {"qthresh": "packets", "weight": "1/256", "lanes": "lanes", "lanes_by_hash": "lanes by hash"}
    columns = view.COLUMNS
    kinds = view.KINDS
    measured = view.MEASURED
    meanings = view.SOURCES
    frequent_events = ("decision", "tuned", "flow", "flow_gone", "measured")
    reasons = {
        11: Reason("qthresh", "the flow had its threshold of packets waiting", in_queue=True),
        12: Reason("port_full", "the port's queue was full", in_queue=True),
    }

    def entries(self, port: PortState, settings: Any) -> Iterable[P4TableEntry]:
        """The port's limit."""
        return [limit_entry(port, settings)] if settings.managed else []

    def settings_for_queue(self, settings: Any, packets: int | None, size: int | None) -> Any:
        """The limit is what the queue has room for."""
        return settings.model_copy(update={"limit_packets": packets or settings.limit_packets})

    def entries_for_queues(self, port: PortState, current: Entries) -> Iterable[P4TableEntry]:
        """Policies with lanes, as many as the port has then."""
        policies = InForce.of(current.values()).policies.values()
        return [one.fitted(port).entry for one in policies if (one.port, one.scheme) == (port.port, names.Scheme.LANES)]

    def check(self, config: Config, run: RunState | None) -> Iterable[str]:
        """Limits, classes, policies."""
        return problems_of(config, run)

    def plan(self, config: Config, run: RunState | None) -> Plan:
        """What a configuration does not name stays."""
        return ConfigPlan(config, run, LoopStore(run.folder if run is not None else None))

    def read_config(self, current: Mapping[str, Entries], run: RunState) -> Config:
        """Limits, policies with their settings, classes; rules of a class that no file can have are left out."""
        store, ports = LoopStore(run.folder), dict[Place, Any]()
        sections = dict[str, list[Any]](classes=[], policies=[])
        for switch, found in current.items():
            in_force = InForce.of(entry for entry in found.values() if not entry.is_const)
            ports |= {(switch, port): settings for port, settings in in_force.ports.items()}
            for key, policy in sorted(in_force.policies.items()):
                sections["policies"].append(plain_policy(switch, policy, store.policy(switch, *key)))
            for entry in sorted(in_force.classes, key=lambda one: (-one.priority, str(one.match))):
                if (rule := class_rule(switch, entry)) is not None:
                    sections["classes"].append(rule)
        return Config(ports, QthreshSections.model_validate(sections))

    def initial_plan(self, run: RunState, scheme: str | None = None) -> Plan:
        """Limits of the managed ports and their schemes; without `scheme` those that are there stay."""
        return SetupPlan(run, None if scheme is None else find_by_name("scheme", scheme, names.SCHEMES))

    def ports_of(self, switch: str, current: Entries) -> dict[int, Any]:
        """The ports that have a limit."""
        del switch
        return InForce.of(current.values()).ports

    async def rows(self, reading: Reading, switch: SwitchState | None) -> Sequence[Row]:
        """Managed ports, classes and flows."""
        del switch
        return await view.read_rows(reading)
