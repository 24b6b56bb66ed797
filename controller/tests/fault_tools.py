# SPDX-License-Identifier: Apache-2.0
"""What stands between a controller and its switch in tests of faults: a TCP proxy that cuts, a P4Runtime server that refuses."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import grpc
from fairlane_controller.loop.agent import SwitchAgent
from fairlane_controller.programs.qthresh.names import Scheme
from fairlane_controller.programs.qthresh.policies import LoopStore, Policy
from fairlane_controller.programs.qthresh.settings import PolicySettings
from fairlane_controller.switch.changeset import put_entries
from finsy import GRPCStatusCode
from finsy.proto import p4r, p4r_grpc, rpc_status

Refuses = Callable[[p4r.Update], "tuple[GRPCStatusCode, str] | None"]
"""Code and words for an update that the switch should refuse, else None."""


class CutProxy(threading.Thread):
    """Loopback TCP between clients and a server: passes, refuses (`cut`), or takes and says nothing (`silence`)."""

    def __init__(self, server_port: int) -> None:
        super().__init__(daemon=True)
        self._server_port = server_port
        self._listener = self._listen(0)
        self.port = int(self._listener.getsockname()[1])
        self._pairs: dict[socket.socket, socket.socket] = {}
        self._mode = "pass"
        self._asked = "pass"
        self._wake, self._woken = socket.socketpair()
        self._done = threading.Event()
        self._changed = threading.Event()

    @staticmethod
    def _listen(port: int) -> socket.socket:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
        return listener

    def cut(self) -> None:
        """Break all connections and take none."""
        self._ask("cut")

    def silence(self) -> None:
        """Keep all connections and pass nothing on; new ones are taken, and nothing of them is passed on either."""
        self._ask("silence")

    def heal(self) -> None:
        """Pass again; what waited in silence is passed on."""
        self._ask("pass")

    def close(self) -> None:
        """End the thread."""
        self._ask("end")
        self._done.wait(5)

    def _ask(self, mode: str) -> None:
        self._changed.clear()
        self._asked = mode
        self._wake.send(b"x")
        assert self._changed.wait(5)

    def run(self) -> None:
        try:
            while self._mode != "end":
                self._turn()
        finally:
            self._drop_all()
            self._listener.close()
            self._done.set()

    def _turn(self) -> None:
        passing = self._mode == "pass"
        waiting: list[socket.socket] = [self._woken]
        if self._mode != "cut":
            waiting.append(self._listener)
        if passing:
            waiting += self._pairs
        for ready in select.select(waiting, [], [])[0]:
            if ready is self._woken:
                self._woken.recv(64)
                self._change()
                return
            if ready is self._listener:
                self._accept()
            elif ready in self._pairs:
                self._pass_on(ready)

    def _change(self) -> None:
        if self._asked == "cut":
            self._drop_all()
            self._listener.close()
        elif self._mode == "cut":
            self._listener = self._listen(self.port)
        self._mode = self._asked
        self._changed.set()

    def _accept(self) -> None:
        client, _ = self._listener.accept()
        try:
            server = socket.create_connection(("127.0.0.1", self._server_port), 2)
        except OSError:
            client.close()
            return
        self._pairs[client], self._pairs[server] = server, client

    def _pass_on(self, source: socket.socket) -> None:
        target = self._pairs[source]
        try:
            data = source.recv(65_536)
            if data:
                target.sendall(data)
                return
        except OSError:
            pass
        for end in (source, target):
            self._pairs.pop(end, None)
            end.close()

    def _drop_all(self) -> None:
        for end in self._pairs:
            end.close()
        self._pairs.clear()


@contextlib.contextmanager
def cut_proxy(server_port: int) -> Generator[CutProxy, None, None]:
    """A running proxy."""
    proxy = CutProxy(server_port)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.close()


class RefusingSwitch(p4r_grpc.P4RuntimeServicer):
    """A P4Runtime server that hands everything to a real switch, except for the updates that it refuses."""

    def __init__(self, address: str, refuses: Refuses) -> None:
        self.refuses = refuses
        self.refused: list[p4r.Update] = []
        self.writes = 0
        "Write requests so far."
        self._channel = grpc.insecure_channel(address)
        self._switch = p4r_grpc.P4RuntimeStub(self._channel)

    def Write(self, request: p4r.WriteRequest, context: Any) -> p4r.WriteResponse:
        """All updates that are not refused are the switch's to judge."""
        self.writes += 1
        verdicts = [self.refuses(update) for update in request.updates]
        self.refused += [u for u, verdict in zip(request.updates, verdicts, strict=True) if verdict]
        errors = [self._error(*verdict) if verdict else p4r.Error() for verdict in verdicts]
        passed = [index for index, verdict in enumerate(verdicts) if not verdict]
        forward = p4r.WriteRequest(device_id=request.device_id, role=request.role, election_id=request.election_id)
        forward.updates.extend(request.updates[index] for index in passed)
        try:
            if passed:
                self._switch.Write(forward)
        except grpc.RpcError as error:
            ex: Any = error
            details = [value for key, value in ex.trailing_metadata() if key == "grpc-status-details-bin"]
            if not details:
                context.abort(ex.code(), ex.details())
            for index, detail in zip(passed, rpc_status.Status.FromString(details[0]).details, strict=True):
                detail.Unpack(errors[index])
        if any(error.canonical_code for error in errors):
            status = rpc_status.Status(code=GRPCStatusCode.UNKNOWN.value, message="see the details")
            for error in errors:
                status.details.add().Pack(error)
            context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
            context.abort(grpc.StatusCode.UNKNOWN, "see the details")
        return p4r.WriteResponse()

    @staticmethod
    def _error(code: GRPCStatusCode, message: str) -> p4r.Error:
        return p4r.Error(canonical_code=code.value, message=message)

    def Read(self, request: p4r.ReadRequest, context: Any) -> Iterator[p4r.ReadResponse]:
        """As the switch answers."""
        yield from self._asked(lambda: self._switch.Read(request), context)

    def StreamChannel(self, request_iterator: Iterator[p4r.StreamMessageRequest], context: Any) -> Iterator[Any]:
        """Both ways."""
        call = self._switch.StreamChannel(request_iterator)
        context.add_callback(call.cancel)
        yield from self._asked(lambda: call, context)

    def SetForwardingPipelineConfig(self, request: Any, context: Any) -> Any:
        """As the switch answers."""
        return self._one(self._switch.SetForwardingPipelineConfig, request, context)

    def GetForwardingPipelineConfig(self, request: Any, context: Any) -> Any:
        """As the switch answers."""
        return self._one(self._switch.GetForwardingPipelineConfig, request, context)

    def Capabilities(self, request: Any, context: Any) -> Any:
        """As the switch answers."""
        return self._one(self._switch.Capabilities, request, context)

    def _one(self, call: Callable[[Any], Any], request: Any, context: Any) -> Any:
        try:
            return call(request)
        except grpc.RpcError as ex:
            self._abort(ex, context)

    def _asked(self, call: Callable[[], Any], context: Any) -> Iterator[Any]:
        try:
            yield from call()
        except grpc.RpcError as ex:
            self._abort(ex, context)

    @staticmethod
    def _abort(ex: Any, context: Any) -> None:
        context.set_trailing_metadata(tuple(ex.trailing_metadata() or ()))
        context.abort(ex.code(), ex.details())

    def close(self) -> None:
        """End the connection to the switch."""
        self._channel.close()


@contextlib.contextmanager
def refusing_switch(address: str, refuses: Refuses) -> Generator[tuple[RefusingSwitch, int], None, None]:
    """A serving one and its port."""
    servicer = RefusingSwitch(address, refuses)
    server = grpc.server(ThreadPoolExecutor(max_workers=16))
    p4r_grpc.add_P4RuntimeServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield servicer, port
    finally:
        server.stop(0).wait(5)
        servicer.close()


async def set_threshold(agent: SwitchAgent, folder: Path, packets: int, weight: float = 1.0) -> None:
    """What `threshold set` of port 3 does through the loop of `agent`."""
    settings = PolicySettings(threshold=packets, weight=weight)
    LoopStore(folder).write({"s1/3/0": settings})
    await agent.exclusively(partial(put_entries, entries=[Policy(3, 0, Scheme.QTHRESH, packets, weight).entry]))
