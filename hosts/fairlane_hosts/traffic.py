# SPDX-License-Identifier: Apache-2.0
"""`fairlane-traffic`: the binary of switch/crates/generator, for which a variant of the table becomes its kernel name; and its JSON lines, read back."""

from __future__ import annotations

import argparse
import json
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fairlane_switch.process import BinaryNotFoundError, become_binary

from . import apply
from .errors import HostsError
from .variants import VARIANTS

Record = dict[str, Any]


def main() -> None:
    """Become the binary; exit code 2 when that cannot be."""
    try:
        become_binary("fairlane-traffic", _with_kernel_names(sys.argv[1:]))
    except (HostsError, BinaryNotFoundError) as error:
        print(f"fairlane-traffic: {error}", file=sys.stderr)
        sys.exit(2)


def _with_kernel_names(words: Sequence[str]) -> list[str]:
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--cc")
    parser.add_argument("--no-sysctl-check", action="store_true")
    options, others = parser.parse_known_args(words)
    if not options.cc:
        return others
    names = [_kernel_name(name, check=not options.no_sysctl_check) for name in options.cc.split(",")]
    return [*others, "--cc", ",".join(names)]


def _kernel_name(name: str, *, check: bool) -> str:
    """Of a variant, whose sysctls must be this host's; another name is the kernel's own. Raises HostsError `sysctl`."""
    variant = VARIANTS.get(name)
    if variant is None:
        return name
    wrong = apply.differing(variant, apply.read_host().sysctls) if check else {}
    if wrong:
        listed = ", ".join(f"{sysctl} is {found}, not {want}" for sysctl, (found, want) in wrong.items())
        hint = f"`fairlane hosts use HOST {name}` (or --no-sysctl-check)"
        raise HostsError("sysctl", f"this host is not set for variant {name}: {listed}", hint)
    return variant.congestion_control


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file. Raises HostsError `option` naming the line that is not JSON."""
    with path.open() as file:
        for number, line in enumerate(file, 1):
            try:
                yield json.loads(line)
            except json.JSONDecodeError as error:
                raise HostsError("option", f"{path}, line {number}: not a JSON record: {error.msg}") from error


def read_summary(path: Path) -> Record:
    """The summary of a file. Raises HostsError `option` when the run has not written one."""
    for record in read_records(path):
        if "summary" in record:
            return record["summary"]
    raise HostsError("option", f"{path} has no summary: the run that wrote it did not end")


def goodput(records: Iterable[Record], from_ns: int, to_ns: int) -> dict[str, float]:
    """Goodput of each connection of a sink in a window that is common to all.

    Args:
        records: Of the sink's file.
        from_ns: CLOCK_MONOTONIC.
        to_ns: CLOCK_MONOTONIC, above `from_ns`.

    Returns:
        bit/s by the sender's address and port.
    """
    series = dict[str, list[tuple[int, int]]]()
    for record in records:
        if "peer" in record:
            series.setdefault(record["peer"], []).append((record["t_ns"], record["bytes"]))
    return {
        peer: (_bytes_at(points, to_ns) - _bytes_at(points, from_ns)) * 8e9 / (to_ns - from_ns)
        for peer, points in series.items()
    }


def _bytes_at(points: list[tuple[int, int]], t_ns: int) -> float:
    """Linear between two samples, flat outside of them."""
    index = bisect_right(points, t_ns, key=lambda point: point[0])
    (t0, b0), (t1, b1) = points[max(0, index - 1)], points[min(index, len(points) - 1)]
    return b0 + (b1 - b0) * (t_ns - t0) / (t1 - t0) if t1 > t0 else float(b0)


if __name__ == "__main__":
    main()
