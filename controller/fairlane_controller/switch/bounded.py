# SPDX-License-Identifier: Apache-2.0
"""finsy's switch connection with bounded memory: what comes faster than it is handled is counted and let go, undecoded.

All that we override in finsy, or reach into, is here, so its version is pinned (controller/pyproject.toml). A new version is looked
through for these names:

| of finsy | why |
|---|---|
| `Switch`, which is final | there is no other place for the overrides |
| `Switch._stream_digest_message` (overridden), `_digest_queues` | finsy decodes each digest list first and then drops it without a count where its queue is full |
| `Switch._start_gnmi` (overridden) | finsy subscribes to every port with each connection |
| `Switch._p4client` | requests that finsy has no method for: the cookie, a ping with a time limit |
| `Switch.__aexit__`, `_receive_until_closed` (overridden), `_is_channel_up`, `P4Client._stream` | finsy cancels its stream, and gRPC hands the end of a cancelled call to an event loop that may be closed by then |
| `P4Client._stub`, `Switch._arbitrator` | a read with a time limit, whose answer is decoded in pieces |
| `p4client.GRPCOptions` (replaced), `to_native` (overridden) | finsy takes messages of 4 MB at most, and BMv2 sends a whole table as one message |
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterable, Callable, Sequence
from typing import Any, NoReturn, cast

import grpc
from finsy import P4ClientError, Switch, p4client
from finsy.grpcutil import GRPCOptions
from finsy.p4client import P4Client
from finsy.p4entity import P4DigestList, P4Entity, decode_entity, encode_entities
from finsy.p4schema import P4BitsType, P4Schema, P4StructType
from finsy.proto import p4r

from fairlane_controller.errors import ErrorCode

READ_TIMEOUT_S = 60.0
"Until the last answer to a read."
END_TIMEOUT_S = 1.0
"Until the switch has ended a stream in which nothing more comes."


class _AnySize(GRPCOptions):
    """finsy's options, without its limit of 4 MB for a message."""

    def to_native(self) -> Any:
        """As gRPC takes them."""
        return [*super().to_native(), ("grpc.max_receive_message_length", -1)]


p4client.GRPCOptions = _AnySize  # pyright: ignore[reportPrivateImportUsage]  # `P4Client.open` takes no options


def decode_digest(digest: p4r.DigestList, schema: P4Schema) -> P4DigestList:
    """As `P4DigestList.decode`, some times faster for a struct of plain numbers, which every digest of ours is."""
    known = schema.digests[digest.digest_id]
    members = known.type_spec.members if isinstance(known.type_spec, P4StructType) else {}
    if not members or not all(isinstance(member, P4BitsType) for member in members.values()):
        return P4DigestList.decode(p4r.StreamMessageResponse(digest=digest), schema)
    number = int.from_bytes
    data: list[Any] = [
        dict(zip(members, [number(member.bitstring, "big") for member in item.struct.members], strict=True))
        for item in digest.data
    ]
    return P4DigestList(known.alias, list_id=digest.list_id, timestamp=digest.timestamp, data=data)


DECODED_AT_ONCE = 1000
"Entities; then others have a turn."

OnProgress = Callable[[], None]


class BoundedSwitch(Switch):  # pyright: ignore[reportGeneralTypeIssues]  # "final" to type checkers only
    """Decodes a digest list only when its listener has room for it; a flood costs no memory and no arbitration message."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.digests_lost: Counter[str] = Counter()
        "Values that were dropped because a queue was full, by the digest's name; the switch repeats a digest that is not acknowledged."
        self._is_closing = False

    async def __aexit__(self, *error: Any) -> bool | None:
        """End the connection: the stream first, which the switch ends then, so that nothing of it comes later."""
        stream: Any = self._p4client and self._p4client._stream  # pyright: ignore[reportPrivateUsage]
        if self._is_channel_up and stream is not None and not stream.done():
            self._is_closing = True
            ends: list[Any] = [stream.done_writing(), stream.code()]
            ended = asyncio.gather(*ends, return_exceptions=True)
            await asyncio.wait([ended], timeout=END_TIMEOUT_S)
            ended.cancel()
        return await super().__aexit__(*error)

    async def _receive_until_closed(self) -> NoReturn:
        try:
            await super()._receive_until_closed()
        except RuntimeError:  # finsy's for the end of the stream
            if not self._is_closing:
                raise
            raise asyncio.CancelledError from None

    def _stream_digest_message(self, msg: p4r.StreamMessageResponse) -> None:
        digest = msg.digest
        try:
            name = self.p4info.digests[digest.digest_id].alias
        except (KeyError, ValueError):  # before the P4Info is known, or of another program
            return
        queue = self._digest_queues.get(name)
        if queue is None or queue.full():
            self.digests_lost[name] += len(digest.data)
            return
        queue.put_nowait(decode_digest(digest, self.p4info))

    async def _start_gnmi(self) -> None:
        """finsy would subscribe to every port here; ports are `gnmi/`'s, and a connection is there for P4Runtime."""

    async def read_all(self, entities: Sequence[P4Entity], on_progress: OnProgress) -> list[P4Entity]:
        """All that a read finds. The answers are taken in first and decoded then, a piece at a time: so a table of 65,536
        entries neither holds up the rest of the loop nor runs into the deadline while we are at work; `on_progress` is called
        with each piece that came, or was decoded. Raises P4ClientError."""
        stub: Any = self._connected()._stub  # pyright: ignore[reportPrivateUsage]
        request = p4r.ReadRequest(device_id=self.device_id, entities=encode_entities(entities, self.p4info))
        self._arbitrator.complete_request(request)
        call = cast("Callable[..., AsyncIterable[p4r.ReadResponse]]", stub.Read)
        answers: list[p4r.ReadResponse] = []
        try:
            async for answer in call(request, timeout=READ_TIMEOUT_S):
                answers.append(answer)
                on_progress()
        except grpc.RpcError as ex:
            raise P4ClientError(ex, "ReadRequest", msg=request, schema=self.p4info) from None
        found: list[P4Entity] = []
        for answer in answers:
            for start in range(0, len(answer.entities), DECODED_AT_ONCE):
                piece = answer.entities[start : start + DECODED_AT_ONCE]
                found += [cast("P4Entity", decode_entity(entity, self.p4info)) for entity in piece]
                on_progress()
                await asyncio.sleep(0)
        return found

    async def ping(self, timeout_s: float) -> None:
        """One small request. Raises P4ClientError, also when it is not answered in time.

        gRPC has the time limit: in Python 3.11 `asyncio.wait_for` loses a cancellation that comes with the answer.
        """
        stub: Any = self._connected()._stub  # pyright: ignore[reportPrivateUsage]
        try:
            await stub.Capabilities(p4r.CapabilitiesRequest(), timeout=timeout_s)
        except grpc.RpcError as ex:
            raise P4ClientError(ex, "CapabilitiesRequest") from None

    async def cookie(self) -> int | None:
        """The cookie of the program that the switch runs; None where it has none. Raises P4ClientError."""
        kind = p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY
        request = p4r.GetForwardingPipelineConfigRequest(device_id=self.device_id, response_type=kind)
        config = (await self._connected().request(request)).config
        return config.cookie.cookie if config.HasField("cookie") else None

    def _connected(self) -> P4Client:
        client = self._p4client
        if client is None or client._stub is None:  # pyright: ignore[reportPrivateUsage]
            raise ErrorCode.SWITCH_UNREACHABLE(f"switch {self.name} is not connected")
        return client
