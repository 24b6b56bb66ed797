# SPDX-License-Identifier: Apache-2.0
"""The options of the two ends, checked before anything is opened."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from ..errors import HostsError

ACK_POLICIES = ("kernel", "delayed", "every")
MSS_RANGE = (88, 65483)
FLOWS_RANGE = (1, 1000)
SAMPLE_MS_RANGE = (1, 60_000)
WINDOW_RANGE = (1152, 2**30)  # below, the kernel takes its own least receive buffer
DISTRIBUTIONS = ("fixed", "exponential", "pareto", "web_search", "data_mining")


def check_range(name: str, value: float, low: float, high: float) -> None:
    """Raises HostsError `option` that names the option, its value and the range."""
    if not low <= value <= high:
        raise HostsError("option", f"--{name} {value:g} is out of range: {low:g} to {high:g}")


def parse_endpoint(text: str) -> tuple[str, int]:
    """`10.0.2.1:5001` or `[fd00::2]:5001` -> (address, port). Raises HostsError `option`."""
    host, colon, port = text.rpartition(":")
    try:
        if not colon:
            raise ValueError
        address = str(ipaddress.ip_address(host.strip("[]")))
        number = int(port)
    except ValueError:
        raise HostsError("option", f"--to {text!r} is not ADDRESS:PORT, like 10.0.2.1:5001 or [fd00::2]:5001") from None
    check_range("to port", number, 1, 65535)
    return address, number


@dataclass(frozen=True)
class SendOptions:
    """What `fairlane-traffic send` does."""

    address: str
    port: int
    bytes: int | None = None
    """Bytes that each flow sends; None: greedy."""
    seconds: float | None = None
    """Time from the start to the end; None: until all bytes are acknowledged."""
    flows: int = 1
    cc: tuple[str, ...] = ()
    """Variants or kernel names, flow i takes the i-th, round and round; empty: the host's default."""
    mss: int | None = None
    """TCP_MAXSEG: payload bytes of a packet (without timestamps: packet length - 40)."""
    sample_ms: int = 100
    out: str = "-"
    start_at_ns: int | None = None
    """CLOCK_MONOTONIC; every flow is connected before it."""
    stagger_ms: float = 0.0
    """Flow i starts i times this later."""
    bind: str | None = None
    check_sysctls: bool = True
    """Refuse to run a variant on a host whose sysctls are not the variant's."""
    connect_timeout_s: float = 15.0
    unsent_bytes: int = 128 * 1024
    """Kernel's queue of unsent bytes: full enough for any window of the papers, small at the end."""

    def check(self) -> None:
        """Raises HostsError `option`."""
        if self.bytes is None and self.seconds is None:
            raise HostsError("option", "say how much: --bytes N, --seconds S or both")
        if self.bytes is not None:
            check_range("bytes", self.bytes, 1, 2**50)
        if self.seconds is not None:
            check_range("seconds", self.seconds, 0.01, 86400)
        check_range("flows", self.flows, *FLOWS_RANGE)
        check_range("sample-ms", self.sample_ms, *SAMPLE_MS_RANGE)
        check_range("stagger-ms", self.stagger_ms, 0, 3_600_000)
        if self.mss is not None:
            check_range("mss", self.mss, *MSS_RANGE)


@dataclass(frozen=True)
class SinkOptions:
    """What `fairlane-traffic sink` does."""

    port: int
    bind: str = "0.0.0.0"
    seconds: float | None = None
    connections: int | None = None
    """End after this many connections have ended."""
    sample_ms: int = 100
    out: str = "-"
    ack: str = "kernel"
    """`kernel`: delayed ACKs as Linux has them; `delayed`: from the first segment on; `every`: one a segment."""
    mss: int | None = None
    ready_file: str | None = None
    backlog: int = 1024
    window: int | None = None
    """Most bytes that the sink offers to take (TCP_WINDOW_CLAMP); None: as the kernel does."""
    read_after_ms: float = 0.0
    """Lets data wait so long before it reads; what has come when the sender closes it reads at once."""
    udp: bool = False
    """Datagrams instead of connections."""

    def check(self) -> None:
        """Raises HostsError `option`."""
        check_range("port", self.port, 0, 65535)
        check_range("sample-ms", self.sample_ms, *SAMPLE_MS_RANGE)
        if self.seconds is not None:
            check_range("seconds", self.seconds, 0.01, 86400)
        if self.connections is not None:
            check_range("connections", self.connections, 1, 1_000_000)
        if self.mss is not None:
            check_range("mss", self.mss, *MSS_RANGE)
        if self.window is not None:
            check_range("window", self.window, *WINDOW_RANGE)
        check_range("read-after-ms", self.read_after_ms, 0, 60_000)
        if self.ack not in ACK_POLICIES:
            raise HostsError("option", f"--ack {self.ack!r} is not one of {', '.join(ACK_POLICIES)}")
