# SPDX-License-Identifier: Apache-2.0
"""Starts BMv2's simple_switch_grpc for a measurement, and ends it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Generator, Sequence

from fairlane_switch.bmv2 import BINARY, Bmv2Options
from fairlane_switch.interfaces import run
from fairlane_switch.process import Service, accepts
from testbed import free_addresses

START_S = 30.0


def is_installed() -> bool:
    """Whether there is something to compare with."""
    return shutil.which(BINARY) is not None


@contextlib.contextmanager
def start_bmv2(interfaces: Sequence[str] = ()) -> Generator[Bmv2Options]:
    """BMv2 without a program, with these interfaces as ports 1, 2, …. Raises RuntimeError when it ends or does not serve in time."""
    grpc, thrift = free_addresses(2)
    thrift_port = int(thrift.rpartition(":")[2]) if _has_thrift() else None
    options = Bmv2Options(dict(enumerate(interfaces, 1)), grpc, thrift_port)
    command = [BINARY, *options.arguments()]
    with Service(BINARY, lambda: command, None, lambda: accepts(grpc, timeout_s=1), START_S).start():
        yield options


def _has_thrift() -> bool:
    with contextlib.suppress(RuntimeError):
        return "thrift" in run(BINARY, "--help")
    return False
