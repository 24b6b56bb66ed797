# SPDX-License-Identifier: Apache-2.0
"""The ports of the embedded switch over gNMI (finsy's client), under OpenConfig's paths (`switch/crates/gnmi/leaves.tsv` lists them)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Iterable
from dataclasses import fields
from typing import Any, TypeVar

import grpc
from finsy import GNMIClient, GNMIPath, GRPCStatusCode
from finsy.gnmiclient import GNMIClientError, GNMISetValueType, GNMIUpdate

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.ports import (  # fmt: skip
    SCHEDULER_PATH,
    SHAPER_PATH,
    PortChange,
    PortInfo,
    PortsClient,
    QueueInfo,
    find_port,
)
from fairlane_controller.switch.client import Endpoint
from fairlane_controller.switch.faults import reason_of

TIMEOUT_S = 5.0
MESSAGE_BYTES_MAX = 64 << 20
"""A port may have 4096 queues, which are 3 MB."""
_T = TypeVar("_T")

_WEIGHT_PATH = f"{SCHEDULER_PATH}/inputs/input/config/weight"
_PORT_PATHS = (GNMIPath("interfaces/interface"), GNMIPath(SHAPER_PATH))
_QUEUE_PATHS = (GNMIPath("qos/interfaces/interface/output/queues/queue/state"), GNMIPath(_WEIGHT_PATH))
_FIELD_OF_LEAF = {
    "admin-status": "admin_up",
    "oper-status": "oper_up",
    "cir": "rate_bps",
    "max-queue-depth-packets": "queue_packets",
    "max-queue-depth-bytes": "queue_bytes",
    "in-pkts": "received_packets",
    "in-octets": "received_bytes",
    "in-discards": "receive_losses",
    "out-pkts": "sent_packets",
    "out-octets": "sent_bytes",
    "out-discards": "dropped_packets",
    "out-errors": "send_errors",
    "transmit-pkts": "sent_packets",
    "transmit-octets": "sent_bytes",
    "dropped-pkts": "dropped_packets",
    "dropped-octets": "dropped_bytes",
    "max-queue-len": "max_waiting_bytes",
}
"""Fields of PortInfo and QueueInfo; the others have the name of their leaf."""


class GnmiPorts(PortsClient):
    """`async with GnmiPorts(endpoint) as ports:`; raises FairlaneError only."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._client = GNMIClient(endpoint.grpc)
        self._channel: grpc.aio.Channel | None = None

    async def open(self) -> None:
        """Prepare the connection, which the first call makes; a second call does nothing. Raises what `Endpoint.check` raises."""
        if self._channel is not None:
            return
        credentials, options = self.endpoint.credentials, [("grpc.max_receive_message_length", MESSAGE_BYTES_MAX)]
        await self.endpoint.check(TIMEOUT_S, TIMEOUT_S)
        if credentials is None:
            self._channel = grpc.aio.insecure_channel(self.endpoint.grpc, options=options)
        else:
            client = credentials.to_client_credentials()
            self._channel = grpc.aio.secure_channel(self.endpoint.grpc, client, options=options)
        await self._client.open(channel=self._channel)

    async def close(self) -> None:
        """End the connection."""
        await self._client.close()
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def ports(self, *, queues: bool = False) -> list[PortInfo]:
        """All ports by number, the CPU port left out; with `queues` each queue too."""
        return ports_of(await self._call(self._client.get(*_PORT_PATHS, *(_QUEUE_PATHS if queues else ()))))

    async def set_port(self, port: int, change: PortChange, *, dry_run: bool = False) -> list[str]:
        """Change what is named in one Set, which the switch takes whole or not at all."""
        before = find_port(await self.ports(), port, self.endpoint)
        updates, deletes = set_of(before.interface or "", change)
        if not dry_run and (updates or deletes):
            await self._call(self._client.set(update=updates or None, delete=deletes or None))
        return [f"/{path} = {value}" for path, value in updates] + [f"/{path} deleted" for path in deletes]

    async def _call(self, call: Awaitable[_T]) -> _T:
        try:
            return await asyncio.wait_for(call, TIMEOUT_S)
        except GNMIClientError as ex:
            code = _CODES.get(ex.code, ErrorCode.REFUSED)
            silent = " does not answer" if code is ErrorCode.SWITCH_UNREACHABLE else ""
            raise FairlaneError(
                code, f"{self.endpoint}{silent}: {reason_of(ex.message) or 'it serves no gNMI'}"
            ) from None
        except asyncio.TimeoutError:
            raise self.endpoint.unreachable(f"does not answer within {TIMEOUT_S:g} s") from None


