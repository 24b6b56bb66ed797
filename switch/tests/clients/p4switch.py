# SPDX-License-Identifier: Apache-2.0
# pyright: basic, reportMissingImports=false
"""fairlane-switch for stock Mininet (`mn --custom`), under the names and with the options that finsy's examples use.

P4Runtime of the Nth switch listens on 127.0.0.1:(50000 + N), its device id is 1. `FAIRLANE_SWITCH` names the binary.
"""

from __future__ import annotations

import os
import selectors
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from mininet.node import Switch

READY_TIMEOUT_S = 20.0
FIRST_PORT = 50001
OFFLOADS = ("rx", "tx", "sg", "tso", "gso", "gro", "rxvlan", "txvlan")


class FairlaneSwitch(Switch):
    """A switch in the root namespace."""

    made = 0

    def __init__(self, name: str, config: dict[str, Any] | None = None, **params: Any) -> None:
        super().__init__(name, **params)
        self.config = config or {}
        self.grpc = f"127.0.0.1:{FIRST_PORT + FairlaneSwitch.made}"
        FairlaneSwitch.made += 1
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, _controllers: object) -> None:
        command = [os.environ.get("FAIRLANE_SWITCH", "fairlane-switch"), "--device-id", "1", "--grpc", self.grpc]
        command += ["--cpu-port", str(self.config.get("cpu_port", 255))]
        for option, key in (
            ("--tls-client-ca", "grpc_cacert"),
            ("--tls-cert", "grpc_cert"),
            ("--tls-key", "grpc_private_key"),
        ):
            if self.config.get(key):
                command += [option, self.config[key]]
        for port, interface in sorted(self.intfs.items()):
            if port > 0:
                for feature in OFFLOADS:
                    self.cmd(f"ethtool -K {interface} {feature} off")
                command += ["-i", f"{port}@{interface}"]
        said = Path(tempfile.gettempdir()) / f"fairlane-{self.name}.log"
        with said.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL)
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            line = self.process.stdout.readline() if selector.select(READY_TIMEOUT_S) else b""
        if b": ready " not in line:
            raise RuntimeError(f"{self.name}: fairlane-switch did not start; see {said}")

    def stop(self, deleteIntfs: bool = True) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait(timeout=10)
        super().stop(deleteIntfs)


switches = {"bmv2": FairlaneSwitch, "stratum": FairlaneSwitch}
