# SPDX-License-Identifier: Apache-2.0
"""What fairlane has in this machine's kernel: one file under one lock, beside the kernel's own links.

Links live as long as a process has them open. This file says which they are, so that several processes share them, and
what is to be undone when they have ended: sysctls, cgroup folders, and on kernels without links names and filters.
Whoever comes next with the lock undoes it; a keeper (keeper.py) comes when a process was killed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import time
from collections.abc import Generator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from . import bpf, cgroups, filters
from .errors import HostsError

DEFAULT_FILE = Path("/run/fairlane/cc.json")
LOCK_TIMEOUT_S = 20.0


def path() -> Path:
    """The file: one for the machine; `$FAIRLANE_CC_STATE` is for tests and for builds with names of their own."""
    return Path(os.environ.get("FAIRLANE_CC_STATE") or DEFAULT_FILE)


def cgroup_folder() -> Path:
    """The cgroup folder that holds all hosts' folders. Raises HostsError `kernel-unsupported` without cgroup v2."""
    own = "" if path() == DEFAULT_FILE else "-" + hashlib.sha256(str(path()).encode()).hexdigest()[:8]
    return cgroups.mount_point() / f"fairlane{own}"


@dataclass(frozen=True)
class Name:
    """A congestion control that is registered."""

    tag: str
    """Which build."""
    link: int | None
    """Id of its link; None: registered without one, until its last user ends."""

    def is_live(self) -> bool:
        """Whether some process uses it."""
        return in_use() if self.link is None else bpf.link_exists(self.link)


@dataclass(frozen=True)
class HostPrograms:
    """One program that is attached to a host."""

    program: str
    tag: str
    cgroup: str
    origin: str
    """The cgroup folder that its processes came from."""
    netns: str
    """Path of its network namespace,"""
    netns_inode: int
    """which was this one."""
    interface: str
    slot: int
    """Of its counters: `shared_count` from 16 times this on."""
    links: list[int]
    sysctls: dict[str, str]
    """`net.ipv4.*` as they were before."""

    def is_live(self) -> bool:
        """Whether some process uses it."""
        return any(map(bpf.link_exists, self.links))

    def undo(self) -> list[str]:
        """Put sysctls back and remove filters, where the namespace is still there; what was removed."""
        try:
            if Path(self.netns).stat().st_ino != self.netns_inode:
                return []
        except OSError:
            return []
        for name, value in self.sysctls.items():
            filters.run_in(Path(self.netns), "sysctl", "-qw", f"net.ipv4.{name}={value}")
        return [] if bpf.kernel_has(bpf.TCX_KERNEL) else filters.remove_all(Path(self.netns))


@dataclass
class Registry:
    """The file's content while the lock is held."""

    names: dict[str, Name] = field(default_factory=dict[str, Name])
    hosts: list[HostPrograms] = field(default_factory=list[HostPrograms])
    maps: dict[str, int] = field(default_factory=dict[str, int])
    """Ids of the maps that all objects share, by name."""

    def write(self) -> None:
        """Also in the middle of a change, where a kill must not lose what is to be undone."""
        partial = path().with_suffix(".partial")
        partial.write_text(json.dumps(asdict(self)))
        partial.replace(path())

    def undo_ended(self) -> list[str]:
        """Undo what no process uses any more; what was removed."""
        removed = list[str]()
        for name, entry in [(name, entry) for name, entry in self.names.items() if not entry.is_live()]:
            if entry.link is None and bpf.unregister(name):
                removed.append(name)
            del self.names[name]
        return removed + self._undo([host for host in self.hosts if not host.is_live()])

    def detach_all(self) -> list[str]:
        """Take everything away from the processes that use it; what was removed. Raises HostsError `in-use`."""
        try:
            for name, entry in self.names.items():
                if entry.link is None:
                    bpf.unregister(name)
                else:
                    bpf.detach_link(entry.link)
            for link in [link for host in self.hosts for link in host.links]:
                bpf.detach_link(link)
        except OSError as error:
            raise HostsError(
                "in-use",
                f"this kernel takes no TCP variant away from those who use it: {error.strerror}",
                "end the runs that use them (`make stop`)",
            ) from error
        removed = sorted(self.names)
        self.names.clear()
        return removed + self._undo(self.hosts)

    def _undo(self, ended: list[HostPrograms]) -> list[str]:
        removed = list[str]()
        self.hosts = [host for host in self.hosts if host not in ended]
        in_use_now = [Path(host.cgroup) for host in self.hosts]
        for host in ended:
            removed += host.undo()
            removed += cgroups.remove_left(Path(host.cgroup), in_use_now, Path(host.origin))
        with contextlib.suppress(HostsError):  # without cgroup v2 there is none of ours
            removed += cgroups.remove_left(cgroup_folder(), in_use_now)
        return removed


def read() -> Registry:
    """What the file says; without the lock it may be out of date. Nothing where there is no file, or a broken one."""
    try:
        found = json.loads(path().read_text())
        names = {str(name): Name(**entry) for name, entry in found["names"].items()}
        hosts = [HostPrograms(**entry) for entry in found["hosts"]]
        return Registry(names, hosts, dict(found["maps"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Registry()


@contextlib.contextmanager
def opened() -> Generator[Registry]:
    """The registry for one process at a time, what has ended undone; written at the end. Raises HostsError `lease`."""
    with _locked():
        registry = read()
        registry.undo_ended()
        try:
            yield registry
        finally:
            registry.write()


def undo_ended() -> list[str]:
    """Remove what no process has open any more. Returns what was removed. Raises HostsError."""
    with _locked():
        registry = read()
        removed = registry.undo_ended()
        registry.write()
    return removed


@contextlib.contextmanager
def _locked() -> Generator[None]:
    lock = path().with_suffix(".lock")
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise HostsError("lease", f"cannot open {lock}: {error.strerror}", "run it as root") from error
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise HostsError(
                        "lease", f"another process keeps {lock} locked for {LOCK_TIMEOUT_S:.0f} s"
                    ) from None
                time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)


def use() -> int:
    """A descriptor that shows, while it is open, that a process uses what is registered without links."""
    descriptor = os.open(_users(), os.O_RDWR | os.O_CREAT, 0o644)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def in_use() -> bool:
    """Whether a descriptor of `use` is open somewhere."""
    try:
        with _users().open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _users() -> Path:
    return path().with_suffix(".users")
