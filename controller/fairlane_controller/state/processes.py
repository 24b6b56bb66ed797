# SPDX-License-Identifier: Apache-2.0
"""A process of a run, by pid and start time: so a pid that was used again is never taken for it. Needs the standard library only."""

from __future__ import annotations

import os
from collections.abc import Container
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class OwnedProcess:
    """A process that a launcher started: its pid, its start time in clock ticks since boot (proc(5), field 22), and what it is."""

    pid: int
    starttime: int | None = None
    "None: it is not known."
    what: str = ""
    may_end: bool = False
    """It ends by itself (traffic): nothing is wrong when it has."""

    @classmethod
    def from_pid(cls, pid: int, what: str) -> OwnedProcess:
        """Describe a process that runs now. Raises ProcessLookupError when it is gone."""
        starttime = start_time(pid)
        if starttime is None:
            raise ProcessLookupError(f"process {pid} ({what}) is gone")
        return cls(pid, starttime, what)

    @classmethod
    def identify_child(cls, pid: int, what: str, *, may_end: bool = False) -> OwnedProcess:
        """Describe a process that we have just started; one that ended at once is described as never alive."""
        return cls(pid, start_time(pid) or -1, what, may_end)

    @classmethod
    def from_json(cls, item: dict[str, Any]) -> OwnedProcess:
        """The reverse of `as_json`. Raises KeyError."""
        return cls(item["pid"], item["starttime"], item["what"], bool(item.get("may_end")))

    @classmethod
    def in_namespaces(cls, names: Container[str | None], what: str) -> list[OwnedProcess]:
        """The processes in network namespaces of these names (`namespace_of`), whoever started them."""
        found = [cls.identify_child(int(path.name), what) for path in Path("/proc").iterdir() if path.name.isdigit()]
        return [process for process in found if namespace_of(process.pid) in names]

    def is_alive(self) -> bool:
        """True while this very process runs (a zombie does not)."""
        return self.starttime is not None and start_time(self.pid) == self.starttime

    @property
    def has_died(self) -> bool:
        """Whether it is gone, and should not be."""
        return not self.may_end and self.starttime is not None and not self.is_alive()

    def as_json(self) -> dict[str, Any]:
        """As the run state has it."""
        return asdict(self)


def start_time(pid: int) -> int | None:
    """Start time of a live process in clock ticks since boot, or None."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def namespace_of(pid: int) -> str | None:
    """Name of a process's network namespace, `net:[4026531840]`; None when it has ended."""
    try:
        return os.readlink(f"/proc/{pid}/ns/net")  # noqa: PTH115
    except OSError:
        return None
