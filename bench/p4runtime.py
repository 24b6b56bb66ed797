# SPDX-License-Identifier: Apache-2.0
"""Measures P4Runtime: 65,536 entries of a table written in batches of 1,000 and read back, on fairlane-switch and on BMv2.

By a client that sends requests made before (what the server can do) and by the control plane's own client (what it gets).
Without `simple_switch_grpc` there is nothing to compare.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import finsy as fy
import grpc
from fairlane_controller.switch.client import Endpoint, PipelineFiles, SwitchClient
from finsy.proto import p4r, p4r_grpc
from summary import Run
from testbed import BATCH, COMPILED, bmv2_is_installed, start_bmv2, start_ours

ENTRIES = 65_536
TABLE = "flow_v4"
TIMEOUT_S = 120.0


def flows(count: int) -> list[fy.P4TableEntry]:
    """Entries of as many flows, each with its slot."""
    return [
        fy.P4TableEntry(
            TABLE,
            match=fy.Match(
                src=0x0A000100 + (n >> 15), dst=0x0A000202, protocol=6, src_port=n & 0x7FFF, dst_port=5001, vid=0
            ),
            action=fy.Action("set_flow", flow_id=n),
        )
        for n in range(count)
    ]


class Primary:
    """A stream that makes this client the primary as long as it is open; and calls with messages as bytes."""

    election_id = p4r.Uint128(high=0, low=2**62)

    def __init__(self, address: str) -> None:
        limits = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self.channel = grpc.insecure_channel(address, options=limits)
        self._requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
        arbitration = p4r.MasterArbitrationUpdate(device_id=1, election_id=self.election_id)
        self._requests.put(p4r.StreamMessageRequest(arbitration=arbitration))
        stub = cast("Any", p4r_grpc.P4RuntimeStub(self.channel))
        self._stream: Iterator[p4r.StreamMessageResponse] = stub.StreamChannel(
            self._request_stream(), timeout=TIMEOUT_S
        )
        status = next(self._stream).arbitration.status
        if status.code != 0:
            raise RuntimeError(f"not the primary at {address}: {status.message}")

    def _request_stream(self) -> Iterator[p4r.StreamMessageRequest]:
        while (request := self._requests.get()) is not None:
            yield request

    def write_all(self, requests: list[bytes]) -> float:
        """Seconds until the last was answered, one after the other; RuntimeError when one is refused."""
        call = cast("Callable[..., bytes]", self.channel.unary_unary("/p4.v1.P4Runtime/Write"))  # pyright: ignore[reportUnknownMemberType]
        begin = time.perf_counter()
        for request in requests:
            call(request, timeout=TIMEOUT_S)
        return time.perf_counter() - begin

    def read_all(self, request: bytes) -> tuple[float, int]:
        """Seconds until the last byte was here, and the entities in all answers."""
        call = cast("Callable[..., Iterator[bytes]]", self.channel.unary_stream("/p4.v1.P4Runtime/Read"))  # pyright: ignore[reportUnknownMemberType]
        begin = time.perf_counter()
        answers = list(call(request, timeout=TIMEOUT_S))
        elapsed = time.perf_counter() - begin
        return elapsed, sum(len(p4r.ReadResponse.FromString(answer).entities) for answer in answers)

    def close(self) -> None:
        """End the stream."""
        self._requests.put(None)
        self.channel.close()


def write_requests(schema: fy.P4Schema, count: int) -> list[bytes]:
    """Inserts of all flows, `BATCH` a request, as bytes."""
    updates = [p4r.Update(type=p4r.Update.INSERT, entity=entry.encode(schema)) for entry in flows(count)]
    return [
        p4r.WriteRequest(
            device_id=1, election_id=Primary.election_id, updates=updates[start : start + BATCH]
        ).SerializeToString()
        for start in range(0, count, BATCH)
    ]


def measure_requests_made_before(address: str, count: int) -> tuple[float, float]:
    """(writes, reads) a second of a client whose requests were made before."""
    schema = fy.P4Schema(COMPILED / "qthresh.p4info.txtpb")
    requests = write_requests(schema, count)
    read = p4r.ReadRequest(
        device_id=1, entities=[p4r.Entity(table_entry=p4r.TableEntry(table_id=schema.tables[TABLE].id))]
    )
    client = Primary(address)
    try:
        written_s = client.write_all(requests)
        read_s, found = client.read_all(read.SerializeToString())
    finally:
        client.close()
    check(found, count, address)
    return count / written_s, count / read_s


def measure_finsy(address: str, count: int) -> tuple[float, float]:
    """(writes, reads) a second of the control plane's client, encoding and decoding included."""

    async def work() -> tuple[float, float]:
        files = PipelineFiles(COMPILED / "qthresh.json", COMPILED / "qthresh.p4info.txtpb")
        async with SwitchClient(Endpoint("bench", address), write=True, pipeline=files, timeout_s=10) as client:
            entries = flows(count)
            begin = time.perf_counter()
            for start in range(0, count, BATCH):
                await client.write([+entry for entry in entries[start : start + BATCH]])
            written_s = time.perf_counter() - begin
            begin = time.perf_counter()
            held = await client.read_table(TABLE)
            read_s = time.perf_counter() - begin
        check(len(held), count, address)
        return count / written_s, count / read_s

    return asyncio.run(asyncio.wait_for(work(), TIMEOUT_S))


def check(found: int, count: int, address: str) -> None:
    """RuntimeError when not all entries came back."""
    if found != count:
        raise RuntimeError(f"{address}: {count} entries were written, {found} read")


def bench(run: Run, count: int = ENTRIES) -> None:
    """All measurements, in turns; the best round of each counts: a disturbance only slows."""
    targets: dict[str, Callable[..., contextlib.AbstractContextManager[Any]]] = {"fairlane-switch": start_ours}
    if bmv2_is_installed():
        targets["simple_switch_grpc"] = start_bmv2
    clients = {"requests made before": measure_requests_made_before, "our client": measure_finsy}

    def measure(client: str, target: str) -> tuple[float, float]:
        with targets[target]((), []) as switch:  # without interfaces
            return clients[client](switch.grpc, count)

    measures = {(client, target): partial(measure, client, target) for client in clients for target in targets}
    samples: dict[str, list[float]] = {}
    for (client, target), found in run.in_turns(measures).items():
        for what, values in zip(("writes", "reads"), zip(*found, strict=True), strict=True):
            samples[f"{what}, {client}: {target}"] = list(values)
    add_rows(run, samples, count)
    run.raw["p4runtime_per_s"] = samples


def add_rows(run: Run, samples: dict[str, list[float]], count: int) -> None:
    """The table's lines: what each has reached, and the ratio where BMv2 was there."""
    best = {name: max(values) for name, values in samples.items()}
    for name, value in best.items():
        what, _, target = name.rpartition(": ")
        group = f"P4Runtime, {count:,} {what} (the best of {len(samples[name])} rounds)"
        run.row(group, target, value, "entries/s")
        beside = best.get(f"{what}: simple_switch_grpc")
        if target == "fairlane-switch" and beside:
            run.row(group, "fairlane-switch beside BMv2", value / beside, "times", at_least=1)
