# SPDX-License-Identifier: Apache-2.0
"""Probes and acknowledgements share one stream: two writes at a time would break it (grpc.aio: "Internal error from Core")."""

from __future__ import annotations

import asyncio
from typing import Any

from fairlane_controller.switch.client import Endpoint, SwitchClient


class OneAtATime:
    """A stream as grpc.aio has it."""

    def __init__(self) -> None:
        self.writing = False
        self.written: list[Any] = []

    async def write(self, messages: list[Any]) -> None:
        """Fails when another write is not done."""
        assert not self.writing, "two writes at a time"
        self.writing = True
        for message in messages:
            await asyncio.sleep(0)
            self.written.append(message)
        self.writing = False


async def test_two_senders_take_turns() -> None:
    client, stream = SwitchClient(Endpoint("s1", "127.0.0.1:1")), OneAtATime()
    client._switch = stream  # type: ignore[assignment]  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]
    await asyncio.gather(*(client.send([(n, 0), (n, 1)]) for n in range(5)))
    assert stream.written == [(n, part) for n in range(5) for part in range(2)]
