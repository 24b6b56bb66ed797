# SPDX-License-Identifier: Apache-2.0
"""Names of P4 objects as people write them: in full, or any suffix that only one of them has."""

from __future__ import annotations

from collections.abc import Iterable

from fairlane_controller.errors import ErrorCode, unknown_name


def resolve_name(kind: str, name: str, names: Iterable[str], where: str = "") -> str:
    """The full name that `name` stands for: itself, or the only one that ends with `.name`.

    Args:
        kind: what it names (`table`), for the error.
        name: as it was given.
        names: all full names.
        where: of what the names are (`table t`), for the error.

    Raises:
        FairlaneError: UNKNOWN_NAME: with the candidates when several end so, else with the nearest valid name.
    """
    everything = list(names)
    found = [name] if name in everything else [full for full in everything if full.endswith(f".{name}")]
    if len(found) == 1:
        return found[0]
    of = f" of {where}" if where else ""
    if found:
        text = f"{kind} {name!r}{of} is ambiguous: {', '.join(sorted(found))}; write more of its name"
        raise ErrorCode.UNKNOWN_NAME(text)
    raise unknown_name(f"{kind}{of}", name, {full.rpartition(".")[2] for full in everything})
