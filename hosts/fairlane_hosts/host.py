# SPDX-License-Identifier: Apache-2.0
"""Attaches programs to one host: its cgroup and its interface, for as long as a lease lives.

The programs belong to the holder process (`loader`). An `Attachment` ends when it is closed, or with its lease, however
the process that has it dies; then the programs, the sysctls that they needed and the host's cgroup folder go, and the
host's processes are back where they were. Two users of one program on one host share it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from . import build, cgroups, loader
from .errors import HostsError
from .programs import HostProgram, find_program


@dataclass(frozen=True)
class Host:
    """What a variant is applied to."""

    netns: Path | None
    """Path of its network namespace (/proc/PID/ns/net, /run/netns/NAME); None: this namespace."""
    cgroup: Path
    """Its folder of cgroup v2; sockets made by processes in it run the programs."""
    interface: str = "eth0"
    """Where tc programs go."""

    def join(self, pid: int) -> None:
        """Move a process into the host's cgroup: for sockets that it makes from now on. Raises HostsError `cgroup`."""
        cgroups.move([pid], self.cgroup)

    def entering(self, command: Sequence[str | os.PathLike[str]]) -> list[str]:
        """A command line that runs `command` as a process of the host, with its sockets under the host's programs."""
        return cgroups.entering(self.cgroup, command)


def host_of(name: str, netns: Path | None, interface: str = "eth0") -> Host:
    """The host called `name` (`0/h1`: instance and host) with the cgroup folder of that name; nothing is made yet."""
    return Host(netns, cgroups.our_folder(loader.socket_path(), loader.DEFAULT_SOCKET) / name, interface)


class Attachment:
    """Programs that are attached to a host; a context manager."""

    def __init__(self, lease: loader.Lease, host: Host, ids: dict[str, int]) -> None:
        self._lease = lease
        self._ids = ids
        self.host = host

    @property
    def programs(self) -> tuple[str, ...]:
        return tuple(self._ids)

    def counters(self) -> dict[str, int]:
        """The programs' counters since they were attached, by name. Raises HostsError `holder`, `holder-gone`."""
        found = dict[str, int]()
        for name, number in self._ids.items():
            values = self._lease.ask(f"counters {number}")[0].split()
            found |= {counter: int(value) for counter, value in zip(find_program(name).counters, values, strict=False)}
        return found

    def close(self) -> None:
        """Give the programs back; nothing when the lease has ended already. Safe to call twice."""
        while self._ids:
            _, number = self._ids.popitem()
            if not self._lease.closed:
                try:
                    self._lease.ask(f"detach {number}")
                except HostsError as error:
                    if error.code != "holder-gone":
                        raise

    def __enter__(self) -> Attachment:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def attach(host: Host, programs: Sequence[str], lease: loader.Lease) -> Attachment:
    """Attach programs to a host, and move the processes of its namespace into its cgroup. All or nothing.

    With `netns` None no process is moved: `Host.join` or `Host.entering` does it. Sockets that exist already run without the
    programs. Raises HostsError (`unknown-program`, `kernel-unsupported`, `not-root`, `not-built`, `cgroup`, `holder`, …).
    """
    wanted = [find_program(name) for name in dict.fromkeys(programs)]
    attachment = Attachment(lease, host, {})
    if not wanted:
        return attachment
    requests = {program.name: _request(host, program) for program in wanted}
    folder = cgroups.our_folder(loader.socket_path(), loader.DEFAULT_SOCKET)
    if folder not in host.cgroup.parents:
        raise HostsError("cgroup", f"{host.cgroup} is not below {folder}", "host_of() names the right one")
    ids = dict[str, int]()
    try:
        with loader.locked():  # a clean-up beside us would take the folder for one that was left
            cgroups.make(folder, str(host.cgroup.relative_to(folder)))
            for name, request in requests.items():
                (line,) = lease.ask(request)
                ids[name] = int(line.split()[1])
        if host.netns is not None:
            _move_in(host)
    except BaseException:
        with contextlib.suppress(HostsError):  # the first error is the one to tell
            Attachment(lease, host, ids).close()
        if not ids:
            cgroups.remove_left(host.cgroup, [item.cgroup for item in _attached()])
        raise
    return Attachment(lease, host, ids)


def _attached() -> tuple[loader.AttachedProgram, ...]:
    holder = loader.status()
    return holder.attached if holder else ()


def _move_in(host: Host) -> None:
    assert host.netns is not None
    for _ in range(cgroups.MOVE_ROUNDS):  # a process that forks meanwhile leaves a child behind
        inside = set(cgroups.processes(host.cgroup))
        outside = [pid for pid in cgroups.processes_in_netns(host.netns) if pid not in inside]
        if not cgroups.move(outside, host.cgroup):
            return


def _origin() -> Path:
    """Where the host's processes came from: where we are, as we have started them."""
    folder, ours = cgroups.our_folder(loader.socket_path(), loader.DEFAULT_SOCKET), cgroups.cgroup_of(os.getpid())
    return folder.parent if folder in (ours, *ours.parents) else ours


def _request(host: Host, program: HostProgram) -> str:
    loader.require(loader.check_programs([program]))
    namespace = host.netns or Path(f"/proc/{os.getpid()}/ns/net")
    if not namespace.exists():
        raise HostsError("namespace", f"there is no network namespace {namespace}")
    tag = build.read_tags().get(program.object_name)
    if tag is None:
        raise HostsError("not-built", f"{program.object_name} is not built", "python -m fairlane_hosts.build")
    sysctls = ",".join(f"{name}={value}" for name, value in program.sysctls.items()) or "-"
    path = build.build_dir() / program.object_name
    fields = [program.name, path, tag, host.cgroup, _origin(), namespace, host.interface, sysctls]
    text = "\t".join(map(str, fields))
    if "\n" in text or len(fields) != len(text.split("\t")):
        raise HostsError("holder", f"a path with a tab or a new line cannot be attached: {text!r}")
    return f"attach {text}"
