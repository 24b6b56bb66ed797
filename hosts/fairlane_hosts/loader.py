# SPDX-License-Identifier: Apache-2.0
"""Registers the BPF congestion controls with the kernel, for as long as somebody holds a lease.

Their names are global to the machine and shared by all instances of fairlane. A `Lease` has the kernel's links open, of
congestion controls and of hosts' programs; the kernel takes away what no process has open any more, however they died.
Sockets that run an algorithm keep it to their end.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from . import bpf, build, cgroups, registry
from .bpf import kernel_version
from .check import results as check_results
from .errors import HostsError
from .programs import PROGRAMS, HostProgram
from .variants import bpf_variants

ENDING_TIMEOUT_S = 1.0
"""How long a name may stay after its link has ended."""
MINIMUM_KERNEL = (5, 15)
SHARED_MAPS = ("shared_ena", "shared_count")
"""Maps that all objects have in common: a congestion control and a host program read the same socket's storage."""
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_keepers: list[subprocess.Popen[bytes]] = []


@dataclass(frozen=True)
class Check:
    """One thing that running the variants needs."""

    what: str
    ok: bool
    found: str
    hint: str = ""


@dataclass(frozen=True)
class Program:
    """A congestion control that is to be registered."""

    name: str
    path: Path
    tag: str


@dataclass(frozen=True)
class AttachedProgram:
    """A program that is attached to a host now."""

    program: str
    cgroup: Path
    tag: str


@dataclass(frozen=True)
class Status:
    """What is registered and attached now, by whichever instance."""

    tags: Mapping[str, str]
    """Build of each congestion control, by name."""
    attached: tuple[AttachedProgram, ...] = ()
    """Programs on hosts."""


def available() -> list[str]:
    """Names of the congestion controls that the kernel has now."""
    return _AVAILABLE.read_text().split()


def check(
    release: str | None = None,
    btf: Path = Path("/sys/kernel/btf/vmlinux"),
    bpf: Path = Path("/proc/sys/kernel/unprivileged_bpf_disabled"),
) -> list[Check]:
    """What the variants need of this machine, each with what was found and how to mend it; changes nothing."""
    release = release or os.uname().release
    directory, wanted = build.build_dir(), [v.object_name for v in bpf_variants() if v.object_name and not v.folder]
    wanted += [program.object_name for program in PROGRAMS.values()]
    missing = [name for name in wanted if not (directory / name).is_file()]
    return [
        Check(
            "kernel",
            kernel_version(release) >= MINIMUM_KERNEL,
            release,
            "BPF congestion control needs Linux 5.15 or newer",
        ),
        Check(
            "BPF",
            bpf.exists(),  # the kernel has this file if, and only if, it has the bpf() call
            "the kernel has it" if bpf.exists() else f"no {bpf}",
            "a kernel built with CONFIG_BPF_SYSCALL=y and CONFIG_BPF_JIT=y; Debian's and Ubuntu's are",
        ),
        Check(
            "kernel type information (BTF)",
            btf.is_file(),
            str(btf) if btf.is_file() else f"no {btf}",
            "a kernel built with CONFIG_DEBUG_INFO_BTF=y; Debian's and Ubuntu's are",
        ),
        Check(
            "root", os.geteuid() == 0, f"user id {os.geteuid()}", "run it as root: registering BPF programs needs it"
        ),
        Check(
            "compiled programs",
            not missing,
            f"{'all' if not missing else 'none' if missing == wanted else 'missing: ' + ', '.join(missing)} in {directory}",
            build.MEND,
        ),
    ]


def check_programs(
    wanted: Sequence[HostProgram] = tuple(PROGRAMS.values()),
    release: str | None = None,
    btf: Path = Path("/sys/kernel/btf/vmlinux"),
    mounts: Path = cgroups.MOUNTS,
) -> list[Check]:
    """What host programs need of this machine beside what the congestion controls need; changes nothing."""
    release = release or os.uname().release
    found = kernel_version(release)
    newest = max((program.kernel for program in wanted), default=MINIMUM_KERNEL)
    too_new = ", ".join(f"{p.name} ({p.kernel[0]}.{p.kernel[1]})" for p in wanted if p.kernel > found)
    checks = [item for item in check(release, btf) if item.what != "compiled programs"]
    checks.append(
        Check(
            "kernel for host programs",
            found >= newest,
            f"{release}{f' is too old for {too_new}' if too_new else ''}",
            "a newer kernel; variants that need none of them run on this one",
        )
    )
    try:
        checks.append(Check("cgroup v2", True, str(cgroups.mount_point(mounts))))
    except HostsError as error:
        checks.append(Check("cgroup v2", False, error.message, error.hint))
    return checks


