# SPDX-License-Identifier: Apache-2.0
"""What a switch has, as the configuration file would say it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from finsy import P4TableAction, P4TableEntry

from fairlane_controller.program.contract import Config, Place
from fairlane_controller.programs.qthresh.loop_state import Mode, PolicyState
from fairlane_controller.programs.qthresh.names import TABLE_POLICY, TABLE_PORT_LIMIT
from fairlane_controller.programs.qthresh.policies import Policy, PortLimit, Scheme
from fairlane_controller.programs.qthresh.settings import QthreshPort, QthreshSections
from fairlane_controller.programs.qthresh.store import LoopStore
from fairlane_controller.programs.qthresh.wanted import TABLE_CLASS
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.entities import Entries
from fairlane_controller.switch.shared import UNLIMITED
from fairlane_controller.switch.updates import match_of

Plain = dict[str, Any]
_WIDTHS = {"ingress_port": 0x1FF, "dscp": 0x3F, "pcp": 0x7}


def read_config(current: Mapping[str, Entries], run: RunState) -> Config:
    """Ports, policies and classes of all switches."""
    store, ports = LoopStore(run.folder), dict[Place, Any]()
    policies, classes, notes = list[Plain](), list[Plain](), list[str]()
    for switch, found in current.items():
        entries = [entry for entry in found.values() if not entry.is_const]
        limits = [entry for entry in entries if entry.table_id == TABLE_PORT_LIMIT]
        ports |= {(switch, int(entry["egress_port"])): limit_settings(entry) for entry in limits}
        held = [Policy.from_entry(entry) for entry in entries if entry.table_id == TABLE_POLICY]
        for policy in sorted((one for one in held if one is not None), key=lambda one: one.key):
            policies.append(_policy(switch, policy, store.policy(switch, *policy.key)))
        rules = [entry for entry in entries if entry.table_id == TABLE_CLASS]
        for entry in sorted(rules, key=lambda one: (-one.priority, str(one.match))):
            rule = _class(switch, entry)
            if rule is None:
                words = " ".join(f"{name}={value}" for name, value in match_of(entry))
                notes.append(f"{switch}: {TABLE_CLASS} {words} is no rule of a file and is left out")
            else:
                classes.append(rule)
    sections = QthreshSections.model_validate({"classes": classes, "policies": policies})
    return Config(ports, sections, notes=tuple(notes))


def limit_settings(entry: P4TableEntry) -> QthreshPort:
    """The settings of a managed port, also those that a file may not have."""
    limit = PortLimit.from_entry(entry)
    size: Plain = {} if limit.max_bytes == UNLIMITED else {"limit_bytes": limit.max_bytes}
    held = {"limit_packets": limit.max_packets, "report_period": limit.report_period_us / 1e6, "ecn": limit.ecn}
    return QthreshPort.model_construct(managed=True, **held, **size)


def _policy(switch: str, held: Policy, settings: PolicyState) -> Plain:
    data: Plain = {"switch": switch, "port": held.port, "class": held.traffic_class, "scheme": held.scheme.value}
    if held.scheme is Scheme.DROP_TAIL:
        return data
    data |= {"mode": settings.mode.value, "weight": held.weight, "k": settings.k, "self_tuning": settings.self_tuning}
    if settings.mode is Mode.MANUAL:
        data["threshold"] = held.qthresh_packets
    for name in ("min_packets", "max_packets"):
        value = getattr(settings, name)
        if value is not None:
            data[name] = value
    return data


def _class(switch: str, entry: P4TableEntry) -> Plain | None:
    """A rule of the file; None for an entry with another mask or priority, which others have written."""
    if not isinstance(entry.action, P4TableAction):
        return None
    data: Plain = {"class": int(entry.action.args["traffic_class"]), "switch": switch}
    match = dict(match_of(entry))
    rank = 0
    for place, (name, mask) in enumerate(_WIDTHS.items()):
        found: Any = match.get(name)
        if found is None:
            continue
        if int(found[1]) != mask:
            return None
        data[name] = int(found[0])
        rank += 4 >> place
    return data if rank == entry.priority and rank else None
