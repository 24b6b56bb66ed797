# SPDX-License-Identifier: Apache-2.0
"""Many real switch processes without interfaces, as a topology file says, with one run state and one command line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.errors import FairlaneError
from fairlane_controller.state.ask import SOCKET_FILE, ask
from fairlane_controller.state.run_state import write_topology
from fairlane_topology import topology as fl_topology
from live_switch import COMPILED, MAIN, REPOSITORY, LiveSwitch, binary, wait_until

TOPOLOGIES = REPOSITORY / "mininet" / "topologies"


class LiveTopology(LiveSwitch):
    """Its commands are those of `LiveSwitch`, on the folder of the topology; `switches` are the processes."""

    def __init__(self, folder: Path, file: str, program: str = "qthresh") -> None:
        super().__init__("embedded", folder)
        self.program = program
        self.topology = fl_topology.load(TOPOLOGIES / file)
        self.switches: dict[str, LiveSwitch] = {}
        for name in self.topology.ports:
            own = folder / name
            own.mkdir()
            self.switches[name] = LiveSwitch("embedded", own)
        self.addresses = {name: f"127.0.0.1:{switch.grpc_port}" for name, switch in self.switches.items()}
        "Where the run state says that they are: a proxy, in tests that cut connections."

    def start(self) -> None:
        """All at once, then wait for all."""
        path = binary("embedded")
        assert path is not None
        for switch in self.switches.values():
            launch(switch, path)
        for name in self.switches:
            self.wait_for(name)

    def restart(self, name: str) -> None:
        """One again, on the same address."""
        path = binary("embedded")
        assert path is not None
        launch(self.switches[name], path)
        self.wait_for(name)

    def wait_for(self, name: str) -> None:
        """Until the switch accepts connections."""
        switch = self.switches[name]
        wait_until(f"{name} to serve", switch.accepts)

    def kill(self) -> None:
        """SIGKILL all."""
        for switch in self.switches.values():
            switch.kill()

    def write_state(self) -> None:
        """As fairlane_topology.run writes it, as far as the control plane reads it."""
        switches: list[dict[str, Any]] = []
        for name, ports in self.topology.ports.items():
            switches.append(
                {
                    "name": name,
                    "device_id": 1,
                    "grpc": self.addresses[name],
                    "json": str(COMPILED / f"{self.program}.json"),
                    "p4info": str(COMPILED / f"{self.program}.p4info.txtpb"),
                    "ports": [
                        {
                            "port": number,
                            "rate_bps": port.rate_bps,
                            "queue_packets": port.queue_packets,
                            "queue_cells": port.queue_cells or 0,
                            "port_cells": port.port_cells or 0,
                            "queues": port.queues,
                            "scheduler": port.scheduler,
                            "link_layer": port.link_layer,
                            "bottleneck": port.bottleneck,
                        }
                        for number, port in ports.items()
                    ],
                    "routes": [
                        {"prefix": route.prefix, "port": route.port, "mac": route.mac}
                        for route in self.topology.routes(name)
                    ],
                }
            )
        state = {"name": self.folder.name, "target": "embedded", "program": self.program, "switches": switches}
        write_topology(self.folder, state)

    def statuses(self) -> dict[str, dict[str, Any]]:
        """What the running loop says, by switch."""
        return {entry["switch"]: entry for entry in self.json("status")["loop"]}

    def json_of_loop(self) -> dict[str, dict[str, Any]]:
        """The same without asking the switches; empty without a loop."""
        with contextlib.suppress(FairlaneError):
            return {entry["switch"]: entry for entry in asyncio.run(ask(self.folder, {"op": "status"}))}
        return {}

    def set_thresholds(self, packets: int) -> None:
        """`threshold set` at every bottleneck, through the loop."""
        for name, ports in self.topology.ports.items():
            for number in (number for number, port in ports.items() if port.bottleneck):
                self.fairlane("threshold", "set", f"{name}:{number}", str(packets))

    def connected(self) -> set[str]:
        """The switches that the loop serves."""
        return {name for name, status in self.json_of_loop().items() if status["connected"]}

    def errors(self) -> dict[str, str]:
        """Code of what the loop says is wrong, by switch."""
        found = self.json_of_loop().items()
        return {name: status["error"]["code"] for name, status in found if status["error"]}

    def entries(self, *tables: str) -> dict[str, list[dict[str, Any]]]:
        """What the switches hold in these tables, sorted."""
        return {
            table: [
                {"switch": name, **row}
                for name in sorted(self.switches)
                for row in sorted(self.json("p4", "table_dump", table, "-s", name)["entries"], key=str)
            ]
            for table in tables
        }

    def has_loop(self) -> bool:
        """Whether somebody listens at the control socket."""
        with contextlib.closing(socket.socket(socket.AF_UNIX)) as probe, contextlib.suppress(OSError):
            probe.connect(str(self.folder / SOCKET_FILE))
            return True
        return False


def launch(switch: LiveSwitch, path: str) -> None:
    """Start the process, without waiting for it."""
    command = [path, "--device-id", "1", "--grpc", f"127.0.0.1:{switch.grpc_port}", "--cpu-port", "510"]
    with (switch.folder / "switch.log").open("ab") as log:
        switch.process = subprocess.Popen(command, stdout=log, stderr=log)


class Controller:
    """One `fairlane run` process; killed (-9) when its test ends."""

    def __init__(self, folder: Path, name: str, *arguments: str, code: str = MAIN, before: Iterable[str] = ()) -> None:
        """`code` is what Python runs, with the arguments `before` ahead of the command."""
        self.ready_file = folder / f"{name}.ready"
        self.ready_file.unlink(missing_ok=True)
        self.log = folder / f"{name}.log"
        command = [sys.executable, "-c", code, *before, "run", "--ready-file", str(self.ready_file), *arguments]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*command, "--state", str(folder)], stdout=log, stderr=log)

    def is_settled(self) -> bool:
        """Ready, or ended."""
        return self.ready_file.exists() or self.process.poll() is not None

    def wait_ready(self) -> None:
        """Until it has taken over, or stands by."""
        wait_until("the controller", self.is_settled)
        assert self.process.poll() is None, self.log.read_text(encoding="utf-8")

    def kill(self) -> None:
        """SIGKILL, and wait."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=10)

    def resident_mb(self) -> float:
        """Its resident memory, MB (10^6 bytes)."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def pause(self) -> None:
        """SIGSTOP."""
        self.process.send_signal(signal.SIGSTOP)


@contextlib.contextmanager
def controllers(*made: Controller) -> Generator[list[Controller], None, None]:
    """Kills what was made, and what the body adds to the list."""
    alive = list(made)
    try:
        yield alive
    finally:
        for controller in alive:
            controller.kill()


@contextlib.contextmanager
def live_topology(
    folder: Path, file: str, only: Iterable[str] | None = None, program: str = "qthresh"
) -> Generator[LiveTopology, None, None]:
    """A started topology, set up by `fairlane config init`; `only` leaves out the other switches' processes (and `init`)."""
    if binary("embedded") is None:
        pytest.skip("the embedded switch is not on this machine (build it, or set FAIRLANE_BIN_DIR / PATH)")
    topology = LiveTopology(folder, file, program)
    topology.write_state()
    try:
        if only is None:
            topology.start()
            topology.fairlane("config", "init", *(("--scheme", "qthresh") if program == "qthresh" else ()))
        else:
            for name in only:
                topology.restart(name)
        yield topology
    finally:
        topology.kill()


__all__ = ["Controller", "LiveTopology", "controllers", "live_topology", "wait_until"]
