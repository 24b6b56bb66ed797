# SPDX-License-Identifier: Apache-2.0
"""finsy's switch connection with bounded memory: what comes faster than it is handled is counted and let go, undecoded."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable
from typing import Any, cast

from finsy import P4Schema, Switch
from finsy.p4entity import P4DigestList
from finsy.p4schema import P4BitsType, P4StructType
from finsy.proto import p4r

from fairlane_controller.errors import ErrorCode, FairlaneError


class BoundedSwitch(Switch):  # pyright: ignore[reportGeneralTypeIssues]  # "final" to type checkers only
    """Decodes a digest list only when its listener has room for it; a flood costs no memory and no arbitration message."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.digests_received: Counter[str] = Counter()
        "Values of each digest that the switch sent, by the digest's name."
        self.digests_lost: Counter[str] = Counter()
        "Those among them that nobody had room for; the switch tells a flow again when it is not acknowledged."
        self._members: dict[int, list[str] | None] = {}

    def _stream_digest_message(self, msg: p4r.StreamMessageResponse) -> None:
        digest = msg.digest
        try:
            name = self.p4info.digests[digest.digest_id].alias
        except (KeyError, ValueError):  # before the P4Info is known, or of another program
            return
        self.digests_received[name] += len(digest.data)
        queue = self._digest_queues.get(name)
        if queue is None or queue.full():
            self.digests_lost[name] += len(digest.data)
            return
        queue.put_nowait(self._decode(digest, name))

    def _decode(self, digest: p4r.DigestList, name: str) -> P4DigestList:
        """As `P4DigestList.decode`, some times faster for a struct of plain numbers, which every digest of ours is."""
        if digest.digest_id not in self._members:
            self._members[digest.digest_id] = plain_members(self.p4info, name)
        members = self._members[digest.digest_id]
        if members is None:
            return P4DigestList.decode(p4r.StreamMessageResponse(digest=digest), self.p4info)
        number = int.from_bytes
        data: list[Any] = [
            dict(zip(members, [number(member.bitstring, "big") for member in item.struct.members], strict=True))
            for item in digest.data
        ]
        return P4DigestList(name, list_id=digest.list_id, timestamp=digest.timestamp, data=data)

    async def _start_gnmi(self) -> None:
        """finsy would subscribe to every port here; ports are `gnmi/`'s, and a connection is there for P4Runtime."""

    async def ping(self, timeout_s: float) -> None:
        """One small request; raises SWITCH_UNREACHABLE (TimeoutError's sentence) or P4ClientError when it is not answered."""
        client = self._p4client
        if client is None:
            raise FairlaneError(ErrorCode.SWITCH_UNREACHABLE, f"switch {self.name} is not connected")
        try:
            await asyncio.wait_for(
                cast("Awaitable[Any]", client.request(cast("Any", p4r.CapabilitiesRequest()))), timeout_s
            )
        except (TimeoutError, asyncio.TimeoutError):
            raise FairlaneError(
                ErrorCode.SWITCH_UNREACHABLE,
                f"switch {self.name} at {self.address} does not answer within {timeout_s:g} s: the connection is silent",
            ) from None


def plain_members(schema: P4Schema, name: str) -> list[str] | None:
    """The member names of a digest that is a struct of bit<> fields; None for any other."""
    spec = schema.digests[name].type_spec
    if not isinstance(spec, P4StructType):
        return None
    members = spec.members
    return list(members) if all(isinstance(member, P4BitsType) for member in members.values()) else None
