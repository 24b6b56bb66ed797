# SPDX-License-Identifier: Apache-2.0
"""What fairlane has in this machine's kernel: pinned links and maps, and one file, under one lock, of who uses them.

    BPF file system   names/NAME@BUILD   congestion controls       hosts/SLOT/PART   programs of a host
                      maps/NAME          maps that all share
    cc.json           the users of each, and what a program's end undoes in its host's namespace

A user is a process. What has none that lives goes when the next one opens the registry.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import socket
import subprocess
import time
from collections.abc import Container, Generator
from dataclasses import asdict, dataclass
from pathlib import Path

from fairlane_controller.documents import read_json, write_json
from fairlane_controller.state.processes import start_time
from fairlane_switch.process import wait_until

from . import apply, bpf, cgroups
from .errors import HostsError
from .programs import find_program

DEFAULT_FILE = Path("/run/fairlane/cc.json")
LOCK_TIMEOUT_S = 60.0
END_TIMEOUT_S = 10.0
"""How long the kernel may take to unregister a congestion control whose link ended."""
_KINDS = ("names", "maps", "hosts")
MACHINE_PINS, OWN_PINS = Path("/sys/fs/bpf"), Path("/run/fairlane/bpf")
"""BPF file systems: systemd mounts the first; where it did not, we mount the second."""


def path() -> Path:
    """The file: one for the machine; `$FAIRLANE_CC_STATE` is for tests and for builds with names of their own."""
    return Path(os.environ.get("FAIRLANE_CC_STATE") or DEFAULT_FILE)


def _folder_name() -> str:
    return "fairlane" if path() == DEFAULT_FILE else "fairlane-" + hashlib.sha256(str(path()).encode()).hexdigest()[:8]


def cgroup_folder() -> Path:
    """The cgroup folder that holds all hosts' folders. Raises HostsError `kernel-unsupported` without cgroup v2."""
    return cgroups.mount_point() / _folder_name()


def pins(kind: str) -> Path:
    """The folder of pinned `names`, `maps` or `hosts`: in the machine's BPF file system, or in one of ours where it has none."""
    return (MACHINE_PINS if os.path.ismount(MACHINE_PINS) else OWN_PINS) / _folder_name() / kind


