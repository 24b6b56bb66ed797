# SPDX-License-Identifier: Apache-2.0
"""BPF objects, links and maps through libbpf (0.5 or newer) and ctypes; every failure is an OSError with libbpf's words.

A link (a registered congestion control, a program at a cgroup or an interface) lives as long as a descriptor of it is
open in some process: one that ends, however it dies, gives its own back. Another process opens it by its id.
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
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from .errors import HostsError

STRUCT_OPS_LINK_KERNEL = (6, 4)
"""The first kernel with links of congestion controls; on older ones a name stays until it is unregistered."""
TCX_KERNEL = (6, 6)
"""The first kernel with links of programs at an interface; older ones have clsact filters."""
_MAP_FLAG_LINK = 1 << 13  # BPF_F_LINK
_STRUCT_OPS_LINK, _STRUCT_OPS_MAP = 44, 26  # BPF_STRUCT_OPS, BPF_MAP_TYPE_STRUCT_OPS
_INFO_ID, _INFO_VALUE_BYTES = slice(4, 8), slice(12, 16)  # of struct bpf_link_info and bpf_map_info
_INFO_MAP_NAME = slice(24, 40)
_INGRESS, _EGRESS = 1, 2  # enum bpf_tc_attach_point
_REPLACE = 1  # BPF_TC_F_REPLACE
_FILTER_PLACE = struct.Struct("@NiiI4x")  # struct bpf_tc_hook: size, interface, attach point, parent
_FILTER_OPTIONS = struct.Struct("@NiIIII4x")  # struct bpf_tc_opts: size, program, flags, id, handle, priority
FILTER_PRIORITY = 0xFA1


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


class BpfObject:
    """An object file that is open, as a context manager; the links that are made of it outlive it."""

    def __init__(self, path: Path) -> None:
        self._object = _make("bpf_object__open_file", os.fsencode(path), None)

    def __enter__(self) -> BpfObject:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        library().bpf_object__close(self._object)

    def _find(self, what: str, name: str) -> _Pointer:
        found: _Pointer = getattr(library(), f"bpf_object__find_{what}_by_name")(self._object, name.encode())
        if not found:
            raise FileNotFoundError(errno.ENOENT, f"the BPF object holds no {what} {name}")
        return found

    def share_map(self, name: str, descriptor: int) -> None:
        """Before `load`: use another object's map for the one of this name. Raises FileNotFoundError where it has none."""
        found = self._find("map", name)
        wanted, there = library().bpf_map__value_size(found), _number(_info(descriptor)[_INFO_VALUE_BYTES])
        if wanted != there:
            text = f"map {name} is in use from another build ({there} bytes a value, not {wanted})"
            raise OSError(errno.EINVAL, text)
        _call("bpf_map__reuse_fd", found, descriptor)

    def _find_congestion_control(self, name: str) -> _Pointer:
        try:
            return self._find("map", name)
        except FileNotFoundError:
            raise OSError(errno.EINVAL, f"the BPF object holds no congestion control {name}") from None

    def expect_link(self, congestion_control: str) -> None:
        """Before `load`: the congestion control is to be registered by a link."""
        found = self._find_congestion_control(congestion_control)
        _call("bpf_map__set_map_flags", found, library().bpf_map__map_flags(found) | _MAP_FLAG_LINK)

    def load(self) -> None:
        """Have the kernel verify the programs."""
        _call("bpf_object__load", self._object)

    def map(self, name: str) -> int:
        """Descriptor of a map, after `load`; it ends with this object. Raises FileNotFoundError."""
        return _call("bpf_map__fd", self._find("map", name))

    def program(self, name: str) -> int:
        """Descriptor of a program, after `load`; it ends with this object. Raises FileNotFoundError."""
        return _call("bpf_program__fd", self._find("program", name))

    def register(self, congestion_control: str, with_link: bool) -> int | None:
        """Register a congestion control; the descriptor of its link, or None without. Raises FileExistsError when the name is taken."""
        struct_ops = self._find_congestion_control(congestion_control)
        attached = _make("bpf_map__attach_struct_ops", struct_ops)
        link, values = _call("bpf_link__fd", attached), _call("bpf_map__fd", struct_ops)
        library().bpf_link__disconnect(attached)  # the descriptor is ours
        library().bpf_link__destroy(attached)
        if not with_link:
            return None
        return link if link != values else create_link(values, 0, _STRUCT_OPS_LINK)  # libbpf before 1.2 makes none


