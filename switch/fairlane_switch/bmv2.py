# SPDX-License-Identifier: Apache-2.0
"""BMv2's `simple_switch_grpc`: what it is started with, and the lines that its own command line gets. Thrift alone sets its queues, in packets."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairlane_switch.link_series import Series
from fairlane_switch.process import find_binary

BINARY = "simple_switch_grpc"
CLI_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Bmv2Options:
    """A BMv2 without a program: P4Runtime brings it."""

    interfaces: Mapping[int, str]
    """By port."""
    grpc: str
    """Address of the P4Runtime server."""
    thrift_port: int | None = None
    """None: it was built without Thrift."""
    device_id: int = 1
    cpu_port: int = 510
    log_level: str | None = None
    """Of what goes to its output, such as warn; None: nothing."""
    tls: Path | None = None
    """Folder with the files of `fairlane setup certs`: P4Runtime speaks mutual TLS."""

    def arguments(self) -> list[str]:
        """The command line, without the program's name."""
        words = ["--no-p4", "--device-id", str(self.device_id)]
        words += ["--thrift-port", str(self.thrift_port)] if self.thrift_port else []
        words += [word for port, interface in self.interfaces.items() for word in ("-i", f"{port}@{interface}")]
        words += ["--log-console", "-L", self.log_level] if self.log_level else []
        words += ["--", "--grpc-server-addr", self.grpc, "--cpu-port", str(self.cpu_port)]
        words += ["--priority-queues", "8"]  # of each port, as ours has
        if self.tls is not None:
            for option, file in (("cert", "server.pem"), ("key", "server.key"), ("cacert", "ca.pem")):
                words += [f"--grpc-server-{option}", str(self.tls / file)]
            words += ["--grpc-server-ssl", "--grpc-server-with-client-auth"]
        return words


def run_cli(thrift_port: int, *lines: str) -> None:
    """Give `simple_switch_CLI` lines for a BMv2 that runs. Raises RuntimeError with its own words."""
    command = [str(find_binary("simple_switch_CLI")), "--thrift-port", str(thrift_port)]
    done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=CLI_TIMEOUT_S)
    if done.returncode != 0 or "Error" in done.stdout:
        raise RuntimeError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-300:]}")


def check_rate(switch: str, rate_bps: float | None) -> None:
    """Raises RuntimeError for a rate that BMv2 has not."""
    if isinstance(rate_bps, Series):
        raise RuntimeError(f"{switch}: the rate of a port of BMv2 is no function of time")


def queue_rate(port: int, rate_bps: float, frame_bytes: int) -> str:
    """The line that limits the rate of a port's queues: frames a second, right for one length only."""
    return f"set_queue_rate {max(1, round(rate_bps / 8 / frame_bytes))} {port}"


def queue_depth(port: int, packets: int) -> str:
    """The line that limits how many packets wait in each queue of a port."""
    return f"set_queue_depth {packets} {port}"