def _mount() -> None:
    """Make the folders of pins. Raises HostsError `refused`."""
    mount = pins("").parent
    try:
        mount.mkdir(parents=True, exist_ok=True)
        if not os.path.ismount(mount):
            subprocess.run(["mount", "-t", "bpf", "none", mount], check=True, timeout=10, capture_output=True)
        for kind in _KINDS:
            pins(kind).mkdir(parents=True, exist_ok=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise HostsError("refused", f"cannot use the BPF file system {mount}: {error}", "run it as root") from error


def names() -> dict[str, str]:
    """Build of each congestion control that is registered, by name; none for who may not look."""
    with contextlib.suppress(OSError):
        return {name: tag for name, _, tag in (pin.name.partition("@") for pin in pins("names").iterdir())}
    return {}


def user(pid: int, number: int) -> str:
    """A use by a process. Raises HostsError `lease` when there is no such process."""
    started = start_time(pid)
    if started is None:
        raise HostsError("lease", f"there is no process {pid} to keep the TCP variants for")
    return f"{pid} {started} {number}"


def _lives(name: str) -> bool:
    pid, started, _ = map(int, name.split())
    return start_time(pid) == started


@dataclass
class HostPrograms:
    """One program that is attached to a host."""

    program: str
    tag: str
    cgroup: str
    netns: str
    """Path of its network namespace,"""
    netns_inode: int
    """which was this one."""
    interface: str
    slot: int
    """Of its pins and of its counters: `shared_count` from 16 times this on."""
    sysctls: dict[str, str]
    """`net.ipv4.*` as they were before."""
    users: list[str]

    @property
    def place(self) -> tuple[str, str, str, int]:
        """Which program, at which host."""
        return self.program, self.cgroup, self.interface, self.netns_inode

    def undo(self) -> None:
        """Put sysctls back and remove filters, where the namespace is still there."""
        with contextlib.suppress(OSError, HostsError):
            if Path(self.netns).stat().st_ino == self.netns_inode:
                apply.run_in_namespace(Path(self.netns), self._undo_here)

    def _undo_here(self) -> None:
        apply.write_sysctls(self.sysctls)
        if not bpf.kernel_has(bpf.TCX_KERNEL):
            interface = socket.if_nametoindex(self.interface)
            for hook in find_program(self.program).parts.values():
                if hook.is_interface:
                    bpf.remove_filter(interface, hook)


class Registry:
    """The file's content while the lock is held."""

    def __init__(self, users: list[str], hosts: list[HostPrograms]) -> None:
        self.users, self.hosts = users, hosts
        """Users of the congestion controls, and what is attached to hosts."""
        self.removed = list[str]()
        """What was taken away since the registry was opened."""

    def write(self) -> None:
        """Also in the middle of a change, where a kill must not lose what is to be undone."""
        write_json(path(), {"users": self.users, "hosts": [asdict(host) for host in self.hosts]})

    def drop(self, ended: Container[str] | None = None) -> None:
        """Forget users; None: all."""
        for users in (self.users, *(host.users for host in self.hosts)):
            users[:] = [] if ended is None else [name for name in users if name not in ended]

    def sweep(self) -> None:
        """Take away what no living process uses."""
        everyone = {*self.users, *(name for host in self.hosts for name in host.users)}
        self.drop({name for name in everyone if not _lives(name)})
        if not self.users:
            self.removed += _unregister_all()
        unused = [host for host in self.hosts if not host.users]
        self.hosts = [host for host in self.hosts if host.users]
        slots = {str(host.slot) for host in self.hosts}
        for folder in [folder for folder in pins("hosts").iterdir() if folder.name not in slots]:
            for pin in folder.iterdir():
                bpf.detach(pin)
            folder.rmdir()
        for host in unused:
            host.undo()
        with contextlib.suppress(HostsError):  # without cgroup v2 there is none of ours
            self.removed += cgroups.remove_left(cgroup_folder(), [Path(host.cgroup) for host in self.hosts])


def _unregister_all() -> list[str]:
    ended = sorted(names())
    for pin in pins("names").iterdir():
        bpf.detach(pin)
    for pin in pins("maps").iterdir():
        pin.unlink()
    wait_until(lambda: not set(ended) & set(bpf.available()), END_TIMEOUT_S)
    return ended


def read() -> Registry:
    """What the file says; without the lock it may be out of date. Nothing where there is no file, or a broken one."""
    try:
        found = read_json(path())
        return Registry(list(found["users"]), [HostPrograms(**entry) for entry in found["hosts"]])
    except (KeyError, TypeError):
        return Registry([], [])


@contextlib.contextmanager
def opened() -> Generator[Registry]:
    """The registry for one process at a time; what nobody uses goes before and after. Raises HostsError `lease`, `refused`."""
    lock = path().with_suffix(".lock")
    with contextlib.ExitStack() as stack:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(lock.open("a"))
        except OSError as error:
            raise HostsError("lease", f"cannot open {lock}: {error.strerror}", "run it as root") from error
        deadline = time.monotonic() + LOCK_TIMEOUT_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise HostsError(
                        "lease", f"another process keeps {lock} locked for {LOCK_TIMEOUT_S:.0f} s"
                    ) from None
                time.sleep(0.02)
        _mount()
        registry = read()
        registry.sweep()
        try:
            yield registry
        finally:
            registry.sweep()
            registry.write()
            with contextlib.suppress(OSError):  # not empty: in use
                for kind in (*_KINDS, ""):
                    pins(kind).rmdir()
