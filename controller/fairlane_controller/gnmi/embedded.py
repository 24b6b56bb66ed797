# SPDX-License-Identifier: Apache-2.0
"""The ports of the embedded switch over gNMI (finsy's client), under OpenConfig's paths (`switch/README.md` lists them)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Any, TypeVar

import grpc
from finsy import GNMIClient, GNMIPath, GRPCStatusCode
from finsy.gnmiclient import GNMIClientError, GNMISetValueType, GNMIUpdate

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.accounts import PacketAccounts
from fairlane_controller.gnmi.ports import PortChange, PortInfo, PortUpdate, QueueInfo, find_port
from fairlane_controller.switch.client import Endpoint
from fairlane_controller.switch.security import check_handshake
from fairlane_controller.units import format_rate

TIMEOUT_S = 5.0
MESSAGE_BYTES_MAX = 64 << 20
"""A port may have 4096 queues, which are 3 MB."""
_T = TypeVar("_T")

_INTERFACES = GNMIPath("interfaces/interface")
_SHAPERS = GNMIPath("qos/scheduler-policies/scheduler-policy/schedulers/scheduler/one-rate-two-color/config")
_QUEUES = GNMIPath("qos/interfaces/interface/output/queues/queue/state")
_WEIGHTS = GNMIPath("qos/scheduler-policies/scheduler-policy/schedulers/scheduler/inputs/input/config/weight")
_SWITCH = GNMIPath("switch")
_WATCHED = (
    GNMIPath("interfaces/interface/config"),
    GNMIPath("interfaces/interface/state/admin-status"),
    GNMIPath("interfaces/interface/state/oper-status"),
    GNMIPath("interfaces/interface/port/config"),
    _SHAPERS,
)
_COUNTED = (GNMIPath("interfaces/interface/state/counters"), GNMIPath("interfaces/interface/port/state"))

# Leaf of `interfaces/interface` to the field of PortInfo.
_STATE_LEAVES = {
    "in-pkts": "received_packets",
    "in-octets": "received_bytes",
    "out-pkts": "sent_packets",
    "out-octets": "sent_bytes",
    "out-discards": "dropped_packets",
    "out-errors": "send_errors",
}
_PORT_LEAVES = {
    "link-layer": "link_layer",
    "scheduler": "scheduler",
    "queues": "queues",
    "queue-cells": "queue_cells",
    "port-packets": "port_packets",
    "port-bytes": "port_bytes",
    "port-cells": "port_cells",
    "waiting-packets": "waiting_packets",
    "waiting-bytes": "waiting_bytes",
    "waiting-cells": "waiting_cells",
}
_SHAPER_LEAVES = {"cir": "rate_bps", "max-queue-depth-packets": "queue_packets", "max-queue-depth-bytes": "queue_bytes"}
_QUEUE_LEAVES = {
    "transmit-pkts": "sent_packets",
    "transmit-octets": "sent_bytes",
    "dropped-pkts": "dropped_packets",
    "dropped-octets": "dropped_bytes",
    "max-queue-len": "max_waiting_bytes",
    "waiting-packets": "waiting_packets",
    "waiting-bytes": "waiting_bytes",
    "waiting-cells": "waiting_cells",
}
_LIMITS = ("rate_bps", "queue_bytes", "queue_cells", "port_packets", "port_bytes", "port_cells")


class GnmiPorts:
    """`async with GnmiPorts(endpoint) as ports:`; raises FairlaneError only."""

    def __init__(self, endpoint: Endpoint, *, timeout_s: float = TIMEOUT_S) -> None:
        self.endpoint = endpoint
        self._timeout_s = timeout_s
        self._client = GNMIClient(endpoint.grpc)
        self._channel: grpc.aio.Channel | None = None

    async def open(self) -> None:
        """Connect; raises TLS_FAILED, SWITCH_UNREACHABLE, and REFUSED where no gNMI is served."""
        if self.endpoint.tls is not None:
            host, port = self.endpoint.host_port
            await check_handshake(str(self.endpoint), host, port, self.endpoint.tls, self._timeout_s)
        tls, limit = self.endpoint.tls, [("grpc.max_receive_message_length", MESSAGE_BYTES_MAX)]
        if tls is None:
            self._channel = grpc.aio.insecure_channel(self.endpoint.grpc, options=limit)
        else:
            credentials = tls.credentials().to_client_credentials()
            self._channel = grpc.aio.secure_channel(self.endpoint.grpc, credentials, options=limit)
        await self._client.open(channel=self._channel)
        try:
            await self._call(self._client.capabilities())
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End the connection."""
        await self._client.close()
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    async def __aenter__(self) -> GnmiPorts:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def ports(self, *, queues: bool = False) -> list[PortInfo]:
        """All ports by number, the CPU port left out; with `queues` each queue too."""
        paths = (_INTERFACES, _SHAPERS, _QUEUES, _WEIGHTS) if queues else (_INTERFACES, _SHAPERS)
        return ports_of(await self._call(self._client.get(*paths)))

    async def accounts(self) -> PacketAccounts:
        """Where every packet of the switch is."""
        leaves: list[tuple[str, str | None, Any]] = []
        for update in await self._call(self._client.get(_SWITCH)):
            named = any(elem.name == "drop" for elem in update.path.path.elem)
            reason = update.path["drop", "reason"] if named else None
            leaves.append((update.path.last, reason, _value_of(update)))
        found = PacketAccounts.from_leaves(leaves)
        if found is None:
            raise FairlaneError(
                ErrorCode.REFUSED, f"{self.endpoint} keeps no accounts of its packets: it is an older switch"
            )
        return found

    async def set_port(self, port: int, change: PortChange, *, dry_run: bool = False) -> list[str]:
        """Change what is named in one Set, which the switch takes whole or not at all."""
        before = find_port(await self.ports(), port, self.endpoint)
        assert before.interface is not None
        if dry_run and change.queues is not None and before.queues is not None and change.queues < before.queues:
            raise FairlaneError(
                ErrorCode.BAD_INPUT,
                f"{self.endpoint}: {change.queues} queues are fewer than its {before.queues}; queues can only be added while it runs",
            )
        updates, deletes = set_of(before.interface, change)
        told = [f"/{path} = {value}" for path, value in updates] + [f"/{path} deleted" for path in deletes]
        if not dry_run and told:
            await self._call(self._client.set(update=updates or None, delete=deletes or None))
        return told

    async def subscribe(self, *, interval_s: float | None = None) -> AsyncIterator[PortUpdate]:
        """What is now, then changes of options and link states; with an interval the counters as well, as often."""
        subscription = self._client.subscribe()
        subscription.on_change(*_WATCHED)
        if interval_s is not None:
            subscription.sample(*_COUNTED, sample_interval=round(interval_s * 1e9))
        try:
            async for update in subscription.synchronize():
                yield _update_of(update)
            async for update in subscription.updates():
                yield _update_of(update)
        except GNMIClientError as ex:
            raise self._translate(ex) from None
        except asyncio.CancelledError:
            subscription.cancel()
            raise
        raise FairlaneError(ErrorCode.SWITCH_UNREACHABLE, f"{self.endpoint} ended the subscription")

    async def _call(self, call: Awaitable[_T]) -> _T:
        try:
            return await asyncio.wait_for(call, self._timeout_s)
        except GNMIClientError as ex:
            raise self._translate(ex) from None
        except (TimeoutError, asyncio.TimeoutError):
            raise FairlaneError(
                ErrorCode.SWITCH_UNREACHABLE, f"{self.endpoint} does not answer within {self._timeout_s:g} s"
            ) from None
        except grpc.RpcError as ex:
            raise FairlaneError(ErrorCode.SWITCH_UNREACHABLE, f"{self.endpoint}: {ex}") from None

    def _translate(self, error: GNMIClientError) -> FairlaneError:
        match error.code:
            case GRPCStatusCode.UNAVAILABLE | GRPCStatusCode.DEADLINE_EXCEEDED:
                reason = error.message.rsplit("last error: ", 1)[-1].rsplit(": ", 1)[-1].lower()
                return FairlaneError(ErrorCode.SWITCH_UNREACHABLE, f"{self.endpoint} does not answer: {reason}")
            case GRPCStatusCode.INVALID_ARGUMENT:
                code = ErrorCode.BAD_INPUT
            case GRPCStatusCode.NOT_FOUND:
                code = ErrorCode.UNKNOWN_NAME
            case GRPCStatusCode.UNIMPLEMENTED if not error.message or "method" in error.message.lower():
                return FairlaneError(
                    ErrorCode.REFUSED, f"{self.endpoint} serves no gNMI: it is another switch, or an older one of ours"
                )
            case _:
                code = ErrorCode.REFUSED
        return FairlaneError(code, f"{self.endpoint}: {error.message}")


