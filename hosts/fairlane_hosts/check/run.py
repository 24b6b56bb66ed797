# SPDX-License-Identifier: Apache-2.0
"""Runs the trials of the variants, one after the other in one network, and keeps the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from .. import loader
from ..errors import HostsError
from ..variants import VARIANTS, Variant
from . import results
from .bed import CheckBed
from .probes import is_absent, probes_of
from .results import Result

HOLDER_END_S = 5.0
TRIES = 2
"""A trial that fails is tried once more: a busy machine can be late for a timer."""


def _acquire() -> tuple[loader.Lease, dict[str, str]]:
    """A lease on what the kernel takes, and by kernel name why it refuses the others. Raises HostsError."""
    loader.require(loader.check())
    wanted = loader.programs(refused_too=True)
    try:
        return loader.acquire(wanted), {}
    except HostsError as error:
        if error.code != "holder":
            raise
        first = error
    if loader.status() is not None:  # somebody uses variants now: what was refused before is not tried again
        return loader.acquire(), {
            p.name: "this kernel refused its program" for p in wanted if p not in loader.programs()
        }
    refused = dict[str, str]()
    for program in wanted:
        try:
            loader.acquire([program]).close()
            _wait_for_the_holders_end()
        except HostsError as error:
            refused[program.name] = error.message
    taken = [program for program in wanted if program.name not in refused]
    if not refused or not taken:
        raise first
    return loader.acquire(taken), refused


def _wait_for_the_holders_end() -> None:
    deadline = time.monotonic() + HOLDER_END_S
    while loader.status() is not None and time.monotonic() < deadline:
        time.sleep(0.01)


def _try(bed: CheckBed, variant: Variant, refused: Mapping[str, str]) -> Result:
    if variant.congestion_control in refused:
        return Result(variant.name, "cannot", refused[variant.congestion_control], loads=False)
    if is_absent(variant, loader.available()):
        return Result(variant.name, "absent", f"this kernel was built without {variant.congestion_control}")
    seen = list[str]()
    for probe in probes_of(variant):
        for attempt in range(TRIES):
            try:
                seen.append(probe(bed, variant))
                break
            except HostsError as error:
                if attempt == TRIES - 1:
                    why = f"{error.message} ({error.hint})" if error.hint else error.message
                    return Result(variant.name, "cannot", why)
            finally:
                bed.gate.open()
    return Result(variant.name, "ok", "; ".join(seen))


def check_variants(variants: Sequence[Variant], progress: Callable[[Variant, int], None] | None = None) -> list[Result]:
    """Try each variant on the running kernel; a few seconds in all. The results are kept for `use`.

    `progress` is told each variant and its number from 0 before it is tried. Raises HostsError when nothing can be tried at
    all (`kernel-unsupported`, `not-root`, `not-built`, `holder`, `check`).
    """
    found = list[Result]()
    lease, refused = _acquire()
    with lease, CheckBed(lease) as bed:
        for number, variant in enumerate(variants):
            if progress is not None:
                progress(variant, number)
            found.append(_try(bed, variant, refused))
    ok = {result.variant: result.ok for result in found}
    for variant in VARIANTS.values():
        kept = results.read(variant)
        ok.setdefault(variant.name, kept is not None and kept.ok)
    found = [replace(r, instead="" if r.ok else results.nearest(r.variant, ok)) for r in found]
    results.write(found)
    return found
