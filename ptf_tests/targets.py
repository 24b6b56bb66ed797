# SPDX-License-Identifier: Apache-2.0
"""The switches that the tests run against: how each is started, made slow on one port, and stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fairlane_switch import bmv2
from fairlane_switch.process import Service, accepts, find_binary
from fairlane_switch.switch import PortOptions, SwitchOptions

REPOSITORY = Path(__file__).resolve().parent.parent
READY_TIMEOUT_S = 20.0
GRPC = "127.0.0.1:9559"
THRIFT_PORT = 9090


class TargetError(RuntimeError):
    """The switch is missing or did not start; the text says what to do."""


@dataclass(frozen=True)
class TargetOptions:
    """What a target is started with."""

    interfaces: Mapping[int, str]
    """Switch port -> interface name."""
    slow_port: int
    """The port whose line is slow."""
    slow_rate_bps: int
    """Its rate, bit/s."""
    frame_bytes: int
    """Length of the frames for which BMv2, which knows no bits, gets that rate."""
    queue_packets: int
    """How many packets its queue holds."""
    log: Path
    """Where the switch's output goes."""
    control: Path
    """The control socket (embedded switch)."""


def _start(binary: str, arguments: Sequence[str], options: TargetOptions) -> Service:
    command = [str(find_binary(binary)), *arguments]
    return Service(binary, lambda: command, options.log, lambda: accepts(GRPC, timeout_s=0.2), READY_TIMEOUT_S).start()


def _start_embedded(options: TargetOptions) -> Service:
    ports = [PortOptions(port, interface) for port, interface in options.interfaces.items()]
    slow = {"rate_bps": options.slow_rate_bps, "queue_packets": options.queue_packets}
    ports = [replace(port, **slow) if port.port == options.slow_port else port for port in ports]
    words = SwitchOptions(ports, grpc=GRPC, control=options.control, seed=1).arguments()
    return _start("fairlane-switch", words, options)


def _start_bmv2(options: TargetOptions) -> Service:
    words = bmv2.Bmv2Options(options.interfaces, GRPC, THRIFT_PORT, log_level="warn").arguments()
    service = _start(bmv2.BINARY, words, options)
    try:
        depth = bmv2.queue_depth(options.slow_port, options.queue_packets)
        rate = bmv2.queue_rate(options.slow_port, options.slow_rate_bps, options.frame_bytes)
        bmv2.run_cli(THRIFT_PORT, depth, rate)
    except BaseException:
        service.stop()
        raise
    return service


TARGETS: dict[str, Callable[[TargetOptions], Service]] = {"embedded": _start_embedded, "bmv2": _start_bmv2}


def start(target: str, options: TargetOptions) -> Service:
    """Start a switch, ready when this returns. Raises RuntimeError."""
    return TARGETS[target](options)