def _value_of(update: GNMIUpdate) -> Any:
    """JSON in bytes becomes its value."""
    value = update.value
    return json.loads(value) if isinstance(value, bytes) else value


def _interface_of(path: GNMIPath) -> str | None:
    for elem in path.path.elem:
        for key in ("name", "interface-id"):
            if elem.name in ("interface", "scheduler-policy") and key in elem.key:
                return elem.key[key]
    return None


def _update_of(update: GNMIUpdate) -> PortUpdate:
    return PortUpdate(
        _interface_of(update.path) or "", update.path.last, _value_of(update), str(update.path), update.timestamp
    )


def ports_of(updates: Sequence[GNMIUpdate]) -> list[PortInfo]:
    """Leaves put together; the CPU port is left out."""
    found: dict[str, dict[str, Any]] = {}
    drops: dict[str, dict[str, int]] = {}
    queues: dict[str, dict[int, dict[str, int]]] = {}
    for update in updates:
        path, interface, value = update.path, _interface_of(update.path), _value_of(update)
        if interface is None:
            continue
        port, leaf, names = found.setdefault(interface, {}), path.last, [elem.name for elem in path.path.elem]
        if "queue" in names or "input" in names:
            number = int(path["queue", "name"] if "queue" in names else path["input", "id"])
            queue = queues.setdefault(interface, {}).setdefault(number, {})
            if leaf in _QUEUE_LEAVES or leaf == "weight":
                queue[_QUEUE_LEAVES.get(leaf, leaf)] = int(value)
        elif "drops" in names:
            if leaf == "packets" and value:
                drops.setdefault(interface, {})[path["drop", "reason"]] = int(value)
        elif names[0] == "qos":
            if leaf in _SHAPER_LEAVES:
                port[_SHAPER_LEAVES[leaf]] = int(value)
        elif "port" in names:
            if leaf in _PORT_LEAVES:
                port[_PORT_LEAVES[leaf]] = value
        elif leaf in _STATE_LEAVES:
            port[_STATE_LEAVES[leaf]] = int(value)
        elif leaf in ("ifindex", "cpu"):
            port[leaf] = value
        elif leaf in ("admin-status", "oper-status"):
            port[leaf.replace("-status", "_up")] = value == "UP"
    ports: list[PortInfo] = []
    for interface, port in found.items():
        number, cpu = port.pop("ifindex", None), port.pop("cpu", False)
        if number is None or cpu:
            continue
        listed = tuple(QueueInfo(n, **leaves) for n, leaves in sorted(queues.get(interface, {}).items()))
        port.setdefault("rate_bps", 0)
        ports.append(
            replace(PortInfo(int(number), interface), **port, drops=drops.get(interface, {}), queue_list=listed)
        )
    return sorted(ports, key=lambda one: one.port)


