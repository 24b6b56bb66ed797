# SPDX-License-Identifier: Apache-2.0
"""A `SwitchClient` whose switch is in the simulation: finsy's entities and encoders over `native.P4Runtime`, without gRPC.

`SimSwitch` stands where the client has finsy's `Switch` and does what that one does on a connection that never breaks, as a
controller that is always the primary. A call takes no virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, cast

import grpc
from fairlane_controller.switch.bounded import BoundedSwitch, decode_digest
from fairlane_controller.switch.client import Endpoint, SwitchClient
from finsy import P4ClientError, P4Schema
from finsy.p4entity import P4DigestList, decode_entity, decode_stream, encode_entities, encode_updates
from finsy.proto import p4r

DEVICE_ID = 1
_STATUS_CODES = {code.value[0]: code for code in grpc.StatusCode}


class _Events:
    """Where finsy's switch has its event emitter: this connection has no events."""

    def add_listener(self, event: Any, listener: Any) -> None:
        """Nothing ever calls it."""


class SimSwitch:
    """One simulated switch, with the methods of finsy's `Switch` that the controller uses."""

    is_primary = True
    primary_id = 1

    def __init__(self, name: str, transport: Any, schema: P4Schema, error: type[Exception]) -> None:
        """`transport` is a `native.P4Runtime` (serialized messages in and out), `error` the type of what it raises."""
        self.name = name
        self.p4info = schema
        self.ee = _Events()
        self._transport = transport
        self._error = error
        self._queues: dict[Any, asyncio.Queue[Any]] = {}
        "Of each kind of message, or of a digest's number, that has a listener."
        self._eth_types: frozenset[int] = frozenset()
        "Packet-ins that have one."

    async def __aexit__(self, *_: object) -> None:
        """A client goes; the switch stays."""

    # ---- calls -------------------------------------------------------------------------------------------------

    async def read_all(self, entities: Sequence[Any], on_progress: Callable[[], None]) -> list[Any]:
        """Entities that match; raises P4ClientError."""
        request = p4r.ReadRequest(device_id=DEVICE_ID, entities=encode_entities(entities, self.p4info))
        answers = self._call("ReadRequest", self._transport.read, request) if entities else ()
        on_progress()
        found = [entity for answer in answers for entity in p4r.ReadResponse.FromString(answer).entities]
        return [decode_entity(entity, self.p4info) for entity in found]

    async def ping(self, timeout_s: float) -> None:
        """It always answers."""

    async def cookie(self) -> None:
        """The program came with the run, without one; it does not restart."""

    async def write(self, entities: Iterable[Any]) -> None:
        """One batch of updates; messages of the stream go at once. Raises P4ClientError."""
        updates: list[p4r.Update] = []
        for message in encode_updates(entities, self.p4info):
            if isinstance(message, p4r.StreamMessageRequest):
                self._call("send", self._transport.send, message)
            else:
                updates.append(message)
        if updates:
            request = p4r.WriteRequest(device_id=DEVICE_ID, updates=updates)
            self._call("WriteRequest", self._transport.write, request)

    def _call(self, operation: str, call: Callable[[bytes], Any], request: Any) -> Any:
        try:
            return call(request.SerializeToString())
        except self._error as problem:
            raise P4ClientError(_rpc_error(problem), operation, msg=request, schema=self.p4info) from None

    # ---- what it sends by itself ---------------------------------------------------------------------------------

    def deliver(self) -> None:
        """Deliver the switch's messages since the last call to their listeners; messages without a listener are dropped."""
        for data in self._transport.messages():
            message = p4r.StreamMessageResponse.FromString(data)
            kind = message.WhichOneof("update")
            if kind == "error":
                raise RuntimeError(f"switch {self.name} refused a stream message: {message.error.message}")
            if kind == "packet" and int.from_bytes(message.packet.payload[12:14], "big") not in self._eth_types:
                continue
            queue = self._queues.get(message.digest.digest_id if kind == "digest" else kind)
            if queue is not None and kind == "digest":
                queue.put_nowait(decode_digest(message.digest, self.p4info))
            elif queue is not None:
                queue.put_nowait(decode_stream(message, self.p4info))

    async def _listen(self, key: Any, size: int) -> AsyncIterator[Any]:
        if key in self._queues:
            raise ValueError(f"somebody listens already: {key}")
        queue = self._queues[key] = asyncio.Queue[Any](size)
        try:
            while True:
                yield await queue.get()
        finally:
            del self._queues[key]

    def read_digests(self, digest_id: str, *, queue_size: int = 0) -> AsyncIterator[P4DigestList]:
        """Lists of a digest from now on; one listener for each digest."""
        return self._listen(self.p4info.digests[digest_id].id, queue_size)

    def read_packets(self, *, queue_size: int = 0, eth_types: Iterable[int] | None = None) -> AsyncIterator[Any]:
        """Packet-ins of these EtherTypes from now on; one listener."""
        self._eth_types = frozenset(eth_types or ())
        return self._listen("packet", queue_size)

    def read_idle_timeouts(self, *, queue_size: int = 0) -> AsyncIterator[Any]:
        """Idle notifications from now on; one listener."""
        return self._listen("idle_timeout_notification", queue_size)


def _rpc_error(problem: Any) -> grpc.aio.AioRpcError:
    """The gRPC error that a server would have answered with."""
    details = [("grpc-status-details-bin", bytes(problem.details))] if problem.details else []
    code = _STATUS_CODES.get(int(problem.code), grpc.StatusCode.UNKNOWN)
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*details), details=str(problem.message))


class SimClient(SwitchClient):
    """`SwitchClient` on a switch that is in the simulation: no probe, no handshake, and always the primary."""

    def __init__(self, endpoint: Endpoint, *, find: Callable[[str], SimSwitch], **options: Any) -> None:
        """`find` gives the switch of a name; `options` are `SwitchClient`'s."""
        super().__init__(endpoint, **options)
        self._find = find

    async def _connect(self, timeout_s: float) -> None:  # noqa: ARG002
        self._switch = cast("BoundedSwitch", self._find(self.endpoint.name))
        for event in (self.disconnected, self.down, self.promoted):
            event.clear()
