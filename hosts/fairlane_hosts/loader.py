# SPDX-License-Identifier: Apache-2.0
"""Registers the BPF congestion controls with the kernel and keeps them, and hosts' programs, for as long as somebody holds a lease.

Names of congestion controls are global to the machine, so there is one holder process (`build/fairlane-cc`) for all
instances of fairlane. A `Lease` is a connection to it; it ends with the process that has it, however that dies. With
the last lease the holder unregisters everything and exits. Sockets that run an algorithm keep it to their end.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import socket
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from . import build, cgroups, filters
from .check import results as check_results
from .errors import HostsError
from .programs import PROGRAMS, HostProgram
from .variants import bpf_variants

DEFAULT_SOCKET = Path("/run/fairlane/cc.sock")
START_TIMEOUT_S = 20.0
ANSWER_TIMEOUT_S = 30.0
"""The kernel verifies a program while it is attached; on a busy machine that takes its time, and whoever else asks waits for it."""
END_TIMEOUT_S = 5.0
"""How long a holder that was told to end may take."""
ENDING_TIMEOUT_S = 1.0
MINIMUM_KERNEL = (5, 15)
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


@dataclass(frozen=True)
class Check:
    """One thing that running the variants needs."""

    what: str
    ok: bool
    found: str
    hint: str = ""


@dataclass(frozen=True)
class Program:
    """A congestion control that the holder will register."""

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
class HolderStatus:
    """What the running holder has registered."""

    pid: int
    tags: Mapping[str, str]
    survives_kill: bool
    """True where the kernel has no struct_ops links (before 6.4): a killed holder leaves its names behind."""
    attached: tuple[AttachedProgram, ...] = ()
    """Programs on hosts."""


def socket_path() -> Path:
    """The holder's socket: one for the machine; `$FAIRLANE_CC_SOCKET` is for tests."""
    return Path(os.environ.get("FAIRLANE_CC_SOCKET") or DEFAULT_SOCKET)


def available() -> list[str]:
    """Names of the congestion controls that the kernel has now."""
    return _AVAILABLE.read_text().split()


def kernel_version(release: str) -> tuple[int, int]:
    """(major, minor) of a `uname -r`. Raises HostsError `kernel-unsupported` when it cannot be read."""
    match = re.match(r"(\d+)\.(\d+)", release)
    if not match:
        raise HostsError("kernel-unsupported", f"cannot read a kernel version out of {release!r}")
    return int(match[1]), int(match[2])


def check(
    release: str | None = None,
    btf: Path = Path("/sys/kernel/btf/vmlinux"),
    bpf: Path = Path("/proc/sys/kernel/unprivileged_bpf_disabled"),
) -> list[Check]:
    """What the variants need of this machine, each with what was found and how to mend it; changes nothing."""
    release = release or os.uname().release
    directory, wanted = build.build_dir(), [v.object_name for v in bpf_variants() if v.object_name]
    wanted += [program.object_name for program in PROGRAMS.values()]
    missing = [name for name in ["fairlane-cc", *wanted] if not (directory / name).is_file()]
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
            f"all in {directory}" if not missing else f"missing in {directory}: {', '.join(missing)}",
            "python -m fairlane_hosts.build",
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

    Without those that this kernel refused when `fairlane hosts check` tried them (`refused_too`: with them).
    """
    tags, found = build.read_tags(), list[Program]()
    for variant in bpf_variants():
        assert variant.object_name is not None
        tag = tags.get(variant.object_name)
        if tag is None:
            raise HostsError("not-built", f"{variant.object_name} is not built", "python -m fairlane_hosts.build")
        result = check_results.read(variant)
        if result is not None and not result.loads and not refused_too:
            continue
        found.append(Program(variant.congestion_control, build.build_dir() / variant.object_name, tag))
    return found


class Lease:
    """Keeps the congestion controls registered until it is closed or its process ends; a context manager."""

    def __init__(self, connection: socket.socket, status: HolderStatus) -> None:
        self._connection = connection
        self.status = status
        self.closed = False

    def hold_process(self, pid: int) -> None:
        """Keep them until process `pid` ends as well, for example a host's shell. Raises HostsError `holder`.

        What this lease has attached until now stays until then, too.
        """
        self.ask(f"hold {pid}")

    def ask(self, request: str) -> list[str]:
        """The holder's answer to one line (hosts/loader/main.c). Raises HostsError `holder`, `holder-gone`."""
        return _ask(self._connection, request)

    def close(self) -> None:
        self.closed = True
        self._connection.close()

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _ask(connection: socket.socket, request: str) -> list[str]:
    what = " ".join(request.split("\t")[0].split()[:2])
    connection.settimeout(ANSWER_TIMEOUT_S)
    try:
        connection.sendall(request.encode() + b"\n")
        answer = b""
        while not re.search(rb"(^|\n)(ok|error [^\n]*)\n$", answer):
            piece = connection.recv(65536)
            if not piece:
                raise ConnectionResetError("it went away")
            answer += piece
    except (ConnectionResetError, BrokenPipeError) as error:
        raise HostsError("holder-gone", f"the holder of the TCP variants went away while asked to {what!r}") from error
    except OSError as error:
        raise HostsError("holder", f"the holder of the TCP variants does not answer to {what!r}: {error}") from error
    lines = answer.decode().splitlines()
    if lines[-1] != "ok":
        raise HostsError("holder", f"the holder of the TCP variants refuses {what!r}: {lines[-1]}")
    return lines[:-1]