def create_link(descriptor: int, target: int, hook: int) -> int:
    """Attach a program to a cgroup (its descriptor) or an interface (its index): the descriptor of the link."""
    return _call("bpf_link_create", descriptor, target, hook, None)


def open_link(number: int) -> int:
    """A descriptor of the link of this id. Raises FileNotFoundError."""
    return _call("bpf_link_get_fd_by_id", number)


def link_exists(number: int) -> bool:
    """Whether the kernel has a link of this id; who may not ask (no root) takes it for there."""
    try:
        os.close(open_link(number))
    except FileNotFoundError:
        return False
    except PermissionError:
        return True
    return True


def detach_link(number: int) -> None:
    """Take away what a link attached, while descriptors of it are open. Raises OSError: congestion controls only from 6.11 on."""
    with contextlib.suppress(FileNotFoundError):
        descriptor = open_link(number)
        try:
            _call("bpf_link_detach", descriptor)
        finally:
            os.close(descriptor)


def open_map(number: int) -> int:
    """A descriptor of the map of this id. Raises FileNotFoundError."""
    return _call("bpf_map_get_fd_by_id", number)


def read_element(descriptor: int, index: int) -> int:
    """An element (64 bits) of an array."""
    value = ctypes.c_uint64()
    _call("bpf_map_lookup_elem", descriptor, ctypes.byref(ctypes.c_uint32(index)), ctypes.byref(value))
    return value.value


def write_elements(descriptor: int, first: int, values: Sequence[ctypes.c_uint32 | ctypes.c_uint64]) -> None:
    """Elements of an array, from index `first` on."""
    for index, value in enumerate(values, first):
        _call("bpf_map_update_elem", descriptor, ctypes.byref(ctypes.c_uint32(index)), ctypes.byref(value), 0)


def _info(descriptor: int) -> bytes:
    buffer = ctypes.create_string_buffer(_INFO_MAP_NAME.stop)
    _call("bpf_obj_get_info_by_fd", descriptor, buffer, ctypes.byref(ctypes.c_uint32(len(buffer))))
    return buffer.raw


def _number(raw: bytes) -> int:
    return int.from_bytes(raw, sys.byteorder)


def id_of(descriptor: int) -> int:
    """The kernel's id of a link or a map."""
    return _number(_info(descriptor)[_INFO_ID])


def unregister(congestion_control: str) -> bool:
    """Take away a name that was registered without a link; False when there is none."""
    number, zero = ctypes.c_uint32(0), ctypes.c_uint32(0)
    while library().bpf_map_get_next_id(number, ctypes.byref(number)) == 0:
        try:
            descriptor = open_map(number.value)
        except FileNotFoundError:
            continue
        try:
            info = _info(descriptor)
            name = info[_INFO_MAP_NAME].rstrip(b"\0").decode()
            if _number(info[:4]) == _STRUCT_OPS_MAP and name == congestion_control:
                _call("bpf_map_delete_elem", descriptor, ctypes.byref(zero))
                return True
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EOPNOTSUPP, errno.EINPROGRESS):
                raise
        finally:
            os.close(descriptor)
    return False


def add_filter(program: int, interface: int, hook: Hook) -> None:
    """Attach a program to an interface of the caller's namespace where the kernel has no links for it: a clsact filter."""

    def place(point: int) -> bytes:
        return _FILTER_PLACE.pack(_FILTER_PLACE.size, interface, point, 0)

    with contextlib.suppress(FileExistsError):
        _call("bpf_tc_hook_create", place(_INGRESS | _EGRESS))
    options = _FILTER_OPTIONS.pack(_FILTER_OPTIONS.size, program, _REPLACE, 0, FILTER_PRIORITY, FILTER_PRIORITY)
    point = _INGRESS if hook is Hook.INTERFACE_INGRESS else _EGRESS
    _call("bpf_tc_attach", place(point), ctypes.create_string_buffer(options, len(options)))
