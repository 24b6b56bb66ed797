# SPDX-License-Identifier: Apache-2.0
"""Which programs the kernel has at a cgroup, asked through libbpf (bpftool is in no package of Ubuntu 22.04)."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Generator
from pathlib import Path

from fairlane_hosts import bpf

CGROUP_INGRESS = 0  # enum bpf_attach_type of linux/bpf.h
MOST_PROGRAMS = 64
PROG_INFO_NAME = range(64, 80)  # of struct bpf_prog_info


@contextlib.contextmanager
def closing(descriptor: int) -> Generator[int]:
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _program_name(program: int) -> str:
    info, length = ctypes.create_string_buffer(PROG_INFO_NAME.stop), ctypes.c_uint32(PROG_INFO_NAME.stop)
    with closing(bpf.library().bpf_prog_get_fd_by_id(program)) as descriptor:
        assert bpf.library().bpf_obj_get_info_by_fd(descriptor, info, ctypes.byref(length)) == 0, ctypes.get_errno()
    return info.raw[PROG_INFO_NAME.start :].rstrip(b"\0").decode()


def programs_of_cgroup(cgroup: Path) -> list[str]:
    """Names of the programs that are attached to a cgroup; none where there is no such cgroup."""
    names = list[str]()
    with contextlib.suppress(FileNotFoundError), closing(os.open(cgroup, os.O_RDONLY)) as descriptor:
        for kind in (CGROUP_INGRESS, bpf.Hook.CGROUP_EGRESS, bpf.Hook.SOCKET):
            ids, count = (ctypes.c_uint32 * MOST_PROGRAMS)(), ctypes.c_uint32(MOST_PROGRAMS)
            query = bpf.library().bpf_prog_query(descriptor, int(kind), 0, None, ids, ctypes.byref(count))
            assert query == 0, ctypes.get_errno()
            names += [_program_name(ids[index]) for index in range(count.value)]
    return names