_CODES = {
    GRPCStatusCode.UNAVAILABLE: ErrorCode.SWITCH_UNREACHABLE,
    GRPCStatusCode.DEADLINE_EXCEEDED: ErrorCode.SWITCH_UNREACHABLE,
    GRPCStatusCode.INVALID_ARGUMENT: ErrorCode.BAD_INPUT,
    GRPCStatusCode.NOT_FOUND: ErrorCode.UNKNOWN_NAME,
}


def ports_of(updates: Iterable[GNMIUpdate]) -> list[PortInfo]:
    """The ports that the leaves describe; the CPU port is left out."""
    ports: defaultdict[str, dict[str, Any]] = defaultdict(lambda: {"rate_bps": 0, "drops": {}, "queue_list": {}})
    for update in updates:
        path, leaf, value = update.path, update.path.last, update.value
        names = [_key(path, "interface", "name"), _key(path, "interface", "interface-id")]
        interface = next(filter(None, [*names, _key(path, "scheduler-policy", "name")]), "")
        queue, reason = _key(path, "queue", "name") or _key(path, "input", "id"), _key(path, "drop", "reason")
        found = ports[interface]
        if reason is not None and leaf == "packets" and value:
            found["drops"][reason] = value
        elif reason is None:
            owner = found if queue is None else found["queue_list"].setdefault(int(queue), {})
            owner[_FIELD_OF_LEAF.get(leaf, leaf.replace("-", "_"))] = (
                value == "UP" if leaf.endswith("-status") else value
            )
    for found in ports.values():
        queues: dict[int, dict[str, Any]] = found["queue_list"]
        found["queue_list"] = tuple(QueueInfo(number, **_known(QueueInfo, queues[number])) for number in sorted(queues))
    real = [(name, found) for name, found in ports.items() if "ifindex" in found and not found.get("cpu")]
    infos = [PortInfo(found["ifindex"], name, **_known(PortInfo, found)) for name, found in real]
    return sorted(infos, key=lambda one: one.port)


def _key(path: GNMIPath, element: str, key: str) -> str | None:
    return next((one.key[key] for one in path.path.elem if one.name == element and key in one.key), None)


def _known(model: Any, values: dict[str, Any]) -> dict[str, Any]:
    """The values that are fields of a model, without those that name it."""
    names = {one.name for one in fields(model)} - {"port", "interface", "queue"}
    return {name: value for name, value in values.items() if name in names}


def set_of(interface: str, change: PortChange) -> tuple[list[tuple[GNMIPath, GNMISetValueType]], list[GNMIPath]]:
    """Updates and deletes of one Set; a limit of 0 is a leaf that is deleted."""
    updates: list[tuple[GNMIPath, GNMISetValueType]] = []
    deletes: list[GNMIPath] = []
    for name, option in change.options.items():
        value, path = getattr(change, name), _path_of(option.path, interface)
        if value == 0 and option.may_be_unlimited:
            deletes.append(path)
        elif value is not None:
            updates.append((path, value))
    for queue, weight in change.weights.items():
        updates.append((_path_of(_WEIGHT_PATH, interface).set("input", id=queue), weight))
    return updates, deletes


def _path_of(path: str, interface: str) -> GNMIPath:
    """A leaf of one port."""
    if path.startswith("qos"):
        return GNMIPath(path).set("scheduler-policy", name=interface).set("scheduler", sequence=1)
    return GNMIPath(path).set("interface", name=interface)
