# SPDX-License-Identifier: Apache-2.0
"""Bringing a switch to what its run state says: program, routes, limits of the managed ports, schemes, digests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from finsy import P4TableAction, P4TableEntry, P4TableMatch

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.program.registry import check_program
from fairlane_controller.programs.qthresh.policies import (
    START_QTHRESH_PACKETS,
    Policy,
    PortLimit,
    Scheme,
    read_policies,
)
from fairlane_controller.state.run_state import PortState, RunState, SwitchState
from fairlane_controller.switch.client import Endpoint, PipelineFiles, SwitchClient
from fairlane_controller.switch.faults import Refusal
from fairlane_controller.switch.security import TlsFiles, tls_of_environment
from fairlane_controller.switch.shared import ACTION_FORWARD, TABLE_ROUTE, UNLIMITED


@dataclass(frozen=True)
class SetupResult:
    """What `set_up` changed."""

    switch: str
    routes: int
    managed_ports: tuple[int, ...]
    entries_written: int
    "0 when the switch held everything already."


def endpoint_of(state: SwitchState) -> Endpoint:
    """Where the switch of a run state is."""
    tls = tls_of_environment()
    if tls is None and state.tls is not None:
        tls = TlsFiles(state.tls.ca, state.tls.cert, state.tls.key)
    return Endpoint(state.name, state.grpc, state.device_id, tls)


def pipeline_of(state: SwitchState) -> PipelineFiles:
    """The compiled program of a run state; BAD_FILE when it names none."""
    if state.json_file is None or state.p4info is None:
        raise FairlaneError(
            ErrorCode.BAD_FILE, f"the run state names no compiled program for switch {state.name} (json, p4info)"
        )
    return PipelineFiles(state.json_file, state.p4info)


def limit_of(state: SwitchState, port: PortState) -> PortLimit:
    """The limit of a managed port; BAD_FILE when the run state does not say what its queue holds."""
    if port.queue_packets < 1:
        raise FairlaneError(
            ErrorCode.BAD_FILE,
            f"the run state gives port {port.port} of switch {state.name} no queue_packets: "
            "a managed port must refuse before its queue overflows",
        )
    return PortLimit(port.port, port.queue_packets, port.queue_bytes or UNLIMITED)


def route_entries(client: SwitchClient, state: SwitchState) -> list[P4TableEntry]:
    """The routes' entries."""
    entries: list[P4TableEntry] = []
    for route in state.routes:
        table = TABLE_ROUTE[route.network.version]
        (field,) = client.match_fields(table)
        action = P4TableAction(ACTION_FORWARD, dst_mac=route.mac, port=route.port)
        entries.append(P4TableEntry(table, match=P4TableMatch({field: str(route.network)}), action=action))
    return entries


def policy_for(
    scheme: Scheme,
    port: int,
    traffic_class: int,
    held: Policy | None,
    *,
    weight: float = 1.0,
    packets: int = START_QTHRESH_PACKETS,
) -> Policy:
    """The policy after a change of scheme: a threshold and weight in force stay, else `packets` and `weight` hold."""
    if scheme is Scheme.DROP_TAIL:
        return Policy(port, traffic_class, scheme)
    if held is not None and held.qthresh_packets is not None:
        return Policy(port, traffic_class, scheme, held.qthresh_packets, held.weight)
    return Policy(port, traffic_class, scheme, packets, weight)


async def set_up(
    client: SwitchClient,
    run: RunState,
    state: SwitchState,
    scheme: Scheme | None,
    classes: Sequence[int] = (0,),
    *,
    policies: Iterable[Policy] = (),
    on_refused: Callable[[P4TableEntry, Refusal], None] | None = None,
) -> SetupResult:
    """Write what is missing or different; what is right already is not touched.

    Without `scheme` the policies that the switch holds stay, and where there is none the program's own default
    (drop-tail) holds; `policies` are what the switch should hold wherever it holds something else. Everything is checked
    against the P4Info before the first write. `on_refused` is that of `SwitchClient.put_entries`.
    """
    check_program("qthresh", client.table_names())
    ports = run.managed_ports(state)
    entries = route_entries(client, state)
    entries += [limit_of(state, port).entry for port in ports]
    held = await read_policies(client)
    known = {policy.key: policy for policy in policies}
    entries += [policy.entry for policy in known.values()]
    for port in ports:
        for traffic_class in classes:
            if (port.port, traffic_class) in known:
                continue
            before = held.get((port.port, traffic_class))
            if scheme is not None:
                entries.append(policy_for(scheme, port.port, traffic_class, before).entry)
            elif before is None:
                entries.append(Policy(port.port, traffic_class, Scheme.DROP_TAIL).entry)
    written = await client.put_entries(entries, on_refused)
    return SetupResult(state.name, len(state.routes), tuple(p.port for p in ports), written)
