# SPDX-License-Identifier: Apache-2.0
"""The switches that the tests run against: how each is started, made slow on one port, and stopped."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
READY_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 5.0


class TargetError(Exception):
    """The switch is missing or did not start; the text says what to do."""


@dataclass(frozen=True)
class TargetOptions:
    """What a target is started with."""

    interfaces: dict[int, str]
    """Switch port -> interface name."""
    slow_port: int
    """The port whose line is slow."""
    slow_rate_bps: int
    """Its rate, bit/s (embedded switch)."""
    slow_rate_pps: int
    """Its rate, packets/s: BMv2 knows no bits (BMv2)."""
    queue_packets: int
    """How many packets its queue holds."""
    json: Path
    p4info: Path
    log: Path
    """Where the switch's output goes."""
    control: Path
    """The control socket (embedded switch)."""
    device_id: int = 1
    cpu_port: int = 510
    grpc_port: int = 9559
    thrift_port: int = 9090


@dataclass
class Target:
    """A running switch."""

    name: str
    grpc: str
    process: subprocess.Popen[bytes]
    log: Path
    started: float = field(default_factory=time.monotonic)

    def wait_ready(self) -> None:
        """Returns once the P4Runtime port accepts a connection; raises TargetError with the switch's own words."""
        host, port = self.grpc.split(":")
        while True:
            if self.process.poll() is not None:
                raise TargetError(f"{self.name} ended with code {self.process.returncode}:\n{self.tail()}")
            try:
                socket.create_connection((host, int(port)), timeout=0.2).close()
                return
            except OSError:
                if time.monotonic() - self.started > READY_TIMEOUT_S:
                    raise TargetError(
                        f"{self.name} did not serve {self.grpc} in {READY_TIMEOUT_S} s:\n{self.tail()}"
                    ) from None
                time.sleep(0.02)

    def stop(self) -> None:
        """SIGTERM, then SIGKILL: by the pid that we started."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(STOP_TIMEOUT_S)

    def tail(self, lines: int = 20) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


def _start(name: str, command: list[str], options: TargetOptions) -> Target:
    with options.log.open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    target = Target(name, f"127.0.0.1:{options.grpc_port}", process, options.log)
    try:
        target.wait_ready()
    except BaseException:
        target.stop()
        raise
    return target


def embedded_binary() -> Path:
    """$FAIRLANE_SWITCH_BIN, else the release build in switch/."""
    named = os.environ.get("FAIRLANE_SWITCH_BIN")
    path = Path(named) if named else REPOSITORY / "switch" / "target" / "release" / "fairlane-switch"
    if not path.is_file():
        raise TargetError(f"{path} does not exist: `make setup` builds the embedded switch")
    return path


def start_embedded(options: TargetOptions) -> Target:
    command = [str(embedded_binary()), "--device-id", str(options.device_id)]
    command += ["--grpc", f"127.0.0.1:{options.grpc_port}", "--cpu-port", str(options.cpu_port)]
    command += ["--control", str(options.control), "--seed", "1"]
    for port, interface in options.interfaces.items():
        command += ["-i", f"{port}@{interface}"]
    command += ["--port", f"{options.slow_port}:rate={options.slow_rate_bps}bit,queue_packets={options.queue_packets}"]
    return _start("fairlane-switch", command, options)


def start_bmv2(options: TargetOptions) -> Target:
    program = shutil.which("simple_switch_grpc")
    cli = shutil.which("simple_switch_CLI")
    if program is None or cli is None:
        missing = "simple_switch_grpc" if program is None else "simple_switch_CLI"
        raise TargetError(f"{missing} is not on the PATH: docs/install.md says where p4lang's packages are")
    command = [program, "--no-p4", "--device-id", str(options.device_id), "--thrift-port", str(options.thrift_port)]
    for port, interface in options.interfaces.items():
        command += ["-i", f"{port}@{interface}"]
    command += ["--log-console", "-L", "warn", "--"]
    command += ["--grpc-server-addr", f"127.0.0.1:{options.grpc_port}", "--cpu-port", str(options.cpu_port)]
    command += ["--priority-queues", "8"]  # of each port, as ours has
    target = _start("simple_switch_grpc", command, options)
    orders = (
        f"set_queue_depth {options.queue_packets} {options.slow_port}\n"
        f"set_queue_rate {options.slow_rate_pps} {options.slow_port}\n"
    )
    result = subprocess.run(
        [cli, "--thrift-port", str(options.thrift_port)],
        input=orders,
        text=True,
        capture_output=True,
        timeout=READY_TIMEOUT_S,
    )
    if result.returncode != 0 or "rror" in result.stdout + result.stderr:
        target.stop()
        raise TargetError(f"simple_switch_CLI could not set the queue:\n{result.stdout}{result.stderr}")
    return target


TARGETS = {"embedded": start_embedded, "bmv2": start_bmv2}
