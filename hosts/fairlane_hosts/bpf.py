# SPDX-License-Identifier: Apache-2.0
"""BPF objects, links and maps through libbpf (0.5 or newer) and ctypes; every failure is an OSError with libbpf's words.

A link (a registered congestion control, a program at a cgroup or an interface) and a map that objects share are pinned: files
of a BPF file system, which no process needs to keep open.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import errno
import functools
import os
import re
import struct
from pathlib import Path
from typing import Any

from .errors import HostsError

STRUCT_OPS_LINK_KERNEL = (6, 4)
"""The first kernel with links of congestion controls; on older ones a name stays until it is unregistered."""
TCX_KERNEL = (6, 6)
"""The first kernel with links of programs at an interface; older ones have clsact filters."""
_MAP_FLAG_LINK = 1 << 13  # BPF_F_LINK
_STRUCT_OPS = 44  # enum bpf_attach_type
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_INGRESS, _EGRESS = 1, 2  # enum bpf_tc_attach_point
_REPLACE = 1  # BPF_TC_F_REPLACE
_FILTER_HOOK = struct.Struct("@NiiI4x")  # struct bpf_tc_hook: size, interface, attach point, parent
_FILTER_OPTIONS = struct.Struct("@NiIIII4x")  # struct bpf_tc_opts: size, program, flags, id, handle, priority
_FILTER_PRIORITY = 0xFA1


class Hook(enum.IntEnum):
    """Where a host's program runs (enum bpf_attach_type): at its cgroup, or at its interface."""

    CGROUP_EGRESS = 1
    SOCKET = 3
    INTERFACE_INGRESS = 46
    INTERFACE_EGRESS = 47

    @property
    def is_interface(self) -> bool:
        return self in (Hook.INTERFACE_INGRESS, Hook.INTERFACE_EGRESS)


class _Pointer(ctypes.c_void_p):
    """A result type of its own, so that ctypes hands it on as a pointer and not as an int."""


def available() -> list[str]:
    """Names of the congestion controls that the kernel has now."""
    return _AVAILABLE.read_text().split()


def kernel_version(release: str) -> tuple[int, int]:
    """(major, minor) of a `uname -r`. Raises HostsError `kernel-unsupported` when it cannot be read."""
    match = re.match(r"(\d+)\.(\d+)", release)
    if not match:
        raise HostsError("kernel-unsupported", f"cannot read a kernel version out of {release!r}")
    return int(match[1]), int(match[2])


def kernel_has(version: tuple[int, int]) -> bool:
    """Whether the running kernel is this one or newer; `$FAIRLANE_CC_CLASSIC` is for tests: as on one before 6.4."""
    return "FAIRLANE_CC_CLASSIC" not in os.environ and kernel_version(os.uname().release) >= version


_warning = ctypes.create_string_buffer(512)


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def _keep_warning(level: int, text: int, arguments: int) -> int:
    if level == 0:
        size = ctypes.c_size_t(len(_warning))
        ctypes.CDLL(None).vsnprintf(_warning, size, ctypes.c_void_p(text), ctypes.c_void_p(arguments))
    return 0


@functools.cache
def library() -> ctypes.CDLL:
    """The machine's libbpf. Raises HostsError `not-built`."""
    for name in ("libbpf.so.1", "libbpf.so.0"):
        with contextlib.suppress(OSError):
            found = ctypes.CDLL(name, use_errno=True)
            break
    else:
        raise HostsError("not-built", "there is no libbpf on this machine", "apt install libbpf-dev")
    for name in (
        "object__open_file",
        "object__find_map_by_name",
        "object__find_program_by_name",
        "map__attach_struct_ops",
    ):
        getattr(found, f"bpf_{name}").restype = _Pointer
    found.libbpf_get_error.restype = ctypes.c_long
    found.libbpf_set_print(_keep_warning)
    return found


def _error(number: int) -> OSError:
    words = _warning.value.decode(errors="replace").strip()
    return OSError(number, f"{os.strerror(number)}{f' ({words})' if words else ''}")


def _call(function: str, *arguments: Any) -> int:
    _warning.value = b""
    result: int = getattr(library(), function)(*arguments)
    if result < 0:  # libbpf before 1.0: -1 and errno
        raise _error(ctypes.get_errno() if result == -1 else -result)
    return result


def _make(function: str, *arguments: Any) -> _Pointer:
    _warning.value = b""
    made: _Pointer = getattr(library(), function)(*arguments)
    number: int = library().libbpf_get_error(made)  # libbpf before 1.0: the error is in the pointer
    if number or not made:
        raise _error(-number or errno.EINVAL)
    return made