def _connect() -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(ANSWER_TIMEOUT_S)
    try:
        connection.connect(str(socket_path()))
    except (FileNotFoundError, ConnectionRefusedError):
        connection.close()
        return None
    except OSError as error:
        connection.close()
        raise HostsError(
            "holder", f"cannot reach the holder of the TCP variants at {socket_path()}: {error}"
        ) from error
    return connection


def _status(connection: socket.socket) -> HolderStatus:
    pid, tags, nolink, attached = 0, dict[str, str](), False, list[AttachedProgram]()
    for line in _ask(connection, "list"):
        words = line.split()
        if words[0] == "pid":
            pid = int(words[1])
        elif words[0] == "attached":
            attached.append(AttachedProgram(words[2], Path(" ".join(words[3:-2])), words[-2]))
        else:
            tags[words[0]] = words[1]
            nolink = nolink or words[2] == "nolink"
    return HolderStatus(pid, tags, nolink, tuple(attached))


@contextlib.contextmanager
def locked() -> Generator[None]:
    """One process at a time starts, ends or cleans up; HostsError `holder` when another one does not come to an end."""
    path = socket_path().with_suffix(".lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + START_TIMEOUT_S
    with path.open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise HostsError(
                        "holder", f"another process keeps {path} locked for {START_TIMEOUT_S:.0f} s"
                    ) from None
                time.sleep(0.02)
        yield


def _start(wanted: list[Program]) -> None:
    """Start the holder and wait for its "ready". Raises HostsError `holder` with what it said."""
    specs = [f"{program.name}={program.path}={program.tag}" for program in wanted]
    process = subprocess.Popen(
        [str(build.holder_path()), "serve", str(socket_path()), *specs],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd="/",
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        readable, _, _ = select.select([process.stdout], [], [], START_TIMEOUT_S)
        if readable and process.stdout.readline() == b"ready\n":
            return
        if not readable:
            process.kill()
        process.wait(timeout=END_TIMEOUT_S)
        said = process.stderr.read().decode(errors="replace").strip()
    if not readable:
        raise HostsError("holder", f"the kernel took longer than {START_TIMEOUT_S:.0f} s to load the TCP variants")
    taken = "registered already" in said
    hint = "`fairlane hosts cleanup` removes what a killed run left" if taken else ""
    raise HostsError("name-taken" if taken else "holder", f"the TCP variants cannot be loaded: {said}", hint)


def _connect_or_start(wanted: list[Program]) -> tuple[socket.socket, HolderStatus]:
    """A connection to a holder that has answered. A holder that is just ending is waited for and replaced."""
    deadline = time.monotonic() + ENDING_TIMEOUT_S
    while True:
        try:
            connection = _connect()
            if connection is None:
                _start(wanted)
                connection = _connect()
            if connection is None:
                raise HostsError("holder", "the holder of the TCP variants ended at once")
            try:
                return connection, _status(connection)
            except BaseException:
                connection.close()
                raise
        except HostsError as error:
            if error.code not in ("holder-gone", "name-taken") or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def acquire(wanted: list[Program] | None = None) -> Lease:
    """Have the congestion controls registered; shares them with every other instance on the machine.

    `wanted` defaults to all variants that need a program. Raises HostsError (`kernel-unsupported`, `not-root`,
    `not-built`, `holder`); nothing is registered then. Nothing falls back to another congestion control.
    """
    if wanted is None:
        require(check())
        wanted = programs()
    with locked():
        connection, status = _connect_or_start(wanted)
    try:
        for program in wanted:
            if status.tags.get(program.name) != program.tag:
                raise HostsError(
                    "holder",
                    f"{program.name} is in use from another build (holder pid {status.pid} has "
                    f"{status.tags.get(program.name, 'none')}, this build is {program.tag})",
                    "end the run that uses it (`make stop` there), or rebuild both from the same sources",
                )
    except BaseException:
        connection.close()
        raise
    return Lease(connection, status)


def status() -> HolderStatus | None:
    """What is registered now, or None when no holder runs. Raises HostsError `holder` when it does not answer."""
    connection = _connect()
    if connection is None:
        return None
    with connection:
        try:
            return _status(connection)
        except HostsError as error:
            if error.code != "holder-gone":
                raise
            return None  # it was just ending; its names went before it did


def cleanup(force: bool = False, names: list[str] | None = None) -> list[str]:
    """Remove what a killed holder left: congestion controls and hosts' cgroups; returns the names removed.

    A running holder has users and is left alone, unless `force`: then it is told to end (its users' sockets go on).
    `names` defaults to the congestion controls of the table. Raises HostsError `holder`.
    """
    names = names if names is not None else [variant.congestion_control for variant in bpf_variants()]
    with locked():
        running = status()
        if running is not None and not force:
            return _remove_cgroups([item.cgroup for item in running.attached])
        removed = list[str]()
        if running is not None:
            removed = _stop(running)
        left = [name for name in names if name in available()]
        if left:
            require(check())
            done = subprocess.run(
                [str(build.holder_path()), "remove", *left], capture_output=True, text=True, timeout=30, check=False
            )
            if done.returncode:
                raise HostsError("holder", f"cannot remove {', '.join(left)}: {done.stderr.strip()}")
            removed += done.stdout.split()
        socket_path().unlink(missing_ok=True)
        removed += _remove_cgroups([])
    return removed


def _remove_cgroups(in_use: list[Path]) -> list[str]:
    """Folders of hosts that have no program any more, and on kernels without tcx links the filters of their namespaces."""
    try:
        folder = cgroups.our_folder(socket_path(), DEFAULT_SOCKET)
    except HostsError:
        return []  # no cgroup v2: then there is none of ours
    left = list[str]()
    if "FAIRLANE_CC_CLASSIC" in os.environ or kernel_version(os.uname().release) < filters.TCX_KERNEL:
        idle = [path for path in folder.rglob("*") if path.is_dir() and path not in in_use]
        left += filters.remove_left(pid for path in idle for pid in cgroups.processes(path))
    return left + cgroups.remove_left(folder, in_use)


def _stop(running: HolderStatus) -> list[str]:
    executable = Path(f"/proc/{running.pid}/exe")
    try:
        if executable.readlink().name.removesuffix(" (deleted)") != "fairlane-cc":
            raise HostsError("holder", f"process {running.pid} is not the holder: {executable.readlink()}")
        pidfd = os.pidfd_open(running.pid)
    except (FileNotFoundError, ProcessLookupError):
        return []
    try:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGTERM)
        if not select.select([pidfd], [], [], END_TIMEOUT_S)[0]:
            raise HostsError("holder", f"the holder (process {running.pid}) does not end within {END_TIMEOUT_S:g} s")
    finally:
        os.close(pidfd)
    return sorted(running.tags)