def set_of(interface: str, change: PortChange) -> tuple[list[tuple[GNMIPath, GNMISetValueType]], list[GNMIPath]]:
    """Updates and deletes of one Set; a limit of 0 is a leaf that is deleted."""
    one = GNMIPath("interfaces/interface").set("interface", name=interface)
    port = one / "port/config"
    scheduler = GNMIPath("qos/scheduler-policies/scheduler-policy/schedulers/scheduler")
    scheduler = scheduler.set("scheduler-policy", name=interface).set("scheduler", sequence=1)
    shaper = scheduler / "one-rate-two-color/config"
    places = {
        "enabled": one / "config/enabled",
        "rate_bps": shaper / "cir",
        "queue_packets": shaper / "max-queue-depth-packets",
        "queue_bytes": shaper / "max-queue-depth-bytes",
        **{name: port / leaf for leaf, name in _PORT_LEAVES.items() if not name.startswith("waiting")},
    }
    updates: list[tuple[GNMIPath, GNMISetValueType]] = []
    deletes: list[GNMIPath] = []
    for name, value in change.values_by_name.items():
        if name == "weights":
            continue
        if value == 0 and name in _LIMITS:
            deletes.append(places[name])
        else:
            updates.append((places[name], value))
    for queue, weight in change.weights.items():
        updates.append(((scheduler / "inputs/input/config/weight").set("input", id=queue), weight))
    return updates, deletes


def describe(change: PortChange) -> str:
    """`rate 2 Mbit/s, queue packets 100`, for people."""
    parts: list[str] = []
    for name, value in change.values_by_name.items():
        if name == "rate_bps":
            parts.append(f"rate {format_rate(value) if value else 'unlimited'}")
        elif name == "enabled":
            parts.append("up" if value else "down")
        elif name == "weights":
            parts += [f"weight of queue {queue} {weight}" for queue, weight in value.items()]
        elif value == 0:
            parts.append(f"{name.replace('_', ' ')} unlimited")
        else:
            parts.append(f"{name.replace('_', ' ')} {value}")
    return ", ".join(parts)
