# SPDX-License-Identifier: Apache-2.0
"""Attaches programs to one host: its cgroup and its interface, for as long as a lease lives.

An `Attachment` ends when it is closed, or with its lease, however the process that has it dies; then the programs, the
sysctls that they needed and the host's cgroup folder go, and the host's processes are back where they were. Two users of
one program on one host share it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from . import apply, bpf, build, cgroups, loader, registry
from .errors import HostsError
from .programs import HostProgram, find_program

SLOTS, COUNTERS = 256, 16
"""Of the map shared_count (bpf/programs/host_slot.bpf.h): attachments of the machine, counters of each."""


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
    return Host(netns, registry.cgroup_folder() / name, interface)


class Attachment:
    """Programs that are attached to a host; a context manager."""

    def __init__(self, lease: loader.Lease, host: Host) -> None:
        self._lease = lease
        self._slots = dict[str, int]()
        self._counters = 0
        self._descriptors = list[int]()
        self.host = host

    @property
    def programs(self) -> tuple[str, ...]:
        return tuple(self._slots)

    def counters(self) -> dict[str, int]:
        """The programs' counters since they were attached, by name."""
        return {
            name: bpf.read_element(self._counters, slot * COUNTERS + index)
            for program, slot in self._slots.items()
            for index, name in enumerate(find_program(program).counters)
        }

    def close(self) -> None:
        """Give the programs back; nothing when the lease has ended already. Safe to call twice. Raises HostsError `lease`."""
        descriptors, self._descriptors = self._descriptors, []
        self._slots.clear()
        if not self._lease.closed:
            self._lease.release(descriptors)

    def __enter__(self) -> Attachment:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def keep(self, descriptor: int) -> int:
        """Keep a link or map open as long as this lives."""
        self._descriptors.append(descriptor)
        self._lease.add(descriptor)
        return descriptor

    def add(self, opened: registry.Registry, program: HostProgram) -> None:
        """Attach a program, or share the one that is there. Raises HostsError; `close` then takes away what was attached."""
        tag = build.read_tags().get(program.object_name)
        if tag is None:
            raise HostsError("not-built", f"{program.object_name} is not built", build.MEND)
        namespace = self.host.netns or Path("/proc/self/ns/net")
        wanted = (program.name, str(self.host.cgroup), self.host.interface, namespace.stat().st_ino)
        for there in opened.hosts:
            if (there.program, there.cgroup, there.interface, there.netns_inode) == wanted:
                if there.tag != tag:
                    text = (
                        f"program {program.name} is in use there from another build ({there.tag}, this build is {tag})"
                    )
                    raise HostsError("other-build", text)
                for link in there.links:
                    self.keep(bpf.open_link(link))
                slot = there.slot
                break
        else:
            slot = self._attach(opened, program, tag, namespace)
        self._slots[program.name] = slot
        self._counters = self.keep(bpf.open_map(opened.maps["shared_count"]))

    def _attach(self, opened: registry.Registry, program: HostProgram, tag: str, namespace: Path) -> int:
        slot = min(set(range(SLOTS)) - {there.slot for there in opened.hosts}, default=-1)
        if slot < 0:
            raise HostsError("refused", f"there are {SLOTS} programs on hosts already")
        links = apply.run_in_namespace(self.host.netns, lambda: self._make_links(opened, program, slot))
        before = apply.run_in_namespace(
            self.host.netns, lambda: {name: apply.read_sysctl(name) for name in program.sysctls}
        )
        entry = registry.HostPrograms(
            program=program.name,
            tag=tag,
            cgroup=str(self.host.cgroup),
            origin=str(_origin()),
            netns=str(namespace),
            netns_inode=namespace.stat().st_ino,
            interface=self.host.interface,
            slot=slot,
            links=links,
            sysctls=before,
        )
        opened.hosts.append(entry)
        opened.write()
        apply.run_in_namespace(self.host.netns, lambda: apply.write_sysctls(program.sysctls))
        return slot

    def _make_links(self, opened: registry.Registry, program: HostProgram, slot: int) -> list[int]:
        """In the host's namespace; ids of the links."""
        try:
            interface = socket.if_nametoindex(self.host.interface)
        except OSError:
            raise HostsError("namespace", f"there is no interface {self.host.interface} in {self.host.netns}") from None
        cgroup, doing = os.open(self.host.cgroup, os.O_RDONLY | os.O_DIRECTORY), "cannot open the BPF object of"
        links = list[int]()
        try:
            with bpf.BpfObject(build.build_dir() / program.object_name) as loaded:
                doing = "the kernel refuses"
                loader.load(opened, loaded)
                bpf.write_elements(loaded.map("host_slot"), 0, [ctypes.c_uint32(slot)])
                bpf.write_elements(loaded.map("shared_count"), slot * COUNTERS, [ctypes.c_uint64(0)] * COUNTERS)
                for part, hook in program.parts.items():
                    doing = f"cannot attach {part} to {self.host.cgroup} and {self.host.interface}:"
                    if hook.is_interface and not bpf.kernel_has(bpf.TCX_KERNEL):
                        bpf.add_filter(loaded.program(part), interface, hook)
                    else:
                        target = interface if hook.is_interface else cgroup
                        links.append(bpf.id_of(self.keep(bpf.create_link(loaded.program(part), target, hook))))
        except OSError as error:
            raise HostsError("refused", f"{doing} program {program.name}: {error.strerror}") from error
        finally:
            os.close(cgroup)
        return links


def attach(host: Host, programs: Sequence[str], lease: loader.Lease) -> Attachment:
    """Attach programs to a host, and move the processes of its namespace into its cgroup. All or nothing.

    With `netns` None no process is moved: `Host.join` or `Host.entering` does it. Sockets that exist already run without the
    programs. Raises HostsError (`unknown-program`, `kernel-unsupported`, `not-root`, `not-built`, `cgroup`, `refused`, …).
    """
    wanted = [find_program(name) for name in dict.fromkeys(programs)]
    attachment = Attachment(lease, host)
    if not wanted:
        return attachment
    loader.require(loader.check_programs(wanted))
    if host.netns is not None and not host.netns.exists():
        raise HostsError("namespace", f"there is no network namespace {host.netns}")
    folder = registry.cgroup_folder()
    if folder not in host.cgroup.parents:
        raise HostsError("cgroup", f"{host.cgroup} is not below {folder}", "host_of() names the right one")
    lease.undo_when_killed()
    try:
        with registry.opened() as opened:  # a clean-up beside us would take the folder for one that was left
            cgroups.make(folder, str(host.cgroup.relative_to(folder)))
            for program in wanted:
                attachment.add(opened, program)
        if host.netns is not None:
            _move_in(host)
    except BaseException:
        with contextlib.suppress(HostsError):  # the first error is the one to report
            attachment.close()
        raise
    return attachment


def _move_in(host: Host) -> None:
    assert host.netns is not None
    for _ in range(cgroups.MOVE_ROUNDS):  # a process that forks meanwhile leaves a child behind
        inside = set(cgroups.processes(host.cgroup))
        outside = [pid for pid in cgroups.processes_in_netns(host.netns) if pid not in inside]
        if not cgroups.move(outside, host.cgroup):
            return


def _origin() -> Path:
    """Where the host's processes came from: where we are, as we have started them."""
    folder, ours = registry.cgroup_folder(), cgroups.cgroup_of(os.getpid())
    return folder.parent if folder in (ours, *ours.parents) else ours
