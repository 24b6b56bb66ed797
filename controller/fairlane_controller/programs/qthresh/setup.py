# SPDX-License-Identifier: Apache-2.0
"""Bringing a switch to what its run state says: routes, limits of the managed ports, schemes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from finsy import P4TableEntry

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.program.contract import Plan, Wanted
from fairlane_controller.programs.qthresh.names import TABLE_POLICY
from fairlane_controller.programs.qthresh.policies import (
    NO_LANES,
    START_QTHRESH_PACKETS,
    Policy,
    PortLimit,
    Scheme,
    fitted,
)
from fairlane_controller.state.run_state import PortState, RunState, SwitchState
from fairlane_controller.switch.entities import Entries
from fairlane_controller.switch.shared import UNLIMITED


def limit_of(state: SwitchState, port: PortState, ecn: bool = False) -> PortLimit:
    """The limit of a managed port; BAD_FILE when the run state does not say what its queue holds."""
    if port.queue_packets < 1:
        raise FairlaneError(
            ErrorCode.BAD_FILE,
            f"the run state gives port {port.port} of switch {state.name} no queue_packets: "
            "a managed port must refuse before its queue overflows",
        )
    return PortLimit(port.port, port.queue_packets, port.queue_bytes or UNLIMITED, ecn=ecn)


def policy_for(
    scheme: Scheme,
    port: int,
    traffic_class: int,
    held: Policy | None,
    *,
    weight: float = 1.0,
    packets: int = START_QTHRESH_PACKETS,
) -> Policy:
    """The policy after a change of scheme, without lanes (`fitted`): a threshold and weight in force stay, else `packets` and `weight` hold."""
    if scheme is Scheme.DROP_TAIL:
        return Policy(port, traffic_class, scheme)
    if held is not None and held.qthresh_packets is not None:
        spacing_us = held.spacing_us if scheme is Scheme.LANES else 0
        return replace(held, scheme=scheme, lanes=NO_LANES, spacing_us=spacing_us)
    return Policy(port, traffic_class, scheme, packets, weight)


def set_up_entries(
    run: RunState,
    state: SwitchState,
    current: Mapping[tuple[int, int], Policy],
    scheme: Scheme | None = None,
    classes: Sequence[int] = (0,),
    policies: Iterable[Policy] = (),
) -> list[P4TableEntry]:
    """Limits and policies of the managed ports of a switch that has the policies `current`. Raises BAD_FILE.

    Without `scheme` the policies that the switch holds stay, and where there is none the program's own default
    (drop-tail) holds; `policies` are what the switch should hold wherever it holds something else.
    """
    ports = run.managed_ports(state)
    entries = [limit_of(state, port).entry for port in ports]
    known = {policy.key: policy for policy in policies}
    entries += [fitted(policy, state.port(policy.port)).entry for policy in known.values()]
    for port in ports:
        for traffic_class in classes:
            if (port.port, traffic_class) in known:
                continue
            before = current.get((port.port, traffic_class))
            if scheme is not None:
                entries.append(fitted(policy_for(scheme, port.port, traffic_class, before), port).entry)
            elif before is None:
                entries.append(Policy(port.port, traffic_class, Scheme.DROP_TAIL).entry)
    return entries


@dataclass(frozen=True)
class SetupPlan(Plan):
    """What a topology is set up with; policies that are there stay."""

    run: RunState
    scheme: Scheme | None = None

    def wanted(self, switch: str, current: Entries) -> Wanted:
        """The limits and policies of the managed ports, and all current entries."""
        found = [Policy.from_entry(one) for one in current.values() if one.table_id == TABLE_POLICY]
        policies = {one.key: one for one in found if one is not None}
        entries = set_up_entries(self.run, self.run.switch(switch), policies, self.scheme)
        return Wanted([*entries, *current.values()])
