# SPDX-License-Identifier: Apache-2.0
"""Which BPF links and programs the kernel holds, asked through libbpf, which the loader needs anyway (bpftool is in no package of Ubuntu 22.04)."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Generator
from pathlib import Path

LIBBPF = ctypes.CDLL("libbpf.so", use_errno=True)
CGROUP_INGRESS, CGROUP_EGRESS, CGROUP_SOCK_OPS = 0, 1, 3  # enum bpf_attach_type of linux/bpf.h
MOST_PROGRAMS = 64
PROG_INFO_NAME = range(64, 80)  # of struct bpf_prog_info


@contextlib.contextmanager
def _closing(descriptor: int) -> Generator[int]:
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def link_exists(link: int) -> bool:
    """Whether the kernel has a BPF link of this id."""
    try:
        with _closing(LIBBPF.bpf_link_get_fd_by_id(link)):
            return True
    except FileNotFoundError:
        return False


def _program_name(program: int) -> str:
    info, length = ctypes.create_string_buffer(PROG_INFO_NAME.stop), ctypes.c_uint32(PROG_INFO_NAME.stop)
    with _closing(LIBBPF.bpf_prog_get_fd_by_id(program)) as descriptor:
        assert LIBBPF.bpf_obj_get_info_by_fd(descriptor, info, ctypes.byref(length)) == 0, ctypes.get_errno()
    return info.raw[PROG_INFO_NAME.start :].rstrip(b"\0").decode()


def programs_of_cgroup(cgroup: Path) -> list[str]:
    """Names of the programs that are attached to a cgroup; none where there is no such cgroup."""
    names = list[str]()
    with contextlib.suppress(FileNotFoundError), _closing(os.open(cgroup, os.O_RDONLY)) as descriptor:
        for kind in (CGROUP_INGRESS, CGROUP_EGRESS, CGROUP_SOCK_OPS):
            ids, count = (ctypes.c_uint32 * MOST_PROGRAMS)(), ctypes.c_uint32(MOST_PROGRAMS)
            assert LIBBPF.bpf_prog_query(descriptor, kind, 0, None, ids, ctypes.byref(count)) == 0, ctypes.get_errno()
            names += [_program_name(ids[index]) for index in range(count.value)]
    return names
