# SPDX-License-Identifier: Apache-2.0
"""The entries that a configuration means for one switch: limits, classes and policies of qthresh. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from fairlane_controller.config.model import FairlaneConfig, Place, PolicyConfig, PortConfig
from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.programs.qthresh.decide import bounded_capacity
from fairlane_controller.programs.qthresh.model import QTHRESH_MIN_PACKETS
from fairlane_controller.programs.qthresh.policies import START_QTHRESH_PACKETS, Policy, PortLimit, Scheme
from fairlane_controller.state.loop_state import Mode, PolicyState
from fairlane_controller.state.run_state import PortState, RunState
from fairlane_controller.switch.shared import UNLIMITED

TABLE_CLASS = "flow_class"
ACTION_SET_CLASS = "set_class"


def _state(port: PortConfig, run: RunState | None) -> PortState | None:
    switch = next((one for one in run.switches if one.name == port.switch), None) if run is not None else None
    return switch.port(port.port) if switch is not None else None


def capacity_packets(port: PortConfig, run: RunState | None) -> int:
    """What the queue of a port holds: the file says so, else the run state; 0 when nobody does."""
    if port.queue_packets is not None:
        return port.queue_packets
    state = _state(port, run)
    return state.queue_packets if state is not None else 0


def limit_of_port(port: PortConfig, run: RunState | None) -> PortLimit | None:
    """The limit of a managed port; None when nothing says what its queue holds."""
    packets = port.limit_packets or capacity_packets(port, run)
    if packets < 1:
        return None
    state = _state(port, run)
    held = port.queue_bytes or (state.queue_bytes if state is not None else 0)
    period_us = program.REPORT_PERIOD_US if port.report_period is None else round(port.report_period * 1e6)
    return PortLimit(port.port, packets, port.limit_bytes or held or UNLIMITED, period_us)


def managed_places(config: FairlaneConfig, run: RunState) -> dict[Place, PortLimit]:
    """The ports that Qthresh manages once the file is in force: those of the topology, as the file changes them."""
    found: dict[Place, PortLimit] = {}
    for switch in run.switches:
        for state in run.managed_ports(switch):
            if state.queue_packets > 0:
                found[switch.name, state.port] = PortLimit(state.port, state.queue_packets)
    for port in config.ports or ():
        limit = limit_of_port(port, run) if port.managed else None
        if limit is not None:
            found[port.place] = limit
        elif port.managed is False:
            found.pop(port.place, None)
    return found


@dataclass(frozen=True)
class WantedPolicy:
    """A policy of the file with what the loop is to remember of it."""

    policy: Policy
    settings: PolicyState | None
    "None: nothing is said (drop-tail)."


def policy_entry(wanted: PolicyConfig, held: Policy | None, limit: PortLimit | None, before: PolicyState) -> WantedPolicy:  # fmt: skip
    """What should be in force. With mode auto the threshold is the loop's: the one in force stays, within the bounds."""
    if wanted.scheme is Scheme.DROP_TAIL:
        return WantedPolicy(Policy(wanted.port, wanted.traffic_class, Scheme.DROP_TAIL), None)
    settings = wanted.settings
    if wanted.threshold is not None:
        packets = wanted.threshold
    else:
        settings = settings.model_copy(update={"pinned_packets": before.pinned_packets})
        most = bounded_capacity(limit.max_packets if limit is not None else 0, wanted.weight)
        low, high = max(wanted.min_packets or 1, QTHRESH_MIN_PACKETS), min(wanted.max_packets or most, most)
        start = held.qthresh_packets if held is not None and held.qthresh_packets is not None else START_QTHRESH_PACKETS
        packets = max(1, min(max(start, low), high))
    return WantedPolicy(Policy(wanted.port, wanted.traffic_class, Scheme.QTHRESH, packets, wanted.weight), settings)


def settings_said(settings: PolicyState) -> dict[str, object]:
    """What of the settings a file can say: with mode auto nothing about what was pinned once."""
    data = settings.model_dump(mode="json")
    if settings.mode is Mode.AUTO:
        del data["pinned_packets"]
    return data


def class_entries(config: FairlaneConfig, switch: str) -> list[P4TableEntry]:
    """`flow_class` of a switch."""
    made: list[P4TableEntry] = []
    for rule in config.classes or ():
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
