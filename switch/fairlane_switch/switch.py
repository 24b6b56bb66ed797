# SPDX-License-Identifier: Apache-2.0
"""Starting `fairlane-switch`: typed options of the switch and its ports, and the running process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal, TypeVar

from fairlane_switch.link_series import Series
from fairlane_switch.port_control import PortSettings
from fairlane_switch.process import READY, STOP_TIMEOUT_S, Service, find_binary, start_process

_Running = TypeVar("_Running", bound="Running")


@dataclass(frozen=True)
class PortOptions(PortSettings):
    """One port of a switch: its interface, and its settings."""

    port: int
    """Port number, 0 to 510."""
    interface: str
    """Linux interface of the port, in the namespace that the switch runs in."""

    def arguments(self) -> list[str]:
        """The port's part of the command line."""
        values = {one.name: getattr(self, one.name) for one in fields(PortSettings)}
        rate = values.pop("rate_bps") or None
        values = {**values, "rate": rate} if isinstance(rate, Series) else {"rate": rate, **values}
        settings = ",".join(f"{key}={value}" for key, value in values.items() if value is not None)
        return ["-i", f"{self.port}@{self.interface}", *(["--port", f"{self.port}:{settings}"] if settings else [])]


@dataclass(frozen=True)
class SwitchOptions:
    """A switch."""

    ports: Sequence[PortOptions] = field(default_factory=tuple)
    """Its ports, the CPU port not among them."""
    device_id: int = 1
    """Device id that P4Runtime clients name."""
    grpc: str = "127.0.0.1:0"
    """Address of the P4Runtime server; port 0 takes a free one."""
    cpu_port: int = 510
    """Port of packet-in and packet-out."""
    pipeline: Path | None = None
    """BMv2 JSON to start with; None: P4Runtime brings it."""
    p4info: Path | None = None
    """P4Info of that program, text format."""
    control: Path | None = None
    """Socket through which ports are changed and read while it runs (`port_control`); None: there is none."""
    log_level: str = "info"
    """Least severe messages on standard error: error, warn, info, debug or trace."""
    spin_us: int = 0
    """Look instead of sleep for so long around a frame or a departure: shorter delays, for up to a whole processor."""
    send_threads: int | Literal["auto"] = 0
    """Threads that send frames, each for a share of the ports; 0: the packet thread sends too; auto: one where there are 3 processors."""
    ring_frames: int = 2048
    """Frames that the kernel keeps for each interface while the switch is busy."""
    seed: int | None = None
    """Of the program's `random()`, together with the device id; None: it draws one and logs it."""
    realtime: str = "auto"
    """Real-time scheduling of the packet thread: auto, on or off."""
    tls: Path | None = None
    """Folder with the files of `fairlane setup certs`: P4Runtime and gNMI speak mutual TLS."""

    def arguments(self) -> list[str]:
        """The command line, without the program's name. Raises ValueError when only one of program and P4Info is given."""
        if (self.pipeline is None) != (self.p4info is None):
            raise ValueError("a program needs both: pipeline (BMv2 JSON) and p4info")
        named = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in ("ports", "tls")}
        given = {name.replace("_", "-"): value for name, value in named.items() if value is not None}
        words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
        if self.tls is not None:
            for option, file in (("cert", "server.pem"), ("key", "server.key"), ("client-ca", "ca.pem")):
                words += [f"--tls-{option}", str(self.tls / file)]
        for port in self.ports:
            words += port.arguments()
        return words


@dataclass(frozen=True)
class Running:
    """A running `fairlane-switch`. A context manager: leaving it stops the process."""

    process: Service
    """The process: pid and start time for the run state, what it said."""

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Stop it; returns its exit code, 0 when all was well."""
        return self.process.stop(timeout_s)

    def __enter__(self: _Running) -> _Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@dataclass(frozen=True)
class Switch(Running):
    """A running switch."""

    grpc: str
    """Address that its P4Runtime server listens on."""
    options: SwitchOptions


def start_in_namespace(arguments: Sequence[str], netns: str | None, timeout_s: float) -> Service:
    """Start `fairlane-switch` in a network namespace (None: in this one), ready when this returns; raises as `start_switch` does."""
    prefix = ["ip", "netns", "exec", netns] if netns else []
    command = [find_binary("fairlane-switch"), *arguments]
    return start_process(command, timeout_s=timeout_s, prefix=prefix)


def start_switch(options: SwitchOptions, *, netns: str | None = None, timeout_s: float = 10.0) -> Switch:
    """Start a switch (root is needed) and wait until it serves.

    Raises BinaryNotFoundError when it is not built, ProcessFailedError with the switch's own words when it cannot start.
    """
    process = start_in_namespace(options.arguments(), netns, timeout_s)
    words = dict(word.split("=", 1) for word in process.line(READY).split() if "=" in word)
    return Switch(process, words["grpc"], options)