def require(checks: list[Check]) -> None:
    """Raise HostsError for the first check that failed (`not-root`, `not-built` or `kernel-unsupported`)."""
    codes = {"root": "not-root", "compiled programs": "not-built"}
    for item in checks:
        if not item.ok:
            code = codes.get(item.what, "kernel-unsupported")
            raise HostsError(code, f"cannot load the TCP variants: {item.what}: {item.found}", item.hint)


def programs(*, refused_too: bool = False) -> list[Program]:
    """What `build` has compiled, with the tag of each build. Raises HostsError `not-built`.

    Without those that this kernel is too old for, or refused when `fairlane hosts check` tried them (`refused_too`: with them).
    Senders of the user's own are compiled first, where they changed.
    """
    build.build_all(own_only=True)
    tags, found, running = build.read_tags(), list[Program](), bpf.kernel_version(os.uname().release)
    for variant in bpf_variants():
        assert variant.object_name is not None
        tag = tags.get(variant.object_name)
        if tag is None:
            raise HostsError("not-built", f"{variant.object_name} is not built", build.MEND)
        result = check_results.read(variant)
        unloadable = running < variant.kernel or (result is not None and not result.loads)
        if unloadable and not refused_too:
            continue
        found.append(Program(variant.congestion_control, build.build_dir() / variant.object_name, tag))
    return found


class Lease:
    """Keeps the congestion controls registered until it is closed or its process ends; a context manager."""

    def __init__(self) -> None:
        self.tags = dict[str, str]()
        """Build of each congestion control that it keeps, by name."""
        self.closed = False
        self._descriptors = {registry.use()}
        self._keeper: IO[bytes] | None = None

    def hold_process(self, pid: int) -> None:
        """Keep them until process `pid` ends as well, for example a host's shell. Raises HostsError `lease`.

        What this lease has attached until now stays until then, too.
        """
        try:
            process = os.pidfd_open(pid)
        except OSError as error:
            raise HostsError("lease", f"cannot keep the TCP variants for process {pid}: {error.strerror}") from error
        try:
            _start_keeper(process, self._descriptors)
        finally:
            os.close(process)

    def undo_when_killed(self) -> None:
        """Have another process undo, when this one is killed, what the kernel does not take away by itself."""
        if self._keeper is None:
            self._keeper = _start_keeper(subprocess.PIPE).stdin

    def add(self, descriptor: int) -> None:
        """Keep a link or map open."""
        self._descriptors.add(descriptor)

    def release(self, descriptors: Iterable[int]) -> None:
        """Close links and maps, and undo what has ended with them. Raises HostsError `lease`."""
        for descriptor in self._descriptors.intersection(descriptors):
            self._descriptors.remove(descriptor)
            os.close(descriptor)
        registry.undo_ended()

    def close(self) -> None:
        """End it; safe to call twice. Raises HostsError `lease`."""
        if self.closed:
            return
        self.closed = True
        try:
            self.release(set(self._descriptors))
        finally:
            if self._keeper is not None:
                self._keeper.close()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _start_keeper(until: int, descriptors: Iterable[int] = ()) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-m", "fairlane_hosts.keeper"],
        stdin=until,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=tuple(descriptors),
        start_new_session=True,
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(build.ROOT)},
    )
    _keepers[:] = [process, *(keeper for keeper in _keepers if keeper.poll() is None)]
    return process


def load(opened: registry.Registry, program: bpf.BpfObject) -> None:
    """Load an object, with the maps that other objects brought; those that it brings are for others. Raises OSError."""
    for name in SHARED_MAPS:
        with contextlib.suppress(FileNotFoundError):
            descriptor = bpf.open_map(opened.maps.get(name, 0))
            try:
                program.share_map(name, descriptor)
            finally:
                os.close(descriptor)
    program.load()
    for name in SHARED_MAPS:
        with contextlib.suppress(FileNotFoundError):
            opened.maps[name] = bpf.id_of(program.map(name))


