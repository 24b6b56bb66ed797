# SPDX-License-Identifier: Apache-2.0
"""Flows that live through it all: loading, changing to every variant in mid-flow, and unloading; no connection is lost, no byte wrong.

The congestion controls are registered under names of this test's own, so no other user of the machine is disturbed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import threading
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from fairlane_hosts import apply, build, loader, tcpinfo
from fairlane_hosts.variants import Variant, bpf_variants, find_variant
from hosts_bed import wait_until
from packet_bed import RECEIVER_ADDRESS, PacketBed, Script

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces and BPF programs: needs root"),
]

PORT = 5002
FLOWS = 2
PATTERN = bytes(range(251)) * 1024
PROGRESS_BYTES = 4000
WINDOW_BYTES = 10_000  # or the senders without congestion control starve the others
SEND_BUFFER_BYTES = 20_000
WAIT_S = 30


class Flow:
    """One connection that writes a pattern until it is told to stop, and what its reader got of it."""

    def __init__(self, connection: socket.socket, accepted: socket.socket) -> None:
        self.connection, self.accepted = connection, accepted
        self.written = self.received = 0
        self.errors = list[str]()
        self.stopping = threading.Event()
        runs = (self._write, self._read)
        self.threads = [threading.Thread(target=self._guard, args=(run,), daemon=True) for run in runs]
        for thread in self.threads:
            thread.start()

    def _guard(self, run: object) -> None:
        assert callable(run)
        try:
            run()
        except OSError as error:
            self.errors.append(f"{getattr(run, '__name__', run)}: {error}")

    def _write(self) -> None:
        while not self.stopping.is_set():
            at = self.written % 251
            self.written += self.connection.send(PATTERN[at : at + 8192])
        self.connection.shutdown(socket.SHUT_WR)

    def _read(self) -> None:
        while data := self.accepted.recv(65_536):
            at = self.received % 251
            if data != PATTERN[at : at + len(data)]:
                self.errors.append(f"wrong bytes behind {self.received}")
            self.received += len(data)

    def acked(self) -> int:
        return tcpinfo.read(self.connection).bytes_acked

    def end(self) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join(timeout=WAIT_S)
        assert not any(thread.is_alive() for thread in self.threads), "the flow does not end"
        self.connection.close()
        self.accepted.close()


@pytest.fixture
def bed() -> Generator[PacketBed]:
    with PacketBed(rate_bps=30_000_000, delay_s=0.002, queue_packets=500) as made:
        made.record(Script(loss=0.005, seed=3))
        yield made


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[list[Variant], list[loader.Program]]:
    """Every BPF variant under a name of our own, with a registry of our own."""
    build.build_all()
    monkeypatch.setenv("FAIRLANE_CC_STATE", str(tmp_path / "cc.json"))
    # Another name of the same length, wherever it stands in the object: quicker than compiling all of them again.
    own = f"{chr(97 + os.getpid() % 26)}{os.getpid() // 26 % 10}_"
    variants, programs = list[Variant](), list[loader.Program]()
    for variant in bpf_variants():
        assert variant.object_name is not None
        was, name = variant.congestion_control, own + variant.congestion_control[len(own) :]
        output = tmp_path / f"{name}.o"
        output.write_bytes((build.build_dir() / variant.object_name).read_bytes().replace(was.encode(), name.encode()))
        variants.append(dataclasses.replace(variant, builtin=name))
        programs.append(loader.Program(name, output, "x"))
    return variants, programs


def test_flows_live_through_loading_every_variant_and_unloading(
    bed: PacketBed, private: tuple[list[Variant], list[loader.Program]]
) -> None:
    variants, programs = private
    sender, receiver = bed.netns(bed.sender), bed.netns(bed.receiver)

    def listen() -> socket.socket:
        listener = socket.create_server(("0.0.0.0", PORT))
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, WINDOW_BYTES)
        return listener

    def connect() -> socket.socket:
        return socket.create_connection((RECEIVER_ADDRESS, PORT), timeout=WAIT_S)

    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(apply.run_in_namespace(receiver, listen))
        listener.settimeout(WAIT_S)

        def open_flow() -> Flow:
            connection = apply.run_in_namespace(sender, connect)
            accepted, _ = listener.accept()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)  # little is left at the end
            flow = Flow(connection, accepted)
            stack.callback(flow.stopping.set)
            return flow

        flows = [open_flow() for _ in range(FLOWS)]  # before anything is loaded
        with loader.acquire(programs):
            for variant in variants:
                apply.use_on_host(variant, sender)
                for flow in flows[: FLOWS // 2]:  # the others keep what they began with
                    apply.use_on_socket(flow.connection, variant.congestion_control)
                flows.append(open_flow())  # takes the namespace's default
                assert apply.congestion_control_of(flows[-1].connection) == variant.congestion_control
                goes_on([*flows[:FLOWS], flows[-1]])
        for program in programs:
            wait_until(lambda name=program.name: name not in loader.available(), 10, f"{program.name} to be gone")
        goes_on(flows)  # each still runs what is not registered any more
        used = {apply.congestion_control_of(flow.connection) for flow in flows[FLOWS:]}
        assert used == {variant.congestion_control for variant in variants}
        for flow in flows:
            flow.end()
    assert [flow.errors for flow in flows] == [[]] * len(flows)
    assert all(flow.received == flow.written > PROGRESS_BYTES for flow in flows)
    drops = [segment for segment in bed.segments() if segment.dropped]
    assert drops, "the variants were to have losses to repair"


def goes_on(flows: list[Flow]) -> None:
    """Wait until each flow has moved on."""
    before = [flow.acked() for flow in flows]
    deadline = time.monotonic() + WAIT_S
    for flow, start in zip(flows, before, strict=True):
        while flow.acked() < start + PROGRESS_BYTES:
            assert not flow.errors, flow.errors
            assert time.monotonic() < deadline, f"a flow stands still at {flow.acked()} bytes"
            time.sleep(0.005)


def test_who_leaves_nss_goes_on_with_what_is_in_flight(bed: PacketBed) -> None:
    """A window of 32,768 packets that no ACK has earned is not handed on."""
    bed.use("nss")
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(
            apply.run_in_namespace(bed.netns(bed.receiver), lambda: socket.create_server(("0.0.0.0", PORT)))
        )
        connection = stack.enter_context(
            apply.run_in_namespace(
                bed.netns(bed.sender), lambda: socket.create_connection((RECEIVER_ADDRESS, PORT), timeout=WAIT_S)
            )
        )
        listener.settimeout(WAIT_S)
        stack.enter_context(listener.accept()[0])
        assert tcpinfo.read(connection).snd_cwnd == 32_768
        apply.use_on_socket(connection, find_variant("newreno").congestion_control)
        assert tcpinfo.read(connection).snd_cwnd == 2
        apply.use_on_socket(connection, find_variant("nss").congestion_control)
        assert tcpinfo.read(connection).snd_cwnd == 32_768
