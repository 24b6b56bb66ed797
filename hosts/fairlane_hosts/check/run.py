# SPDX-License-Identifier: Apache-2.0
"""Runs the trials of the variants, one after the other in one network, and keeps the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from .. import loader
from ..errors import HostsError
from ..variants import VARIANTS, Variant
from . import results
from .bed import CheckBed
from .probes import is_absent, probes_of
from .results import Result

TRIES = 2
"""A trial that fails is tried once more: a busy machine can be late for a timer."""


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

    `progress` gets each variant and its number from 0 before it is tried. Raises HostsError when nothing can be tried at
    all (`kernel-unsupported`, `not-root`, `not-built`, `name-taken`, `other-build`, `check`, …).
    """
    found, refused = list[Result](), dict[str, str]()
    loader.require(loader.check())
    with loader.acquire(loader.programs(refused_too=True), refused) as lease, CheckBed(lease) as bed:
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