def _register_once(opened: registry.Registry, program: Program) -> int | None:
    """Descriptor of the link, None without. Raises HostsError `refused`; FileExistsError when the name is taken."""
    with_link, doing = bpf.kernel_has(bpf.STRUCT_OPS_LINK_KERNEL), "cannot open the BPF object"
    try:
        with bpf.BpfObject(program.path) as loaded:
            doing = "the kernel refuses the BPF object"
            if with_link:
                loaded.expect_link(program.name)
            load(opened, loaded)
            doing = "cannot register"
            return loaded.register(program.name, with_link)
    except FileExistsError:
        raise
    except OSError as error:
        raise HostsError(
            "refused", f"the TCP variants cannot be loaded: {program.name}: {doing}: {error.strerror}"
        ) from error


def _register(opened: registry.Registry, program: Program) -> int | None:
    """Descriptor of the link, None without. Raises HostsError `refused`, `name-taken`, `other-build`."""
    there = opened.names.get(program.name)
    if there is not None and there.tag != program.tag:
        raise HostsError(
            "other-build",
            f"{program.name} is in use from another build (which is {there.tag}, this build is {program.tag})",
            "end the run that uses it (`make stop` there), or rebuild both from the same sources",
        )
    if there is not None:
        with contextlib.suppress(FileNotFoundError):  # it ended just now
            return None if there.link is None else bpf.open_link(there.link)
    deadline = time.monotonic() + ENDING_TIMEOUT_S
    while True:
        try:
            link = _register_once(opened, program)
            break
        except FileExistsError as error:
            if time.monotonic() > deadline:
                raise HostsError(
                    "name-taken",
                    f"the TCP variants cannot be loaded: {program.name}: the name is registered already",
                    "`fairlane hosts cleanup` removes what a killed run left",
                ) from error
            time.sleep(0.05)
    opened.names[program.name] = registry.Name(program.tag, None if link is None else bpf.id_of(link))
    return link


def acquire(wanted: list[Program] | None = None, refused: dict[str, str] | None = None) -> Lease:
    """Have the congestion controls registered; shares them with every other instance on the machine.

    `wanted` defaults to all variants that need a program. Those that the kernel refuses are left out where `refused` is
    given, and are in it by name with why. Raises HostsError (`kernel-unsupported`, `not-root`, `not-built`, `refused`,
    `name-taken`, `other-build`, `lease`); nothing is registered then. Nothing falls back to another congestion control.
    """
    if wanted is None:
        require(check())
        wanted = programs()
    lease: Lease | None = None
    try:
        with registry.opened() as opened:
            lease = Lease()
            if not bpf.kernel_has(bpf.STRUCT_OPS_LINK_KERNEL):
                lease.undo_when_killed()
            for program in wanted:
                try:
                    link = _register(opened, program)
                except HostsError as error:
                    if refused is None or error.code != "refused":
                        raise
                    refused[program.name] = error.message
                    continue
                lease.tags[program.name] = program.tag
                if link is not None:
                    lease.add(link)
    except BaseException:
        if lease is not None:
            with contextlib.suppress(HostsError):  # the first error is the one to report
                lease.close()
        raise
    return lease


def status() -> Status:
    """What is registered and attached now."""
    found = registry.read()
    names = {name: entry.tag for name, entry in found.names.items() if entry.is_live()}
    attached = [AttachedProgram(h.program, Path(h.cgroup), h.tag) for h in found.hosts if h.is_live()]
    return Status(names, tuple(attached))


def cleanup(force: bool = False, names: Sequence[str] | None = None) -> list[str]:
    """Remove what killed processes left: congestion controls and hosts' cgroups; returns the names removed.

    What is in use is left alone, unless `force`: then it is taken away from its users (their sockets go on). `names`
    defaults to the congestion controls of the table. Raises HostsError `lease`, `in-use`.
    """
    names = names if names is not None else [variant.congestion_control for variant in bpf_variants()]
    removed = registry.undo_ended()
    with registry.opened() as opened:
        if force:
            removed += opened.detach_all()
        if force or not registry.in_use():
            removed += [name for name in names if name in available() and bpf.unregister(name)]
    return removed
