# SPDX-License-Identifier: Apache-2.0
"""Our folders of cgroup v2: one a host, below one folder of ours, and the processes in them."""

from __future__ import annotations

import contextlib
import errno
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from .errors import HostsError

MOUNTS = Path("/proc/self/mounts")
MOVE_ROUNDS = 10
_PLAIN = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")


def mount_point(mounts: Path = MOUNTS) -> Path:
    """Where cgroup v2 is mounted, alone or beside v1. Raises HostsError `kernel-unsupported`."""
    found = [words[1] for line in mounts.read_text().splitlines() if (words := line.split())[2] == "cgroup2"]
    if not found:
        raise HostsError(
            "kernel-unsupported",
            "host programs need cgroup v2, and none is mounted",
            "mkdir -p /sys/fs/cgroup/unified && mount -t cgroup2 none /sys/fs/cgroup/unified",
        )
    return Path(min(found, key=lambda path: (not path.startswith("/sys/fs/cgroup"), len(path))))


def make(folder: Path, name: str) -> Path:
    """Make the folder of host `name` (`0/h1`) below ours. Raises HostsError `cgroup`."""
    if not _PLAIN.fullmatch(name) or ".." in name.split("/"):
        raise HostsError("cgroup", f"{name!r} names no cgroup: want letters, digits and . _ - between slashes")
    path = folder / name
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        hint = "run it as root" if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else ""
        raise HostsError("cgroup", f"cannot make cgroup {path}: {error.strerror}", hint) from error
    return path


def processes(cgroup: Path) -> list[int]:
    """Process ids in a cgroup folder; none when there is no such folder."""
    try:
        return [int(line) for line in (cgroup / "cgroup.procs").read_text().split()]
    except FileNotFoundError:
        return []


def cgroup_of(pid: int) -> Path:
    """The v2 folder that a process is in. Raises HostsError `cgroup`."""
    try:
        for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
            if line.startswith("0::"):
                return mount_point() / line[3:].lstrip("/").removesuffix(" (deleted)")
    except FileNotFoundError:
        pass
    raise HostsError("cgroup", f"process {pid} is in no cgroup of v2, or gone")


def move(pids: Iterable[int], cgroup: Path) -> int:
    """Move processes into a folder; one that has ended meanwhile is no error. How many moved. Raises HostsError `cgroup`."""
    moved = 0
    for pid in pids:
        try:
            (cgroup / "cgroup.procs").write_text(f"{pid}\n")
            moved += 1
        except ProcessLookupError:
            continue
        except OSError as error:
            raise HostsError("cgroup", f"cannot move process {pid} into {cgroup}: {error.strerror}") from error
    return moved


def remove_left(folder: Path, in_use: Sequence[Path]) -> list[str]:
    """Remove the folders below `folder`, and itself, that are not among (nor above) those in use; returns what was removed.

    Processes in them go to where ours is, or to the root of cgroup v2 where that does not take them.
    """
    root, ours, removed = mount_point(), cgroup_of(os.getpid()), list[str]()
    for path in sorted((p for p in (folder, *folder.rglob("*")) if p.is_dir()), key=lambda p: -len(p.parts)):
        if any(path == other or path in other.parents for other in in_use):
            continue
        for target in [root] if folder in (ours, *ours.parents) else [ours, root]:
            with contextlib.suppress(HostsError):
                for _ in range(MOVE_ROUNDS):
                    if not move(processes(path), target):
                        break
        with contextlib.suppress(OSError):
            path.rmdir()
            removed.append(f"cgroup {path.relative_to(root)}")
    return removed


def entering(cgroup: Path, command: Sequence[str | os.PathLike[str]]) -> list[str]:
    """`command`, which then runs in the cgroup from its first socket on."""
    script = 'echo 0 > "$0/cgroup.procs" && exec "$@"'
    return ["sh", "-c", script, str(cgroup), *(os.fspath(word) for word in command)]
