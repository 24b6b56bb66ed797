# SPDX-License-Identifier: Apache-2.0
"""The entries that a configuration means for one switch: limits, classes and policies of qthresh. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from fairlane_controller.program.contract import Config, Place, Plan, Remembered, Wanted
from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.programs.qthresh.decide import bounded_capacity
from fairlane_controller.programs.qthresh.loop_state import POLICIES, Mode, PolicyState, policy_key
from fairlane_controller.programs.qthresh.model import QTHRESH_MIN_PACKETS
from fairlane_controller.programs.qthresh.policies import START_QTHRESH_PACKETS, Policy, PortLimit, Scheme, fitted
from fairlane_controller.programs.qthresh.settings import ClassConfig, PolicyConfig, QthreshPort
from fairlane_controller.programs.qthresh.setup import policy_for
from fairlane_controller.programs.qthresh.store import LoopStore
from fairlane_controller.state.run_state import PortState, RunState
from fairlane_controller.switch.entities import Entries
from fairlane_controller.switch.shared import UNLIMITED

TABLE_CLASS = "flow_class"
ACTION_SET_CLASS = "set_class"


def limit_of_port(port: QthreshPort, state: PortState) -> PortLimit | None:
    """The limit of a managed port; None when nothing says what its queue holds."""
    packets = port.limit_packets or state.queue_packets
    if packets < 1:
        return None
    period_us = program.REPORT_PERIOD_US if port.report_period is None else round(port.report_period * 1e6)
    octets = port.limit_bytes or state.queue_bytes or UNLIMITED
    return PortLimit(state.port, packets, octets, period_us, port.ecn)


def managed_places(config: Config, run: RunState) -> dict[Place, PortLimit]:
    """The ports that Qthresh manages once the file is in force: those of the topology, as the file changes them."""
    found: dict[Place, PortLimit] = {}
    for switch in run.switches:
        for state in run.managed_ports(switch):
            if state.queue_packets > 0:
                found[switch.name, state.port] = PortLimit(state.port, state.queue_packets)
    for place, port in (config.ports or {}).items():
        limit = limit_of_port(port, config.states[place]) if port.managed else None
        if limit is not None:
            found[place] = limit
        elif port.managed is False:
            found.pop(place, None)
    return found


def policy_of(wanted: PolicyConfig, current: Policy | None, limit: PortLimit | None) -> Policy:
    """What should be in force, without lanes (`fitted`). With mode auto the threshold is the loop's: the one in force stays, within the bounds."""
    if wanted.scheme is Scheme.DROP_TAIL:
        return Policy(wanted.port, wanted.traffic_class, Scheme.DROP_TAIL)
    packets = wanted.threshold
    if packets is None:
        most = bounded_capacity(limit.max_packets if limit is not None else 0, wanted.weight)
        low, high = max(wanted.min_packets or 1, QTHRESH_MIN_PACKETS), min(wanted.max_packets or most, most)
        start = current.qthresh_packets if current is not None else None
        packets = max(1, min(max(START_QTHRESH_PACKETS if start is None else start, low), high))
    new = policy_for(wanted.scheme, wanted.port, wanted.traffic_class, current, weight=wanted.weight, packets=packets)
    return replace(new, qthresh_packets=packets, weight=wanted.weight)


def settings_of(wanted: PolicyConfig, before: PolicyState) -> PolicyState | None:
    """What the loop is to remember; None with drop-tail. What was pinned once stays with mode auto."""
    if wanted.scheme is Scheme.DROP_TAIL:
        return None
    if wanted.threshold is not None:
        return wanted.settings
    return wanted.settings.model_copy(update={"pinned_packets": before.pinned_packets})


def file_settings(settings: PolicyState) -> dict[str, object]:
    """The settings that a file can contain: with mode auto without an earlier pinned value."""
    data = settings.model_dump(mode="json")
    if settings.mode is Mode.AUTO:
        del data["pinned_packets"]
    return data


def class_entries(classes: Iterable[ClassConfig], switch: str) -> list[P4TableEntry]:
    """`flow_class` of a switch."""
    made: list[P4TableEntry] = []
    for rule in classes:
        if rule.switch not in ("", switch):
            continue
        given: Mapping[str, tuple[int | None, int]] = {
            "ingress_port": (rule.ingress_port, 0x1FF),
            "dscp": (rule.dscp, 0x3F),
            "pcp": (rule.pcp, 0x7),
        }
        match = {name: (value, mask) for name, (value, mask) in given.items() if value is not None}
        action = P4TableAction(ACTION_SET_CLASS, traffic_class=rule.traffic_class)
        made.append(P4TableEntry(TABLE_CLASS, match=P4TableMatch(match), action=action, priority=rule.priority))
    return made


