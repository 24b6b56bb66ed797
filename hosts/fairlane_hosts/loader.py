# SPDX-License-Identifier: Apache-2.0
"""Registers the BPF congestion controls with the kernel, for as long as some process has a lease.

Their names are global to the machine and shared by all instances of fairlane. Sockets that run an algorithm keep it to their
end. What a killed process leaves goes with the next lease, or with `cleanup`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import bpf, build, cgroups, registry
from .bpf import available as available
from .bpf import kernel_version
from .check import results as check_results
from .errors import HostsError
from .programs import PROGRAMS, HostProgram
from .variants import bpf_variants

MINIMUM_KERNEL = (5, 15)
SHARED_MAPS = ("shared_ena", "shared_count", "shared_senders")
"""Maps that all objects have in common: what ENA has of a socket, counters, and which programs a congestion control asks for."""
_numbers = itertools.count()


@dataclass(frozen=True)
class Check:
    """One thing that running the variants needs."""

    what: str
    ok: bool
    found: str
    hint: str = ""
    code: str = "kernel-unsupported"
    """Of the HostsError where it is missing."""


@dataclass(frozen=True)
class Program:
    """A congestion control that is to be registered."""

    name: str
    path: Path
    tag: str
    asks: int = 0
    """The host programs that it asks for, a bit each (`Variant.programs_mask`)."""


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
    absent = "none" if missing == wanted else f"missing: {', '.join(missing)}" if missing else "all"
    built = "a kernel built with {}; Debian's and Ubuntu's are"
    too_old = "BPF congestion control needs Linux 5.15 or newer"
    as_root = "run it as root: registering BPF programs needs it"
    return [
        Check("kernel", kernel_version(release) >= MINIMUM_KERNEL, release, too_old),
        # The kernel has this file if, and only if, it has the bpf() call.
        _there("BPF", bpf, built.format("CONFIG_BPF_SYSCALL=y and CONFIG_BPF_JIT=y")),
        _there("kernel type information (BTF)", btf, built.format("CONFIG_DEBUG_INFO_BTF=y")),
        Check("root", os.geteuid() == 0, f"user id {os.geteuid()}", as_root, "not-root"),
        Check("compiled programs", not missing, f"{absent} in {directory}", build.MEND, "not-built"),
    ]


def _there(what: str, path: Path, hint: str) -> Check:
    return Check(what, path.exists(), str(path) if path.exists() else f"no {path}", hint)


def check_programs(
    wanted: Sequence[HostProgram] = tuple(PROGRAMS.values()),
    release: str | None = None,
    mounts: Path = cgroups.MOUNTS,
) -> list[Check]:
    """What host programs need of this machine beside what the congestion controls need; changes nothing."""
    release = release or os.uname().release
    too_new = [p for p in wanted if p.kernel > kernel_version(release)]
    names = ", ".join(f"{p.name} ({p.kernel[0]}.{p.kernel[1]})" for p in too_new)
    checks = [
        *(item for item in check(release) if item.what != "compiled programs"),
        Check("kernel for host programs", not too_new, f"{release} is too old for {names}" if too_new else release),
    ]
    try:
        checks.append(Check("cgroup v2", True, str(cgroups.mount_point(mounts))))
    except HostsError as error:
        checks.append(Check("cgroup v2", False, error.what, error.hint))
    return checks


def require(checks: list[Check]) -> None:
    """Raise HostsError for the first check that failed (`not-root`, `not-built` or `kernel-unsupported`)."""
    for item in checks:
        if not item.ok:
            raise HostsError(item.code, f"cannot load the TCP variants: {item.what}: {item.found}", item.hint)


def programs(*, refused_too: bool = False) -> list[Program]:
    """What `build` has compiled, with the tag of each build. Raises HostsError `not-built`.

    Without those that this kernel is too old for, or refused when `fairlane hosts check` tried them (`refused_too`: with them).
    Senders of the user's own are compiled first, where they changed.
    """
    build.build_all(own_only=True)
    found, running = list[Program](), bpf.kernel_version(os.uname().release)
    for variant in bpf_variants():
        tag = build.tag_of_built(str(variant.object_name))
        result = check_results.read(variant)
        if refused_too or not (running < variant.kernel or (result is not None and not result.loads)):
            path = build.build_dir() / str(variant.object_name)
            found.append(Program(variant.congestion_control, path, tag, variant.programs_mask))
    return found


class Lease(contextlib.ExitStack[None]):
    """Keeps the congestion controls registered until it is closed or its process ends; a context manager.

    Raises HostsError `lease` when it cannot be ended.
    """

    def __init__(self) -> None:
        super().__init__()
        self.callback(lambda: self.release(self.users))
        self.tags = dict[str, str]()
        """Build of each congestion control that it keeps, by name."""
        self.users = set[str]()
        """Names of its uses in the registry: of the congestion controls, and of each attachment to a host."""

    def add_user(self) -> str:
        """A new use."""
        name = registry.user(os.getpid(), next(_numbers))
        self.users.add(name)
        return name

    def hold_process(self, pid: int) -> None:
        """Keep them, and what this lease has attached until now, until process `pid` ends as well. Raises HostsError `lease`."""
        name = registry.user(pid, next(_numbers))
        with registry.opened() as opened:
            for users in (opened.users, *(host.users for host in opened.hosts)):
                if self.users.intersection(users):
                    users.append(name)

    def release(self, users: set[str]) -> None:
        """End uses. Raises HostsError `lease`."""
        ended = self.users & users
        self.users -= ended
        if ended:
            with registry.opened() as opened:
                opened.drop(ended)


def load(program: bpf.BpfObject) -> None:
    """Load an object, with the maps that objects share. Raises OSError."""
    for name in SHARED_MAPS:
        program.share_map(registry.pins("maps") / name)
    program.load()


def _register(program: Program) -> None:
    """Have it registered, by us or by another instance. Raises HostsError `refused`, `name-taken`, `other-build`."""
    there = registry.names().get(program.name)
    if there == program.tag:
        return
    if there is not None:
        raise HostsError(
            "other-build",
            f"{program.name} is in use from another build (which is {there}, this build is {program.tag})",
            "end the run that uses it (`make stop` there), or rebuild both from the same sources",
        )
    with_link, doing = bpf.kernel_has(bpf.STRUCT_OPS_LINK_KERNEL), "cannot open the BPF object"
    try:
        with bpf.BpfObject(program.path) as loaded:
            doing = "the kernel refuses the BPF object"
            if with_link:
                loaded.expect_link(program.name)
            load(loaded)
            doing = "cannot register"
            if program.asks:
                bpf.write_element(loaded.map("shared_senders"), program.name, struct.pack("=I", program.asks))
            loaded.register(program.name, registry.pins("names") / f"{program.name}@{program.tag}", with_link)
    except FileExistsError as error:
        raise HostsError(
            "name-taken",
            f"the TCP variants cannot be loaded: {program.name}: the name is registered already",
            "another program, or a run with another $FAIRLANE_CC_STATE, has it",
        ) from error
    except OSError as error:
        text = f"the TCP variants cannot be loaded: {program.name}: {doing}: {error.strerror}"
        raise HostsError("refused", text) from error


def acquire(wanted: list[Program] | None = None, refused: dict[str, str] | None = None) -> Lease:
    """Have the congestion controls registered; shares them with every other instance on the machine.

    `wanted` defaults to all variants that need a program. Those that the kernel refuses are left out where `refused` is
    given, and are in it by name with why. Raises HostsError (`kernel-unsupported`, `not-root`, `not-built`, `refused`,
    `name-taken`, `other-build`, `lease`); nothing is registered then. Nothing falls back to another congestion control.
    """
    if wanted is None:
        require(check())
        wanted = programs()
    lease = Lease()
    with registry.opened() as opened:
        for program in wanted:
            try:
                _register(program)
            except HostsError as error:
                if refused is None or error.kind != "refused":
                    raise
                refused[program.name] = error.what
            else:
                lease.tags[program.name] = program.tag
        opened.users.append(lease.add_user())
    return lease


def cleanup(force: bool = False) -> list[str]:
    """Remove what killed processes left: congestion controls and hosts' cgroups; returns the names removed.

    What is in use is left alone, unless `force`: then it is taken away from its users (their sockets go on). Raises HostsError `lease`.
    """
    with registry.opened() as opened:
        if force:
            opened.drop()
    return opened.removed
