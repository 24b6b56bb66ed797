# SPDX-License-Identifier: Apache-2.0
"""The ports of the embedded switch over gNMI (finsy's client), under OpenConfig's paths (`switch/crates/gnmi/src/schema.rs` lists them)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any, TypeVar

import grpc
from finsy import GNMIClient, GNMIPath, GRPCStatusCode
from finsy.gnmiclient import GNMIClientError, GNMISetValueType, GNMIUpdate

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.accounts import PacketAccounts
from fairlane_controller.gnmi.ports import (
    SCHEDULER_PATH,
    SHAPER_PATH,
    PortChange,
    PortInfo,
    PortsClient,
    PortUpdate,
    QueueInfo,
    find_port,
    leaves_of,
)
from fairlane_controller.switch.client import Endpoint

TIMEOUT_S = 5.0
MESSAGE_BYTES_MAX = 64 << 20
"""A port may have 4096 queues, which are 3 MB."""
_T = TypeVar("_T")

_INTERFACES = GNMIPath("interfaces/interface")
_SHAPERS = GNMIPath(SHAPER_PATH)
_QUEUES = GNMIPath("qos/interfaces/interface/output/queues/queue/state")
_WEIGHT_PATH = f"{SCHEDULER_PATH}/inputs/input/config/weight"
_WEIGHTS = GNMIPath(_WEIGHT_PATH)
_SWITCH = GNMIPath("switch")
_WATCHED = (
    GNMIPath("interfaces/interface/config"),
    GNMIPath("interfaces/interface/state/admin-status"),
    GNMIPath("interfaces/interface/state/oper-status"),
    GNMIPath("interfaces/interface/port/config"),
    _SHAPERS,
)
_COUNTED = (GNMIPath("interfaces/interface/state/counters"), GNMIPath("interfaces/interface/port/state"))

_QUEUE_LEAVES = leaves_of(QueueInfo)
_PORT_LEAVES = leaves_of(PortInfo)


class GnmiPorts(PortsClient):
    """`async with GnmiPorts(endpoint) as ports:`; raises FairlaneError only."""

    def __init__(self, endpoint: Endpoint, *, timeout_s: float = TIMEOUT_S) -> None:
        self.endpoint = endpoint
        self._timeout_s = timeout_s
        self._client = GNMIClient(endpoint.grpc)
        self._channel: grpc.aio.Channel | None = None

    async def open(self) -> None:
        """Connect; raises TLS_FAILED, SWITCH_UNREACHABLE, and REFUSED where no gNMI is served."""
        if self.endpoint.tls is not None:
            await self.endpoint.check(self._timeout_s, self._timeout_s)
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
        port, leaf, names = found.setdefault(interface, {}), path.last, {elem.name for elem in path.path.elem}
        if names & {"queue", "input"}:
            number = int(path["queue", "name"] if "queue" in names else path["input", "id"])
            queue = queues.setdefault(interface, {}).setdefault(number, {})
            if leaf in _QUEUE_LEAVES:
                queue[_QUEUE_LEAVES[leaf]] = int(value)
        elif "drops" in names:
            if leaf == "packets" and value:
                drops.setdefault(interface, {})[path["drop", "reason"]] = int(value)
        elif leaf in _PORT_LEAVES:
            name = _PORT_LEAVES[leaf]
            port[name] = value if name in PortChange.options and PortChange.options[name].words else int(value)
        elif leaf in ("ifindex", "cpu"):
            port[leaf] = value
        elif leaf in ("admin-status", "oper-status"):
            port[leaf.replace("-status", "_up")] = value == "UP"
    ports: list[PortInfo] = []
    for interface, port in found.items():
        number, cpu = port.pop("ifindex", None), port.pop("cpu", False)
        if number is not None and not cpu:
            listed = tuple(QueueInfo(n, **leaves) for n, leaves in sorted(queues.get(interface, {}).items()))
            values: dict[str, Any] = {"rate_bps": 0, **port, "drops": drops.get(interface, {}), "queue_list": listed}
            ports.append(PortInfo(int(number), interface, **values))
    return sorted(ports, key=lambda one: one.port)


def set_of(interface: str, change: PortChange) -> tuple[list[tuple[GNMIPath, GNMISetValueType]], list[GNMIPath]]:
    """Updates and deletes of one Set; a limit of 0 is a leaf that is deleted."""
    updates: list[tuple[GNMIPath, GNMISetValueType]] = []
    deletes: list[GNMIPath] = []
    for name, option in change.options.items():
        value = getattr(change, name)
        if value == 0 and option.may_be_unlimited:
            deletes.append(_path_of(option.path, interface))
        elif value is not None:
            updates.append((_path_of(option.path, interface), value))
    for queue, weight in change.weights.items():
        updates.append((_path_of(_WEIGHT_PATH, interface).set("input", id=queue), weight))
    return updates, deletes


def _path_of(path: str, interface: str) -> GNMIPath:
    """A leaf of one port."""
    if path.startswith("qos"):
        return GNMIPath(path).set("scheduler-policy", name=interface).set("scheduler", sequence=1)
    return GNMIPath(path).set("interface", name=interface)
