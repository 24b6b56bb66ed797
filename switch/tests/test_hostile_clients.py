# SPDX-License-Identifier: Apache-2.0
"""The real binary and clients as they come: with gRPC's own limits, with device id 0, and a thousand that say nothing. No root."""

import contextlib
import socket
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

import grpc
import pytest
from fairlane_switch.process import READY, find_binary, start_process
from finsy import Switch, SwitchOptions
from finsy.proto import p4r, p4r_grpc, rpc_code, rpc_status

PROGRAMS = Path(__file__).parent.parent / "crates" / "p4rt" / "tests" / "p4"
JSON = PROGRAMS / "entities.json"
P4INFO = PROGRAMS / "entities.p4info.txtpb"
CALL_S = 20


@contextlib.contextmanager
def switch(*options: str) -> Generator[str]:
    """A switch with the program, and its address."""
    command = [find_binary("fairlane-switch"), "--grpc", "127.0.0.1:0", *options]
    command += ["--pipeline", str(JSON), "--p4info", str(P4INFO)]
    with start_process(command) as process:
        yield process.line(READY).split("grpc=")[1].split()[0]


@pytest.fixture
def address() -> Iterator[str]:
    with switch() as where:
        yield where


def stub(address: str) -> tuple[grpc.Channel, p4r_grpc.P4RuntimeStub]:
    """A client with gRPC's own limits: 8 KiB of metadata, which it refuses for certain from 16 KiB on."""
    channel = grpc.insecure_channel(address)
    return channel, p4r_grpc.P4RuntimeStub(channel)


def test_a_thousand_connections_that_say_nothing_lock_nobody_out(address: str) -> None:
    host, port = address.rsplit(":", 1)
    with contextlib.ExitStack() as stack:
        for _ in range(1_010):
            stack.enter_context(contextlib.closing(socket.create_connection((host, int(port)), timeout=CALL_S)))
        channel, client = stub(address)
        with channel:
            answer = client.Capabilities(p4r.CapabilitiesRequest(), timeout=CALL_S, wait_for_ready=True)
        assert answer.p4runtime_api_version


@pytest.mark.parametrize("refused", [0, 200, 399])
def test_a_batch_of_400_with_one_refused_reaches_a_client_with_grpcs_own_limits(address: str, refused: int) -> None:
    channel, client = stub(address)
    hello = p4r.StreamMessageRequest()
    hello.arbitration.device_id = 1
    hello.arbitration.election_id.low = 1
    request = p4r.WriteRequest(device_id=1, election_id=p4r.Uint128(low=1))
    for index in range(400):
        group = request.updates.add(type=p4r.Update.INSERT).entity.packet_replication_engine_entry.multicast_group_entry
        group.multicast_group_id = 0 if index == refused else index + 1
    with channel:
        stream = client.StreamChannel(iter_forever(hello), timeout=CALL_S)
        assert next(stream).arbitration.status.code == rpc_code.OK
        with pytest.raises(grpc.RpcError) as caught:
            client.Write(request, timeout=CALL_S)
        stream.cancel()
    error = caught.value
    assert error.code() is grpc.StatusCode.UNKNOWN, error
    text = error.details() or ""
    assert text.startswith(f"Write: 1 of 400 refused; first [{refused}]: ")
    metadata = {item.key: item.value for item in error.trailing_metadata()}
    raw = metadata["grpc-status-details-bin"]
    assert isinstance(raw, bytes)
    details = rpc_status.Status.FromString(raw).details
    for index, any_error in enumerate(details):
        told = p4r.Error()
        assert any_error.Unpack(told)
        assert (told.canonical_code != rpc_code.OK) == (index == refused)
    assert len(details) > refused or text.endswith(f"; refused are {refused}")


def iter_forever(first: p4r.StreamMessageRequest) -> Iterator[p4r.StreamMessageRequest]:
    """One message, and a stream that stays open for as long as a call may take."""
    yield first
    threading.Event().wait(CALL_S)


async def test_device_id_0_is_one_like_the_others() -> None:
    with switch("--device-id", "0") as where:
        options = SwitchOptions(p4info=P4INFO, p4blob=JSON, device_id=0, fail_fast=True)
        async with Switch("s1", where, options) as client:
            assert client.is_primary
            assert client.device_id == 0
