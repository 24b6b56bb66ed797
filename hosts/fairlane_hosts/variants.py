# SPDX-License-Identifier: Apache-2.0
"""The one table of TCP variants: name, congestion control, program, sysctls, paper, and what each is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from .errors import HostsError

# Every variant sets every one of these, so that going from one to another leaves nothing behind.
# Order matters: the kernel refuses tcp_reordering > tcp_max_reordering.
LITERATURE_SYSCTLS: Mapping[str, int] = MappingProxyType(
    {
        "tcp_sack": 0,  # with SACK, Linux finds losses by RACK: one duplicate ACK and a timer
        "tcp_timestamps": 0,  # 40-byte headers as in ns-2, and no undo by Eifel
        "tcp_max_reordering": 3,  # else the kernel raises its duplicate-ACK threshold (42 seen)
        "tcp_reordering": 3,
        "tcp_early_retrans": 0,  # no tail loss probe
        "tcp_frto": 0,  # no F-RTO: a timeout is a timeout
        "tcp_ecn": 0,
        "tcp_no_metrics_save": 1,  # no ssthresh inherited from the connection before
        "tcp_slow_start_after_idle": 1,  # RFC 5681 §4.1
    }
)
MODERN_SYSCTLS: Mapping[str, int] = MappingProxyType(
    {
        "tcp_sack": 1,
        "tcp_timestamps": 1,
        "tcp_max_reordering": 300,
        "tcp_reordering": 3,
        "tcp_early_retrans": 3,
        "tcp_frto": 2,
        "tcp_ecn": 2,
        "tcp_no_metrics_save": 1,
        "tcp_slow_start_after_idle": 1,
    }
)


@dataclass(frozen=True)
class Variant:
    """One TCP sender that an experiment can name."""

    name: str
    """What the user types."""
    congestion_control: str
    """The kernel's name (global to the machine, at most 15 characters)."""
    source: str | None
    """The program in `bpf/`, or None for one that is built into the kernel."""
    paper: str
    """Where the algorithm is defined."""
    is_not: str
    """How it differs from that definition."""
    defines: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Parameters, fixed when the program is compiled (packets)."""
    sysctls: Mapping[str, int] = field(default_factory=lambda: LITERATURE_SYSCTLS)
    """`net.ipv4.*` of the host's namespace, in the order in which they are set."""

    @property
    def object_name(self) -> str | None:
        """File name of the compiled program in `build/`, or None."""
        return f"{self.congestion_control}.bpf.o" if self.source else None


def _table(*variants: Variant) -> Mapping[str, Variant]:
    return MappingProxyType({variant.name: variant for variant in variants})


_INITIAL_WINDOW = MappingProxyType({"FL_INITIAL_WINDOW": 2})  # ns-2's windowInit_, RFC 2581 §3.1

VARIANTS: Mapping[str, Variant] = _table(
    Variant(
        name="reno",
        congestion_control="fl_reno",
        source="reno.bpf.c",
        paper="Jacobson 1990; ns-2 Agent/TCP/Reno; the Qthresh paper's TCP Reno",
        is_not="exact after several losses in one window: new data waits too while the next hole must wait "
        "(cc/reno_recovery.h); after a timeout the kernel resends what it holds for lost as the window opens",
        defines=_INITIAL_WINDOW,
    ),
    Variant(
        name="newreno",
        congestion_control="fl_newreno",
        source="newreno.bpf.c",
        paper="RFC 5681 growth, RFC 6582 recovery",
        is_not="RFC 6582 in the window during recovery: the kernel's PRR (RFC 6937) brings it down",
        defines=_INITIAL_WINDOW,
    ),
    Variant(
        name="vegas",
        congestion_control="fl_vegas",
        source="vegas.bpf.c",
        paper="Brakmo & Peterson 1995; ns-2 Agent/TCP/Vegas; alpha, beta, gamma = 1, 3, 1",
        is_not="the paper in loss recovery: no fine-grained retransmission at the first duplicate ACK (cc/vegas.h)",
        defines=MappingProxyType({**_INITIAL_WINDOW, "FL_ALPHA": 1, "FL_BETA": 3, "FL_GAMMA": 1}),
    ),
    Variant(
        name="vegas-linux",
        congestion_control="fl_vegas_linux",
        source="vegas_linux.bpf.c",
        paper="Linux tcp_vegas; alpha, beta, gamma = 2, 4, 1",
        is_not="the paper's Vegas: divides by base, Reno's growth at 2 samples or fewer, base forgotten on TX_START",
        defines=MappingProxyType({**_INITIAL_WINDOW, "FL_ALPHA": 2, "FL_BETA": 4, "FL_GAMMA": 1}),
    ),
    Variant(
        name="reno-linux",
        congestion_control="reno",
        source=None,
        paper="Linux tcp_reno with tcp_sack=0",
        is_not="the papers' Reno: NewReno recovery with PRR, grows by packets instead of ACKs, initial window 10",
    ),
    Variant(
        name="cubic",
        congestion_control="cubic",
        source=None,
        paper="RFC 9438, as the kernel has it",
        is_not="a sender of the papers: SACK, RACK, timestamps and F-RTO are on",
        sysctls=MODERN_SYSCTLS,
    ),
    Variant(
        name="bbr",
        congestion_control="bbr",
        source=None,
        paper="Cardwell et al. 2016; Linux tcp_bbr, where the kernel has it",
        is_not="driven by losses: it paces to what it measures; SACK, RACK and timestamps are on",
        sysctls=MODERN_SYSCTLS,
    ),
)


def find_variant(name: str) -> Variant:
    """The variant called `name`. Raises HostsError `unknown-variant` with the names that there are."""
    variant = VARIANTS.get(name)
    if variant is None:
        raise HostsError("unknown-variant", f"no TCP variant is called {name!r}; there are {', '.join(VARIANTS)}")
    return variant


def bpf_variants() -> list[Variant]:
    """The variants that need a BPF program."""
    return [variant for variant in VARIANTS.values() if variant.source]
