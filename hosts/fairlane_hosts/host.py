# SPDX-License-Identifier: Apache-2.0
"""Attaches programs to one host: its cgroup and its interface, for as long as a lease lives.

An `Attachment` ends when it is closed, or with its lease; then the programs, the sysctls that they needed and the host's
cgroup folder go, and the host's processes are where ours is. Two users of one program on one host share it.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlane_controller.state.processes import OwnedProcess

from . import apply, bpf, build, cgroups, loader, registry
from .errors import HostsError
from .programs import HostProgram, find_program
from .variants import Variant

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

    def entering(self, command: Sequence[str | os.PathLike[str]]) -> list[str]:
        """A command line that runs `command` as a process of the host, with its sockets under the host's programs."""
        return cgroups.entering(self.cgroup, command)


def host_of(name: str, netns: Path | None, interface: str = "eth0") -> Host:
    """The host called `name` (`0/h1`: instance and host) with the cgroup folder of that name; nothing is made yet."""
    return Host(netns, registry.cgroup_folder() / name, interface)


class Attachment(contextlib.ExitStack[None]):
    """Programs that are attached to a host; a context manager. Raises HostsError `lease` when they cannot be given back."""

    def __init__(self, lease: loader.Lease, host: Host) -> None:
        super().__init__()
        self._lease = lease
        self._slots = dict[str, int]()
        self._counters = -1
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

    def add(self, opened: registry.Registry, programs: Sequence[HostProgram]) -> None:
        """Attach programs, or share those that are there. Raises HostsError; `close` then takes away what was attached."""
        user = self._lease.add_user()
        self.callback(self._lease.release, {user})
        self.callback(self._slots.clear)
        namespace = (self.host.netns or Path("/proc/self/ns/net")).stat().st_ino
        for program in programs:
            tag = build.tag_of_built(program.object_name)
            wanted = (program.name, str(self.host.cgroup), self.host.interface, namespace)
            for there in opened.hosts:
                if there.place != wanted:
                    continue
                if there.tag != tag:
                    builds = f"{there.tag}, this build is {tag}"
                    raise HostsError(
                        "other-build", f"program {program.name} is in use there from another build ({builds})"
                    )
                break
            else:
                there = self._attach(opened, program, tag, namespace)
            there.users.append(user)
            self._slots[program.name] = there.slot
        self._counters = bpf.open_pin(registry.pins("maps") / "shared_count")
        self.callback(os.close, self._counters)

    def _attach(
        self, opened: registry.Registry, program: HostProgram, tag: str, namespace: int
    ) -> registry.HostPrograms:
        slot = min(set(range(SLOTS)) - {there.slot for there in opened.hosts}, default=-1)
        if slot < 0:
            raise HostsError("refused", f"there are {SLOTS} programs on hosts already")

        def inside() -> registry.HostPrograms:
            self._link(program, slot)
            entry = registry.HostPrograms(
                program=program.name,
                tag=tag,
                cgroup=str(self.host.cgroup),
                netns=str(self.host.netns or "/proc/self/ns/net"),
                netns_inode=namespace,
                interface=self.host.interface,
                slot=slot,
                sysctls={name: apply.read_sysctl(name) for name in program.sysctls},
                users=[],
            )
            opened.hosts.append(entry)
            opened.write()
            apply.write_sysctls(program.sysctls)
            return entry

        return apply.run_in_namespace(self.host.netns, inside)

    def _link(self, program: HostProgram, slot: int) -> None:
        """In the host's namespace: load the program, and attach its parts by links with pins of this slot."""
        try:
            interface = socket.if_nametoindex(self.host.interface)
        except OSError:
            raise HostsError("namespace", f"there is no interface {self.host.interface} in {self.host.netns}") from None
        folder, doing = registry.pins("hosts") / str(slot), "cannot open the BPF object of"
        cgroup = os.open(self.host.cgroup, os.O_RDONLY | os.O_DIRECTORY)
        try:
            folder.mkdir(exist_ok=True)
            with bpf.BpfObject(build.build_dir() / program.object_name) as loaded:
                doing = "the kernel refuses"
                loader.load(loaded)
                bpf.write_element(loaded.map("host_slot"), 0, struct.pack("=I", slot))
                for index in range(COUNTERS):
                    bpf.write_element(loaded.map("shared_count"), slot * COUNTERS + index, bytes(8))
                for part, hook in program.parts.items():
                    doing = f"cannot attach {part} to {self.host.cgroup} and {self.host.interface}:"
                    if hook.is_interface and not bpf.kernel_has(bpf.TCX_KERNEL):
                        bpf.add_filter(loaded.program(part), interface, hook)
                    else:
                        bpf.create_link(
                            loaded.program(part), interface if hook.is_interface else cgroup, hook, folder / part
                        )
        except OSError as error:
            raise HostsError("refused", f"{doing} program {program.name}: {error.strerror}") from error
        finally:
            os.close(cgroup)


def attach(host: Host, programs: Sequence[str], lease: loader.Lease) -> Attachment:
    """Attach programs to a host, and move the processes of its namespace into its cgroup. All or nothing.

    With `netns` None no process is moved: `cgroups.move` or `Host.entering` does it. Sockets that exist already run without the
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
    try:
        with registry.opened() as opened:  # a clean-up beside us would take the folder for one that was left
            cgroups.make(folder, str(host.cgroup.relative_to(folder)))
            attachment.add(opened, wanted)
        if host.netns is not None:
            namespace = {f"net:[{host.netns.stat().st_ino}]"}
            for _ in range(cgroups.MOVE_ROUNDS):  # a process that forks meanwhile leaves a child behind
                inside = set(cgroups.processes(host.cgroup))
                there = {process.pid for process in OwnedProcess.in_namespaces(namespace, "")}
                if not cgroups.move(there - inside, host.cgroup):
                    break
    except BaseException:
        with contextlib.suppress(HostsError):  # the first error is the one to report
            attachment.close()
        raise
    return attachment


def use_on_hosts(
    wanted: Mapping[str, Variant], pids: Mapping[str, int], topology: str
) -> tuple[dict[str, apply.HostTcp], loader.Lease | None]:
    """Make variants the defaults of hosts of a topology, and attach what they need: at their hosts, and what their receivers need at every host, since each may be one.

    Args:
        wanted: the variants, by host.
        pids: a process of each host of the topology.
        topology: its name.

    Returns:
        How TCP is set then, by host of `wanted`; and the lease that holds what was registered and attached, to be closed when the
        topology has ended (None: the kernel has all variants by itself).

    Raises:
        HostsError: nothing stays attached.
    """
    for variant in wanted.values():
        apply.require(variant)
    received = [program for variant in wanted.values() for program in variant.receiver_programs]
    found = dict[str, apply.HostTcp]()
    with contextlib.ExitStack() as stack:
        needed = not all(variant.builtin for variant in wanted.values())
        lease = stack.enter_context(loader.acquire()) if needed else None
        for name, pid in pids.items():
            namespace, own = apply.namespace_of(pid), wanted.get(name)
            programs = [*(own.programs if own else ()), *received]
            if programs and lease is not None:
                attach(host_of(f"{topology}/{name}", namespace), programs, lease)
            if own:
                found[name] = apply.use_on_host(own, namespace)
        stack.pop_all()
    return found, lease
