# SPDX-License-Identifier: Apache-2.0
"""A P4Runtime client for tests: finsy's client, schema and entities behind plain blocking calls.

The client runs an event loop in a thread of its own; every call has a time limit.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import finsy as fy
from finsy.p4client import P4Client
from finsy.p4entity import P4IdleTimeoutNotification, decode_entity, decode_stream, encode_entities, encode_updates
from finsy.p4schema import P4Schema
from finsy.proto import U128, p4r

R = TypeVar("R")

CALL_TIMEOUT_S = 20.0


class TimedOut(AssertionError):
    """Something that a test waited for did not come in time."""


@dataclass(frozen=True)
class Pipeline:
    """The two files of a compiled P4 program."""

    p4info: Path
    json: Path


class P4RuntimeClient:
    """One primary client of one switch.

    `write`, `read` and `send_packet_out` take and return finsy's entities. What the switch sends by itself waits
    in `packets`, `digests` and `idle_timeouts`.
    """

    def __init__(self, address: str, device_id: int, pipeline: Pipeline) -> None:
        self.packets: queue.Queue[fy.P4PacketIn] = queue.Queue()
        self.digests: queue.Queue[fy.P4DigestList] = queue.Queue()
        self.idle_timeouts: queue.Queue[P4IdleTimeoutNotification] = queue.Queue()
        self.schema = P4Schema(pipeline.p4info, pipeline.json)
        self._device_id = device_id
        self._election_id = time.time_ns() // 1000
        self._client = P4Client(address, wait_for_ready=False)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="p4runtime", daemon=True)
        self._thread.start()
        self._call(self._open())
        self._reader = asyncio.run_coroutine_threadsafe(self._receive_forever(), self._loop)

    def close(self) -> None:
        """Closes the connection and ends the thread."""
        self._reader.cancel()
        self._call(self._client.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CALL_TIMEOUT_S)
        self._loop.close()

    def set_pipeline(self) -> None:
        """VERIFY_AND_COMMIT: the program with empty tables, counters and registers."""
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self._device_id,
            election_id=U128.encode(self._election_id),
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=self.schema.get_pipeline_config(),
        )
        self._call(self._client.request(request))

    def write(self, *updates: Any) -> None:
        """Writes one batch; raises finsy's P4ClientError when the switch refuses any of it."""
        request = p4r.WriteRequest(
            device_id=self._device_id,
            election_id=U128.encode(self._election_id),
            updates=[u for u in encode_updates(updates, self.schema) if isinstance(u, p4r.Update)],
        )
        self._call(self._client.request(request))

    def read(self, *entities: Any) -> list[Any]:
        """Reads what the entities name, in the switch's order."""
        return self._call(self._read(p4r.ReadRequest(entities=encode_entities(entities, self.schema))))

    def send_packet_out(self, payload: bytes, egress_port: int) -> None:
        message = fy.P4PacketOut(payload, egress_port=egress_port, _pad=0)
        self._call(self._client.send(message.encode_update(self.schema)))

    def acknowledge(self, digests: fy.P4DigestList) -> None:
        self._call(self._client.send(digests.ack().encode_update(self.schema)))

    def flush(self) -> None:
        """Forgets what has arrived."""
        for waiting in (self.packets, self.digests, self.idle_timeouts):
            while not waiting.empty():
                waiting.get_nowait()

    async def _open(self) -> None:
        def complete(message: Any) -> None:
            if hasattr(message, "device_id"):
                message.device_id = self._device_id

        await self._client.open(schema=self.schema, complete_request=complete)
        await self._client.send(
            p4r.StreamMessageRequest(
                arbitration=p4r.MasterArbitrationUpdate(
                    device_id=self._device_id, election_id=U128.encode(self._election_id)
                )
            )
        )
        answer = await self._client.receive()
        if not answer.HasField("arbitration") or answer.arbitration.status.code != 0:
            raise AssertionError(f"not primary: {answer}")

    async def _read(self, request: p4r.ReadRequest) -> list[Any]:
        return [
            decode_entity(entity, self.schema)
            async for response in self._client.request_iter(request)
            for entity in response.entities
        ]

    async def _receive_forever(self) -> None:
        while True:
            message = await self._client.receive()
            match message.WhichOneof("update"):
                case "packet":
                    self.packets.put(decode_stream(message, self.schema))
                case "digest":
                    self.digests.put(decode_stream(message, self.schema))
                case "idle_timeout_notification":
                    self.idle_timeouts.put(decode_stream(message, self.schema))
                case _:
                    pass

    def _call(self, coroutine: Coroutine[Any, Any, R]) -> R:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(CALL_TIMEOUT_S)


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float = 5.0) -> None:
    """Polls until the condition holds; raises TimedOut naming `what`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimedOut(f"{what}: not within {timeout_s} s")
        time.sleep(0.01)
