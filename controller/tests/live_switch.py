# SPDX-License-Identifier: Apache-2.0
"""A real switch process for the tests: found, started on free loopback ports, fed with frames, stopped by its pid."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import unused_ports
from fairlane_controller.cli.main import main
from fairlane_controller.state.ask import ask
from fairlane_controller.state.run_state import write_topology

REPOSITORY = Path(__file__).resolve().parents[2]
COMPILED = REPOSITORY / "p4src" / "compiled"
TARGETS = ("embedded", "bmv2")
DEADLINE_S = 20.0
MAIN = "from fairlane_controller.cli.main import main; main()"
RATE_BPS = 2_000_000
QUEUE_PACKETS = 50


def binary(target: str) -> str | None:
    """Path of the target's binary, or None."""
    if target == "bmv2":
        return shutil.which("simple_switch_grpc")
    folders = [os.environ.get("FAIRLANE_BIN_DIR"), str(REPOSITORY / "switch" / "target" / "release")]
    for folder in folders:
        if folder and (Path(folder) / "fairlane-switch").is_file():
            return str(Path(folder) / "fairlane-switch")
    return shutil.which("fairlane-switch")


def wait_until(what: str, check: Any, deadline_s: float = DEADLINE_S) -> Any:
    """The first true value of `check()`; AssertionError that says what was waited for after the deadline."""
    end = time.monotonic() + deadline_s
    while True:
        value = check()
        if value:
            return value
        assert time.monotonic() < end, f"waited {deadline_s} s for {what}"
        time.sleep(0.02)


def idle(folder: Path, time: str) -> tuple[str, str]:
    """Options of a loop of qthresh: a flow's entry ages out after this time."""
    file = folder / "idle.toml"
    file.write_text(f'[loop]\nflow_idle = "{time}"\n', encoding="utf-8")
    return "--config", str(file)


@dataclass
class LiveSwitch:
    """One switch process, its run-state folder, and the command line on it."""

    target: str
    folder: Path
    interfaces: dict[int, str] = field(default_factory=lambda: dict[int, str]())
    grpc_port: int = field(default_factory=unused_ports.unused)
    thrift_port: int = field(default_factory=unused_ports.unused)
    own_program: bool = False
    "It loads qthresh by itself (`--pipeline`)."
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start and wait until the P4Runtime port accepts."""
        path = binary(self.target)
        assert path is not None
        grpc = f"127.0.0.1:{self.grpc_port}"
        ports = [part for port, name in self.interfaces.items() for part in ("-i", f"{port}@{name}")]
        if self.target == "bmv2":
            program = [str(COMPILED / "qthresh.json")] if self.own_program else ["--no-p4"]
            command = [path, *program, "--device-id", "1", *ports, "--thrift-port", str(self.thrift_port)]
            command += ["--", "--grpc-server-addr", grpc, "--cpu-port", "510"]
        else:
            command = [path, "--device-id", "1", "--grpc", grpc, "--cpu-port", "510", *ports]
            if self.own_program:
                command += ["--pipeline", str(COMPILED / "qthresh.json")]
                command += ["--p4info", str(COMPILED / "qthresh.p4info.txtpb")]
            if 3 in self.interfaces:
                command += ["--port", f"3:rate={RATE_BPS},queue_packets={QUEUE_PACKETS}"]
        log = (self.folder / "switch.log").open("ab")
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        log.close()
        wait_until(f"{self.target} to serve", self.accepts)

    def accepts(self) -> bool:
        """Whether it serves; AssertionError with its log when it has ended."""
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "switch.log").read_text(encoding="utf-8", errors="replace")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.grpc_port), 1.0):
            return True
        return False

    def kill(self) -> None:
        """SIGKILL, and wait."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(timeout=10)
            self.process = None

    def write_state(self) -> None:
        """The run-state file of a topology of this one switch: port 3 is a bottleneck of 50 packets."""
        state = {
            "name": self.folder.name,
            "target": self.target,
            "program": "qthresh",
            "switches": [
                {
                    "name": "s1",
                    "device_id": 1,
                    "grpc": f"127.0.0.1:{self.grpc_port}",
                    "json": str(COMPILED / "qthresh.json"),
                    "p4info": str(COMPILED / "qthresh.p4info.txtpb"),
                    "ports": [
                        {"port": 1, "rate_bps": 0, "queue_packets": 1000},
                        {"port": 3, "rate_bps": RATE_BPS, "queue_packets": QUEUE_PACKETS, "bottleneck": True},
                    ],
                    "routes": [
                        {"prefix": "10.0.1.0/24", "port": 1, "mac": "08:00:00:00:01:11"},
                        {"prefix": "10.0.3.0/24", "port": 3, "mac": "08:00:00:00:03:33"},
                        {"prefix": "2001:db8:3::/64", "port": 3, "mac": "08:00:00:00:03:33"},
                    ],
                }
            ],
        }
        write_topology(self.folder, state)

    # ---- the command line ----------------------------------------------------------------------------------------

    def command(self, *arguments: str) -> list[str]:
        """`fairlane ARGUMENTS --state` of this folder."""
        return [sys.executable, "-c", MAIN, *arguments, "--state", str(self.folder)]

    def fairlane(self, *arguments: str, code: int = 0) -> str:
        """Run a command in this process; asserts its exit code; returns what it printed (standard error if it failed)."""
        printed, errors = io.StringIO(), io.StringIO()
        got = 0
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
            try:
                main([*arguments, "--state", str(self.folder)])
            except SystemExit as end:
                got = end.code if isinstance(end.code, int) else 1
        assert got == code, f"{arguments}: {got}\n{printed.getvalue()}\n{errors.getvalue()}"
        return printed.getvalue() or errors.getvalue()

    def json(self, *arguments: str, code: int = 0) -> Any:
        """The JSON that a command prints."""
        return json.loads(self.fairlane(*arguments, "--json", code=code))

    def loop_status(self) -> dict[str, Any]:
        """What the running loop says of the switch."""
        (status,) = asyncio.run(ask(self.folder, {"op": "status"}))
        return status

    @contextlib.contextmanager
    def loop(self, *arguments: str) -> Generator[subprocess.Popen[bytes], None, None]:
        """A running control loop, ready; killed (-9) at the end if it still runs."""
        ready = self.folder / "ready"
        ready.unlink(missing_ok=True)
        log = (self.folder / "loop.log").open("ab")
        process = subprocess.Popen(self.command("run", "--ready-file", str(ready), *arguments), stdout=log, stderr=log)
        log.close()
        try:
            wait_until("the control loop", lambda: ready.exists() or process.poll() is not None)
            assert process.poll() is None, (self.folder / "loop.log").read_text(encoding="utf-8")
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(timeout=10)

    def events(self, name: str) -> list[dict[str, Any]]:
        """The event log's events of that name."""
        path = self.folder / "controller-events.jsonl"
        if not path.exists():
            return []
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [record for record in records if record["event"] == name]
