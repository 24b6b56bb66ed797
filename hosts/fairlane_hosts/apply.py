# SPDX-License-Identifier: Apache-2.0
"""Gives a host (network namespace) or one socket its TCP variant, and checks what is really in use."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from . import bpf
from .check.results import require as require
from .errors import HostsError
from .variants import VARIANTS, Variant

_SYSCTL = Path("/proc/sys/net/ipv4")
_DEFAULT_CC = "tcp_congestion_control"
CLONE_NEWNET = 0x40000000
_NAME_BYTES = 16
T = TypeVar("T")


@dataclass(frozen=True)
class HostTcp:
    """How TCP is set in one namespace."""

    congestion_control: str
    sysctls: Mapping[str, int]

    @property
    def variant(self) -> str | None:
        """The variant of the table that this is, or None."""
        for variant in VARIANTS.values():
            if variant.congestion_control == self.congestion_control and not differing(variant, self.sysctls):
                return variant.name
        return None


def namespace_of(pid: int) -> Path:
    """Path of the namespace of a process. Raises HostsError `namespace` when there is no such process."""
    path = Path(f"/proc/{pid}/ns/net")
    if not path.exists():
        raise HostsError("namespace", f"there is no process {pid}")
    return path


def run_in_namespace(path: Path | None, action: Callable[[], T]) -> T:
    """Run `action` in the network namespace at `path`, in a thread of its own; ours is not touched."""
    if path is None:
        return action()

    def run() -> T:
        with path.open() as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
                error = os.strerror(ctypes.get_errno())
                raise HostsError("namespace", f"cannot enter {path}: {error}", "run it as root")
        return action()

    with ThreadPoolExecutor(1) as executor:
        return executor.submit(run).result()


def differing(variant: Variant, sysctls: Mapping[str, int]) -> dict[str, tuple[int | None, int]]:
    """Sysctls that are not as the variant wants them: name -> (found, wanted). An optional one may be missing."""
    wanted = wanted_sysctls(variant, sysctls)
    return {name: (sysctls.get(name), value) for name, value in wanted.items() if sysctls.get(name) != value}


def wanted_sysctls(variant: Variant, present: Mapping[str, int]) -> dict[str, int]:
    """What is to be set for a variant on a kernel that has the sysctls `present`, in order."""
    return {**variant.sysctls, **{k: v for k, v in variant.optional_sysctls.items() if k in present}}


def _read_sysctls() -> dict[str, int]:
    names = {name for variant in VARIANTS.values() for name in (*variant.sysctls, *variant.optional_sysctls)}
    return {name: int(read_sysctl(name).split()[0]) for name in sorted(names) if (_SYSCTL / name).exists()}


def read_host(path: Path | None = None) -> HostTcp:
    """How TCP is set in a namespace (ours by default)."""
    return run_in_namespace(path, lambda: HostTcp(read_sysctl(_DEFAULT_CC), _read_sysctls()))


def _hint(name: str, value: str, error: OSError) -> str:
    if error.errno not in (errno.EPERM, errno.EACCES):
        return ""
    if os.geteuid() == 0 and name == _DEFAULT_CC:
        return (
            f"the kernel restricts {value!r} in namespaces; allow it for the whole machine: sysctl -w "
            f'net.ipv4.tcp_allowed_congestion_control="$(sysctl -n net.ipv4.tcp_allowed_congestion_control) {value}"'
        )
    return "run it as root"


def read_sysctl(name: str) -> str:
    """`net.ipv4.<name>` of the caller's namespace."""
    return (_SYSCTL / name).read_text().strip()


def write_sysctls(values: Mapping[str, int | str]) -> None:
    """Set `net.ipv4.*` of the caller's namespace, in this order. Raises HostsError `sysctl`."""
    for name, value in values.items():
        try:
            (_SYSCTL / name).write_text(str(value))
        except OSError as error:
            hint = _hint(name, str(value), error)
            raise HostsError("sysctl", f"cannot set net.ipv4.{name} to {value}: {error.strerror}", hint) from error


def _use_here(variant: Variant) -> HostTcp:
    before = read_host()
    # An unregistered name would make the kernel look for a module; a registered one cannot fail half way.
    if variant.congestion_control not in bpf.available():
        text = f"the kernel has no congestion control {variant.congestion_control!r} (variant {variant.name})"
        hint = f"it has {', '.join(bpf.available())}; fairlane_hosts.loader.acquire() registers those of the table"
        raise HostsError("wrong-congestion-control", text, hint)
    wanted = wanted_sysctls(variant, before.sysctls)
    try:
        write_sysctls({**wanted, _DEFAULT_CC: variant.congestion_control})
        after = read_host()
        wrong = differing(variant, after.sysctls)
        if wrong or after.congestion_control != variant.congestion_control:
            raise HostsError("sysctl", f"the kernel did not take all of variant {variant.name}: {wrong or after}")
    except HostsError:
        ordered = {name: before.sysctls[name] for name in wanted}
        write_sysctls({**ordered, _DEFAULT_CC: before.congestion_control})
        raise
    return after


def use_on_host(variant: Variant, path: Path | None = None, *, even_if_failed: bool = False) -> HostTcp:
    """Make `variant` the default of a namespace: sysctls and congestion control; read back and checked.

    All or nothing. Holds for connections made from now on. A variant that failed its self-test on this kernel is refused
    (the self-test itself says `even_if_failed`). Raises HostsError (`check`, `wrong-congestion-control`, `sysctl`).
    """
    if not even_if_failed:
        require(variant)
    return run_in_namespace(path, lambda: _use_here(variant))


def congestion_control_of(connection: socket.socket) -> str:
    """The congestion control that a socket really uses."""
    raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, _NAME_BYTES)
    return raw.split(b"\0", 1)[0].decode()


def use_on_socket(connection: socket.socket, congestion_control: str) -> None:
    """Set one socket's congestion control and read it back. Raises HostsError `wrong-congestion-control`."""
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion_control.encode())
    except OSError as error:
        text = f"a socket cannot use congestion control {congestion_control!r}: {error.strerror}"
        raise HostsError("wrong-congestion-control", text, f"the kernel has {', '.join(bpf.available())}") from error
    check_socket(connection, congestion_control)


def check_socket(connection: socket.socket, congestion_control: str) -> None:
    """Raise HostsError `wrong-congestion-control` unless the socket uses what is expected."""
    found = congestion_control_of(connection)
    if found != congestion_control:
        raise HostsError("wrong-congestion-control", f"a socket uses {found!r}, not {congestion_control!r}")
