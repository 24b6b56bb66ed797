# SPDX-License-Identifier: Apache-2.0
"""Transfers of a packet bed that several tests look at: one for each variant and script, repeated when the machine stalled."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping
from pathlib import Path

import pytest
from fairlane_hosts import build, loader
from fairlane_hosts.variants import find_variant
from packet_bed import PacketBed, Script, Trace

MSS = 1000
LOST = 40
"""The data segment that the scripts take away."""
RTO_MIN_S = 0.2
BYTES = 150_000
_ATTEMPTS = 6


@contextlib.contextmanager
def registered(name: str, folder: Path) -> Generator[str]:
    """NewReno under a name of its own; yields the name."""
    build.compile_bpf(build.SENDER_SOURCE, name, find_variant("newreno").definitions, folder / f"{name}.o")
    with loader.acquire([loader.Program(name, folder / f"{name}.o", "own")]):
        yield name


def on_time(transfer: Callable[[], Trace], late_max_s: float = RTO_MIN_S / 4) -> Trace:
    """The trace of a transfer, made again when the machine stalled in it: the forwarder was late by more than `late_max_s`."""
    late_s = list[float]()
    for _ in range(_ATTEMPTS):
        trace = transfer()
        if trace.late_s < late_max_s:
            return trace
        late_s.append(trace.late_s)
    pytest.fail(f"the machine is too busy for a verdict: the forwarder was late by {late_s} s")


class Runs:
    """`runs(variant, case)`: the trace, made when first asked for."""

    def __init__(self, bed: PacketBed, cases: Mapping[str, Script], window_bytes: int | None = None) -> None:
        self.bed, self.cases, self.window_bytes = bed, cases, window_bytes
        self._made: dict[tuple[str, str], Trace] = {}

    def __call__(self, variant: str, case: str) -> Trace:
        if (variant, case) not in self._made:
            self._made[variant, case] = self._run(variant, case)
        return self._made[variant, case]

    def _run(self, variant: str, case: str) -> Trace:
        self.bed.use(variant)
        script = self.cases[case]
        trace = on_time(lambda: self.bed.transfer(BYTES, mss=MSS, script=script, window_bytes=self.window_bytes))
        assert trace.complete
        assert not trace.bad_checksums
        return trace