@dataclass(frozen=True)
class QthreshPlan(Plan):
    """A configuration of a topology; what it does not name stays."""

    config: Config
    run: RunState | None
    store: LoopStore

    def wanted(self, switch: str, current: Entries) -> Wanted:
        """Limits, policies and classes."""
        by_table: dict[str, list[P4TableEntry]] = {}
        for entry in current.values():
            by_table.setdefault(entry.table_id, []).append(entry)
        limits = {one.port: one for one in map(PortLimit.from_entry, by_table.get(program.TABLE_PORT_LIMIT, ()))}
        new = self._limits(switch, limits)
        sections = self.config.sections
        policies, classes = by_table.get(program.TABLE_POLICY, []), by_table.get(TABLE_CLASS, [])
        if sections is not None and sections.policies is not None:
            policies = self._policies(switch, policies, new)
        if sections is not None and sections.classes is not None:
            classes = class_entries(sections.classes, switch)
        return Wanted([*(limit.entry for limit in new.values()), *policies, *classes])

    def _limits(self, switch: str, limits: Mapping[int, PortLimit]) -> dict[int, PortLimit]:
        """All limits; what the configuration leaves out of one stays."""
        found = dict(limits)
        for place, port in (self.config.ports or {}).items():
            if place[0] != switch or port.managed is None:
                continue
            old = limits.get(place[1])
            found.pop(place[1], None)
            limit = limit_of_port(port, self.config.states[place]) if port.managed else None
            if limit is None:
                continue
            if old is not None:
                if port.limit_packets is None and "queue_packets" not in self.config.given.get(place, ()):
                    limit = replace(limit, max_packets=old.max_packets)
                if port.limit_bytes is None:
                    limit = replace(limit, max_bytes=old.max_bytes)
                if port.report_period is None:
                    limit = replace(limit, report_period_us=old.report_period_us)
                if "ecn" not in port.model_fields_set:
                    limit = replace(limit, ecn=old.ecn)
            found[place[1]] = limit
        return found

    def _policies(
        self, switch: str, entries: Iterable[P4TableEntry], limits: Mapping[int, PortLimit]
    ) -> list[P4TableEntry]:
        current = {one.key: one for one in map(Policy.from_entry, entries) if one is not None}
        managed = managed_places(self.config, self.run) if self.run is not None else {}
        made, said = list[P4TableEntry](), set[tuple[int, int]]()
        for one in self._policies_of(switch):
            key = (one.port, one.traffic_class)
            said.add(key)
            limit = managed.get((switch, one.port)) or limits.get(one.port)
            if one.scheme is not Scheme.DROP_TAIL or key in current:  # drop-tail is in force without an entry
                state = self.config.states.get((switch, one.port))
                if state is None and self.run is not None:
                    state = self.run.switch(switch).port(one.port)
                made.append(fitted(policy_of(one, current.get(key), limit), state).entry)
        # Drop-tail without a word in the configuration is what an entry that nobody wrote would be.
        rest = [one.entry for key, one in current.items() if key not in said and one.scheme is Scheme.DROP_TAIL]
        return [*made, *rest]

    def _policies_of(self, switch: str) -> list[PolicyConfig]:
        sections = self.config.sections
        return [one for one in (sections.policies or () if sections is not None else ()) if one.switch == switch]

    def remembered(self, switch: str) -> list[Remembered]:
        """Settings of policies that differ."""
        found: list[Remembered] = []
        for one in self._policies_of(switch):
            before = self.store.policy(switch, one.port, one.traffic_class)
            settings = settings_of(one, before)
            if settings is None:
                continue
            new, old = file_settings(settings), file_settings(before)
            # The weight is in the entry too, which is what counts.
            names = [name for name in {**new, **old} if new.get(name) != old.get(name) and name != "weight"]
            if names or settings.weight != before.weight:
                place = f"port={one.port} class={one.traffic_class}"
                value = settings.model_dump(mode="json")
                words = [{name: data.get(name) for name in names} for data in (new, old)]
                name = POLICIES + policy_key(switch, one.port, one.traffic_class)
                found.append(Remembered(name, place, value, *words))
        return found
