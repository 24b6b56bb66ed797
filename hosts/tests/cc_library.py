# SPDX-License-Identifier: Apache-2.0
"""The C algorithms for Python tests: compiles cc_harness.c once and mirrors its structures with ctypes."""

from __future__ import annotations

import ctypes
import subprocess
from ctypes import c_int32, c_uint32, c_uint64
from pathlib import Path

INFINITE_SSTHRESH = 0x7FFFFFFF
NO_RTT = 0x7FFFFFFF
OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)
TX_START, CWND_RESTART, COMPLETE_CWR, EVENT_LOSS = range(4)


class _Words(ctypes.Structure):
    """A structure whose fields are set by keyword."""


class Params(_Words):
    """struct cc_params."""

    _fields_ = [(name, c_uint32) for name in ("alpha", "beta", "gamma")]


class Rate(_Words):
    """struct cc_rate."""

    _fields_ = [
        *((name, c_int32) for name in ("delivered", "interval_us")),
        *(
            (name, c_uint32)
            for name in ("prior_delivered", "prior_in_flight", "acked_sacked", "losses", "app_limited", "ack_delayed")
        ),
    ]
    delivered: int
    interval_us: int
    prior_delivered: int
    prior_in_flight: int
    acked_sacked: int
    losses: int
    app_limited: int
    ack_delayed: int


class Tcp(_Words):
    """struct cc_tcp."""

    _fields_ = [
        (name, c_uint32)
        for name in (
            "snd_cwnd",
            "snd_cwnd_cnt",
            "snd_ssthresh",
            "snd_cwnd_clamp",
            "prior_cwnd",
            "snd_una",
            "snd_nxt",
            "high_seq",
            "in_flight",
            "retrans_out",
            "ca_state",
            "cwnd_limited",
            "delivered",
            "delivered_ce",
            "lost",
            "lost_out",
            "window_packets",
            "app_limited",
            "mss_bytes",
            "srtt_us",
        )
    ] + [
        ("rtt_us", c_int32),
        *((name, c_uint32) for name in ("rcv_nxt", "ecn_echo", "ack_now", "ack_before")),
        ("params", Params),
        ("rate", Rate),
        ("now_ns", c_uint64),
        ("pacing_rate", c_uint64),
    ]
    snd_cwnd: int
    snd_cwnd_cnt: int
    snd_ssthresh: int
    prior_cwnd: int
    snd_una: int
    snd_nxt: int
    high_seq: int
    in_flight: int
    retrans_out: int
    ca_state: int
    cwnd_limited: int
    delivered: int
    delivered_ce: int
    lost: int
    lost_out: int
    window_packets: int
    app_limited: int
    mss_bytes: int
    srtt_us: int
    rtt_us: int
    rcv_nxt: int
    ecn_echo: int
    ack_now: int
    ack_before: int
    params: Params
    rate: Rate
    now_ns: int
    pacing_rate: int


class Guard(_Words):
    """struct cc_guard."""

    _fields_ = [("ssthresh", c_uint32), ("repairs", c_uint32)]
    ssthresh: int
    repairs: int


class Reno(_Words):
    """struct reno."""

    _fields_ = [(name, c_uint32) for name in ("snd_una", "phase", "dupacks")]
    phase: int
    dupacks: int


class Tahoe(_Words):
    """struct tahoe."""

    _fields_ = [(name, c_uint32) for name in ("snd_una", "repair", "window")]
    repair: int
    window: int


class Vegas(_Words):
    """struct vegas."""

    _fields_ = [
        ("sum_rtt_us", c_uint64),
        *((name, c_uint32) for name in ("rtt_count", "base_rtt_us", "beg_snd_nxt", "increase", "grow_this_rtt")),
    ]
    rtt_count: int
    base_rtt_us: int
    increase: int


class VegasLinux(_Words):
    """struct vegas_linux."""

    _fields_ = [(n, c_uint32) for n in ("enabled", "beg_snd_nxt", "rtt_count", "min_rtt_us", "base_rtt_us")]
    enabled: int
    rtt_count: int
    base_rtt_us: int


def compile_library(directory: Path) -> ctypes.CDLL:
    """Compile the harness with every warning an error; the structures' sizes are compared with ours."""
    source, output = Path(__file__).with_name("cc_harness.c"), directory / "cc.so"
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC", "-fvisibility=hidden"]
    done = subprocess.run(
        ["cc", *flags, str(source), "-o", str(output)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    library = ctypes.CDLL(str(output))
    for name, mirror in (("tcp", Tcp), ("reno", Reno), ("tahoe", Tahoe), ("vegas", Vegas), ("vegas_linux", VegasLinux)):
        assert getattr(library, f"size_of_{name}")() == ctypes.sizeof(mirror), name
    library.t_vegas_diff.argtypes = [c_uint32, c_uint64, c_uint32]
    return library


def make_tcp(cwnd: int = 10, ssthresh: int = INFINITE_SSTHRESH) -> Tcp:
    """A sender in Open whose window limits it."""
    return Tcp(snd_cwnd=cwnd, snd_ssthresh=ssthresh, snd_cwnd_clamp=0xFFFFFFFF, prior_cwnd=cwnd, cwnd_limited=1)
