# SPDX-License-Identifier: Apache-2.0
"""Runs the trials of the variants, one after the other in one network, and keeps the results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .. import loader
from ..errors import HostsError
from ..variants import Variant
from . import results
from .bed import CheckBed
from .probes import probes_of
from .results import Result

TRIES = 2
"""A trial that fails is tried once more: a busy machine can be late for a timer."""


def _try(bed: CheckBed, variant: Variant, refused: Mapping[str, str]) -> Result:
    if variant.congestion_control in refused:
        return Result(variant.name, "cannot", refused[variant.congestion_control], loads=False)
    if variant.builtin and variant.congestion_control not in loader.available():
        return Result(variant.name, "absent", f"this kernel was built without {variant.congestion_control}")
    seen = list[str]()
    for probe in probes_of(variant):
        for attempt in range(TRIES):
            try:
                seen.append(probe(bed, variant))
                break
            except HostsError as error:
                if attempt == TRIES - 1:
                    return Result(variant.name, "cannot", str(error).replace("\n ", ";"))
            finally:
                bed.gate.open()
    return Result(variant.name, "ok", "; ".join(seen))


def check_variants(variants: Sequence[Variant], progress: Callable[[Variant], None]) -> list[Result]:
    """Try each variant on the running kernel; a few seconds in all. The results are kept for `use`.

    `progress` gets each variant before it is tried. Raises HostsError when nothing can be tried at all
    (`kernel-unsupported`, `not-root`, `not-built`, `name-taken`, `other-build`, `check`, …).
    """
    found, refused = list[Result](), dict[str, str]()
    loader.require(loader.check())
    with loader.acquire(loader.programs(refused_too=True), refused) as lease, CheckBed(lease) as bed:
        for variant in variants:
            progress(variant)
            found.append(_try(bed, variant, refused))
    results.write(found)
    return found