class BpfObject(contextlib.ExitStack[None]):
    """An object file that is open, as a context manager; what is pinned outlives it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._object = _make("bpf_object__open_file", os.fsencode(path), None)
        self.callback(library().bpf_object__close, self._object)

    def _find(self, what: str, name: str) -> _Pointer:
        found: _Pointer = getattr(library(), f"bpf_object__find_{what}_by_name")(self._object, name.encode())
        if not found:
            raise OSError(errno.EINVAL, f"the BPF object holds no {what} {name}")
        return found

    def share_map(self, path: Path) -> None:
        """Before `load`: have the map of this file name pinned, or use the one that is; nothing where the object has none."""
        with contextlib.suppress(OSError):
            _call("bpf_map__set_pin_path", self._find("map", path.name), os.fsencode(path))

    def expect_link(self, congestion_control: str) -> None:
        """Before `load`: the congestion control is to be registered by a link."""
        found = self._find("map", congestion_control)
        _call("bpf_map__set_map_flags", found, library().bpf_map__map_flags(found) | _MAP_FLAG_LINK)

    def load(self) -> None:
        """Have the kernel verify the programs."""
        _call("bpf_object__load", self._object)

    def map(self, name: str) -> int:
        """Descriptor of a map, after `load`; it ends with this object."""
        return _call("bpf_map__fd", self._find("map", name))

    def program(self, name: str) -> int:
        """Descriptor of a program, after `load`; it ends with this object."""
        return _call("bpf_program__fd", self._find("program", name))

    def register(self, congestion_control: str, pin: Path, with_link: bool) -> None:
        """Register a congestion control, and pin its link (without links: its map). Raises FileExistsError when the name is taken."""
        struct_ops = self._find("map", congestion_control)
        attached = _make("bpf_map__attach_struct_ops", struct_ops)
        link, values = _call("bpf_link__fd", attached), _call("bpf_map__fd", struct_ops)
        library().bpf_link__disconnect(attached)  # the descriptor is ours
        library().bpf_link__destroy(attached)
        if with_link and link == values:  # libbpf before 1.2 makes none
            create_link(values, 0, _STRUCT_OPS, pin)
        else:
            _call("bpf_obj_pin", link, os.fsencode(pin))
            if link != values:
                os.close(link)


def create_link(descriptor: int, target: int, hook: int, pin: Path) -> None:
    """Attach a program to a cgroup (its descriptor) or an interface (its index) by a pinned link."""
    link = _call("bpf_link_create", descriptor, target, hook, None)
    try:
        _call("bpf_obj_pin", link, os.fsencode(pin))
    finally:
        os.close(link)


def open_pin(path: Path) -> int:
    """A descriptor of what is pinned. Raises OSError."""
    return _call("bpf_obj_get", os.fsencode(path))


def detach(pin: Path) -> None:
    """Take away what is pinned: a link, or the map of a congestion control that was registered without one."""
    descriptor, zero = open_pin(pin), ctypes.byref(ctypes.c_uint32(0))
    for function, arguments in {"bpf_link_detach": (), "bpf_map_delete_elem": (zero,)}.items():
        with contextlib.suppress(OSError):  # before 6.11 a congestion control's link ends a moment after its pin
            _call(function, descriptor, *arguments)
    os.close(descriptor)
    pin.unlink()


def read_element(descriptor: int, index: int) -> int:
    """An element (64 bits) of an array."""
    value = ctypes.c_uint64()
    _call("bpf_map_lookup_elem", descriptor, ctypes.byref(ctypes.c_uint32(index)), ctypes.byref(value))
    return value.value


def write_element(descriptor: int, key: int | str, value: bytes) -> None:
    """An element of an array, or of a map whose keys are names of congestion controls."""
    raw = struct.pack("=I", key) if isinstance(key, int) else struct.pack("16s", key.encode())
    _call("bpf_map_update_elem", descriptor, raw, value, 0)


def _filter(interface: int, hook: Hook | None, program: int = 0) -> tuple[bytes, ctypes.Array[ctypes.c_char]]:
    """The hook (None: both directions) and the options of our filter, as libbpf's functions for traffic control take them."""
    point = {None: _INGRESS | _EGRESS, Hook.INTERFACE_INGRESS: _INGRESS}.get(hook, _EGRESS)
    options = _FILTER_OPTIONS.pack(
        _FILTER_OPTIONS.size, program, _REPLACE if program else 0, 0, _FILTER_PRIORITY, _FILTER_PRIORITY
    )
    return _FILTER_HOOK.pack(_FILTER_HOOK.size, interface, point, 0), ctypes.create_string_buffer(options, len(options))


def add_filter(program: int, interface: int, hook: Hook) -> None:
    """Attach a program to an interface of the caller's namespace where the kernel has no links for it: a clsact filter."""
    with contextlib.suppress(FileExistsError):
        _call("bpf_tc_hook_create", _filter(interface, None)[0])
    _call("bpf_tc_attach", *_filter(interface, hook, program))


def remove_filter(interface: int, hook: Hook) -> None:
    """Take our filter away, where it is; clsact stays. Raises OSError."""
    _call("bpf_tc_detach", *_filter(interface, hook))
