# SPDX-License-Identifier: Apache-2.0
"""A sender of hosts/cc by its header's name, through the row of functions that the simulator links (tcp/src/cc/sender.c)."""

from __future__ import annotations

import ctypes
import subprocess
from ctypes import POINTER, c_char_p, c_uint32, c_void_p
from pathlib import Path

from cc_library import Params, Tcp

ROOT = Path(__file__).resolve().parents[2]
SENDER_C = ROOT / "switch/crates/tcp/src/cc/sender.c"
UNPACED = 0xFFFFFFFFFFFFFFFF
_STATE_BYTES = 96
_TCP = POINTER(Tcp)
_ACT = ctypes.CFUNCTYPE(None, c_void_p, _TCP)
_TELL = ctypes.CFUNCTYPE(None, c_void_p, _TCP, c_uint32)
_ASK = ctypes.CFUNCTYPE(c_uint32, c_void_p, _TCP)


class _Ops(ctypes.Structure):
    """struct cc_ops."""

    _fields_ = [
        ("name", c_char_p),
        ("defaults", Params),
        ("needs_ecn", c_uint32),
        ("init", _ACT),
        ("ssthresh", _ASK),
        ("cong_avoid", _TELL),
        ("cong_control", _ACT),
        ("pkts_acked", _ACT),
        ("set_state", _TELL),
        ("cwnd_event", _TELL),
        ("undo_cwnd", _ASK),
        ("burst", _ASK),
    ]


def compile_sender(name: str, directory: Path, headers: Path = ROOT / "hosts/cc") -> ctypes.CDLL:
    """`<headers>/<name>.h` as a shared library in `directory`, every warning an error."""
    output = directory / f"{name}.so"
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-shared", "-fPIC"]
    words = [f'-DCC_HEADER="{name}.h"', f"-DCC_NAME={name}", f"-DCC_SENDER_{name}", "-I", str(headers)]
    command = ["cc", *flags, *words, str(SENDER_C), "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(output))


class Sender:
    """One connection's sender with the view `tcp`, which a test may change between calls."""

    def __init__(self, library: ctypes.CDLL, name: str, tcp: Tcp) -> None:
        self.ops = _Ops.in_dll(library, f"cc_sender_{name}")
        self.state = (ctypes.c_uint64 * (_STATE_BYTES // 8))()
        self.tcp = tcp
        self.ops.init(self.state, tcp)

    def cong_avoid(self, acked: int) -> None:
        self.ops.cong_avoid(self.state, self.tcp, acked)

    def cong_control(self) -> None:
        self.ops.cong_control(self.state, self.tcp)

    def pkts_acked(self) -> None:
        self.ops.pkts_acked(self.state, self.tcp)

    def set_state(self, state: int) -> None:
        self.ops.set_state(self.state, self.tcp, state)

    def cwnd_event(self, event: int) -> None:
        self.ops.cwnd_event(self.state, self.tcp, event)

    def ssthresh(self) -> int:
        return int(self.ops.ssthresh(self.state, self.tcp))

    def undo_cwnd(self) -> int:
        return int(self.ops.undo_cwnd(self.state, self.tcp))

    def burst(self) -> int:
        return int(self.ops.burst(self.state, self.tcp))
