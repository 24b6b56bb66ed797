# SPDX-License-Identifier: Apache-2.0
"""Starts BMv2's simple_switch_grpc for a measurement, and ends it."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from testbed import run

BINARY = "simple_switch_grpc"
START_S, END_S = 30.0, 20.0


@dataclass(frozen=True)
class Bmv2:
    """A BMv2 that serves, without a program."""

    grpc: str
    """Address of P4Runtime."""
    thrift_port: int
    """0 where it was built without Thrift."""


def is_installed() -> bool:
    """Whether there is something to compare with."""
    return shutil.which(BINARY) is not None


@contextlib.contextmanager
def start_bmv2(interfaces: Sequence[str] = ()) -> Generator[Bmv2]:
    """BMv2 with these interfaces as ports 1, 2, …. Raises RuntimeError when it ends or does not serve in time."""
    grpc = f"127.0.0.1:{free_port()}"
    thrift_port = free_port() if "thrift" in run_help(BINARY) else 0
    command = [BINARY, "--no-p4", "--device-id", "1"]
    for port, interface in enumerate(interfaces, 1):
        command += ["-i", f"{port}@{interface}"]
    command += ["--thrift-port", str(thrift_port)] if thrift_port else []
    command += ["--", "--grpc-server-addr", grpc, "--cpu-port", "510"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until_listening(grpc, process)
            yield Bmv2(grpc, thrift_port)
        finally:
            process.terminate()
            try:
                process.wait(timeout=END_S)
            except subprocess.TimeoutExpired:
                process.kill()


def free_port() -> int:
    """A free TCP port of the loopback interface."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def wait_until_listening(address: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until a server takes connections. Raises RuntimeError when it ended or is too slow."""
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return
        time.sleep(0.02)
    raise RuntimeError(f"{process.args} does not listen on {address}, exit code {process.poll()}")


def run_help(binary: str) -> str:
    """What the program says about its options."""
    with contextlib.suppress(RuntimeError):
        return run(binary, "--help")
    return ""
