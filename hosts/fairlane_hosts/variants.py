# SPDX-License-Identifier: Apache-2.0
"""The one table of TCP senders: name, header, sysctls, host programs, paper, and what each is not.

A sender is a header `hosts/cc/NAME.h` and a row here; both runtimes take it from there: `hosts/bpf/sender.bpf.c` is compiled
with the header for the kernel, `switch/crates/tcp` for the simulator, whose settings `simulator` derives from the row.

One of the user's own is a folder anywhere with a header, `NAME/NAME.h`, and its row, `SENDER` in `NAME/sender.py` (`add_sender`).
"""

from __future__ import annotations

import os
import re
import runpy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .errors import HostsError
from .programs import find_program

# Every variant sets every one of these, so that going from one to another leaves nothing behind.
# Order matters: the kernel refuses tcp_reordering > tcp_max_reordering.
LITERATURE_SYSCTLS: Mapping[str, int] = {
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
MODERN_SYSCTLS: Mapping[str, int] = {
    **LITERATURE_SYSCTLS,
    "tcp_sack": 1,
    "tcp_timestamps": 1,
    "tcp_max_reordering": 300,
    "tcp_early_retrans": 3,
    "tcp_frto": 2,
    "tcp_ecn": 2,
}
SACK_SYSCTLS: Mapping[str, int] = {**LITERATURE_SYSCTLS, "tcp_sack": 1}
FRTO_SYSCTLS: Mapping[str, int] = {**LITERATURE_SYSCTLS, "tcp_frto": 2}
ERTO_SYSCTLS: Mapping[str, int] = {**FRTO_SYSCTLS, "tcp_sack": 1}  # E-RTO's paper repairs by SACK
FST1_SYSCTLS: Mapping[str, int] = {**LITERATURE_SYSCTLS, "tcp_max_reordering": 1, "tcp_reordering": 1}
# Set where the kernel has them; every variant sets them, for the same reason.
OPTIONAL_SYSCTLS: Mapping[str, int] = {"tcp_rto_min_us": 200_000}  # 6.11
MRTO_OPTIONAL_SYSCTLS: Mapping[str, int] = {"tcp_rto_min_us": 1}  # the kernel makes a jiffy of it

NAME_PREFIX = os.environ.get("FAIRLANE_CC_PREFIX", "fl_")
"""Of the kernel names, which are global to the machine: another one lets a second build run beside the first."""
LITERATURE_KERNEL = (5, 15)
"""BPF congestion control that may be a namespace's default, and what the loader needs."""


@dataclass(frozen=True)
class Variant:
    """One TCP sender that an experiment can name."""

    name: str
    """What the user types."""
    header: str
    """The sender's header in `cc/`, without `.h`; of a `builtin`, the one that stands for it in the simulator."""
    paper: str
    """Where the algorithm is defined."""
    is_not: str
    """How it differs from that definition."""
    builtin: str = ""
    """The kernel's own congestion control of this name instead of the header's."""
    defines: Mapping[str, int] = field(default_factory=dict[str, int])
    """Parameters, fixed when the program is compiled (packets)."""
    simulator: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of the simulator's `tcp` object: what does not follow from the rest of the row."""
    sysctls: Mapping[str, int] = field(default_factory=lambda: LITERATURE_SYSCTLS)
    """`net.ipv4.*` of the host's namespace, in the order in which they are set."""
    optional_sysctls: Mapping[str, int] = field(default_factory=lambda: OPTIONAL_SYSCTLS)
    """Set after `sysctls`, where the kernel has them."""
    programs: tuple[str, ...] = ()
    """Host programs that the host needs beside it (`fairlane_hosts.programs`)."""
    receiver_programs: tuple[str, ...] = ()
    """Host programs that the hosts of its receivers need. Such a sender does not take corruption for congestion."""
    kernel: tuple[int, int] = LITERATURE_KERNEL
    """The first kernel that has all that it needs."""
    folder: Path | None = None
    """Where the header of a sender of the user's own is; `add_sender` sets it."""

    @property
    def congestion_control(self) -> str:
        """The kernel's name (global to the machine, at most 15 characters)."""
        return self.builtin or NAME_PREFIX + self.name.replace("-", "_").replace("+", "_p")

    @property
    def object_name(self) -> str | None:
        """File name of the compiled program in `build/`, or None for a `builtin`."""
        return None if self.builtin else f"{self.congestion_control}.bpf.o"

    @property
    def definitions(self) -> Mapping[str, str | int]:
        """What `bpf/sender.bpf.c` is compiled with, but for its name."""
        ena = {"FL_ENA": 1} if "ena" in self.programs else {}
        asks = {"FL_PROGRAMS": self.programs_mask} if self.programs else {}
        return {"CC_HEADER": f'"{self.header_file}"', f"CC_SENDER_{self.header}": 1, **ena, **asks, **self.defines}

    @property
    def programs_mask(self) -> int:
        """The host programs that it asks for, a bit each."""
        return sum(1 << find_program(name).bit for name in self.programs)

    @property
    def header_file(self) -> str:
        """Path of the header: absolute for a sender of the user's own, else from the folder of a BPF program."""
        return f"{self.folder or '../cc'}/{self.header}.h"


_INITIAL_WINDOW = {"FL_INITIAL_WINDOW": 2}  # ns-2's windowInit_, RFC 2581 §3.1

_LINUX_INITIAL_WINDOW = {"FL_INITIAL_WINDOW": 10}  # RFC 6928

_literature = partial(Variant, defines=_INITIAL_WINDOW)
"""A sender of a paper."""
_modern = partial(Variant, sysctls=MODERN_SYSCTLS)
"""One that Linux has today."""

_MRTO_SIMULATOR = {"rto_rule": "rfc793", "rto_beta_percent": 100}
_MRTO_IS_NOT = (
    "the paper's on the kernel: SRTT + max(4 RTTVAR, a jiffy), rounded up to a jiffy (before 6.11 two), 3 RTT at the start. In the simulator "
    "max(SRTT, 4 ms or the host's tick)"
)

PACING_KERNEL = (6, 4)
"""A BPF congestion control may write sk_pacing_rate (6.0) and app_limited."""
ENA_KERNEL = (6, 0)
"""A BPF congestion control may write sk_pacing_rate; its host program needs bpf_loop (5.17)."""
_ENA_IS_NOT = (
    "the paper's on the kernel in when it repairs: a named segment goes out when the kernel finds it lost (the third duplicate ACK; "
    "then with SACK the next one, else one a round trip), not at the notification as in the simulator"
)
_ENA_PLUS_IS_NOT = (
    "the paper's: every ACK names the lowest missing one, heads without a name are allowed for, reductions are undone, packets are "
    "paced (cc/ena.h); a named segment goes out with the recovery"
)

_TAHOE = _literature(
    name="tahoe",
    header="tahoe",
    paper="Jacobson 1988; ns-2 Agent/TCP; the ENA paper's TCP Tahoe",
    is_not="go-back-N after a fast retransmit: after several losses in one window the kernel fills one hole an ACK "
    "and sends nothing twice (cc/tahoe.h)",
)
_RENO = _literature(
    name="reno",
    header="reno_recovery",
    paper="Jacobson 1990; ns-2 Agent/TCP/Reno; the Qthresh paper's TCP Reno",
    is_not="exact after several losses in one window: new data waits too while the next hole must wait (cc/reno_recovery.h)",
)
_NEWRENO = _literature(
    name="newreno",
    header="reno",
    paper="RFC 5681 growth, RFC 6582 recovery",
    is_not="RFC 6582 in the window during recovery: the kernel's PRR (RFC 6937) brings it down; each partial ACK restarts the timer",
)
_SACK = _literature(
    name="sack",
    header="reno",
    paper="RFC 2018 and RFC 6675; the ENA paper's TCP SACK",
    is_not="RFC 6675's pipe: the kernel finds losses by RACK (RFC 8985) and brings the window down by PRR",
    sysctls=SACK_SYSCTLS,
)
_NSS = Variant(
    name="nss",
    header="nss",
    paper="the FastTCP paper's NSS: no slow start, the advertised window alone limits",
    is_not="for networks of others: it congests any. After a timeout only the head goes out, the window at its ACK",
)
_NCA = _literature(
    name="nca",
    header="nca",
    paper="the FastTCP paper's NCA: no congestion avoidance, cwnd += 1 an ACK above ssthresh too",
    is_not="without the halving: a loss still brings cwnd to ssthresh (NewReno, PRR)",
)
_ERTO = _literature(
    name="erto",
    header="erto",
    paper="Lee & Kwon 2006: the first three timeouts in a row send new data, not the head; then as F-RTO judges",
    is_not="active for a timeout within a recovery, nor without unsent data; the kernel's F-RTO judges, not an ACK option",
    sysctls=ERTO_SYSCTLS,
    programs=("erto",),
    kernel=(6, 1),
)
_BCR = replace(
    _ERTO,
    name="bcr",
    header="bcr",
    paper="Lee, Ahn & Choo: E-RTO's detection; then ssthresh = BW_est RTT_base, cwnd no more than that",
    is_not="active for a timeout within a recovery, nor without unsent data; bandwidth and window are counted in packets",
)


def _with_ena(base: Variant, title: str, is_not: str = "") -> tuple[Variant, Variant]:
    """The ENA paper over `base`, and ENA+; `is_not` adds to what holds for all of them."""
    paper = replace(
        base,
        name=f"ena-{base.name}",
        paper=f"the ENA paper over {title}",
        is_not=_ENA_IS_NOT + is_not,
        simulator={"repairs_named": True},
        programs=("ena",),
        receiver_programs=("ena",),
        kernel=ENA_KERNEL,
    )
    ours = replace(
        paper,
        name=f"{paper.name}+",
        paper=f"ours, from ENA, over {title}",
        is_not=_ENA_PLUS_IS_NOT + is_not,
        simulator={},
        receiver_programs=("ena", "ena-lowest"),
        defines={**base.defines, "FL_ENA_PLUS": 1},
    )
    return paper, ours


def _with_mrto(base: Variant, name: str, paper: str) -> Variant:
    """`base` with the shortest timer that the kernel has."""
    return replace(
        base,
        name=name,
        paper=paper,
        is_not=_MRTO_IS_NOT,
        simulator=_MRTO_SIMULATOR,
        optional_sysctls=MRTO_OPTIONAL_SYSCTLS,
        programs=("mrto",),
    )


_ROWS = (
    _TAHOE,
    _RENO,
    _NEWRENO,
    _SACK,
    Variant(
        name="vegas",
        header="vegas",
        paper="Brakmo & Peterson 1995; ns-2 Agent/TCP/Vegas; alpha, beta, gamma = 1, 3, 1",
        is_not="the paper in loss recovery: no fine-grained retransmission at the first duplicate ACK (cc/vegas.h)",
        defines={**_INITIAL_WINDOW, "FL_ALPHA": 1, "FL_BETA": 3, "FL_GAMMA": 1},
    ),
    Variant(
        name="vegas-linux",
        header="vegas_linux",
        paper="Linux tcp_vegas; alpha, beta, gamma = 2, 4, 1",
        is_not="the paper's Vegas: divides by base, Reno's growth at 2 samples or fewer, base forgotten on TX_START",
        defines={**_INITIAL_WINDOW, "FL_ALPHA": 2, "FL_BETA": 4, "FL_GAMMA": 1},
    ),
    _literature(
        name="frto",
        header="reno",
        paper="RFC 5682 over NewReno",
        is_not="active for a timeout that falls into a recovery (the kernel's choice)",
        sysctls=FRTO_SYSCTLS,
    ),
    _literature(
        name="westwood",
        header="westwood",
        paper="Casetti et al. 2002: bandwidth from ACKs; after a loss ssthresh = BW_est RTT_base; alpha = 0.2",
        is_not="the paper's filter (Tustin's): the BCR paper's, of samples that last a round trip; a timeout freezes the estimate (cc/westwood.h)",
    ),
    _ERTO,
    _BCR,
    replace(
        _BCR,
        name="bcr+",
        header="bcr_plus",
        paper="ours, from BCR: after the undo the window follows what the network delivers, up or down",
        is_not="the paper's: samples of the rate last a round trip and a timeout freezes them; a train of packets after the "
        "spike is measured, and RTT_base is learned anew (cc/bcr_plus.h)",
    ),
    *_with_ena(_TAHOE, "Tahoe"),
    *_with_ena(_RENO, "Reno"),
    *_with_ena(
        replace(_SACK, header="rfc6675"),
        "SACK",
        "; the window in a recovery that does reduce is RFC 6675's, not PRR's",
    ),
    _literature(
        name="org",
        header="reno",
        paper="the FastTCP paper's ORG: Linux 2.4's NewReno, initial window 2",
        is_not="Linux 2.4 itself: no SACK, no timestamps, RTO at least 200 ms as today",
    ),
    _NSS,
    _NCA,
    _literature(
        name="fst1",
        header="reno",
        paper="the FastTCP paper's FST1: fast retransmit at the first duplicate ACK",
        is_not="a choice of one socket: the threshold is the namespace's tcp_reordering",
        sysctls=FST1_SYSCTLS,
    ),
    _with_mrto(_NEWRENO, "mrto", "the FastTCP paper's MRTO: RTO = RTT (beta = 1)"),
    _with_mrto(_NSS, "nss-mrto", "the FastTCP paper's NSS and MRTO together"),
    _with_mrto(_NCA, "nca-mrto", "the FastTCP paper's NCA and MRTO together"),
    Variant(
        name="reno-linux",
        header="reno_linux",
        builtin="reno",
        paper="Linux tcp_reno with tcp_sack=0",
        is_not="the papers' Reno: NewReno recovery with PRR, grows by packets instead of ACKs, initial window 10",
    ),
    _modern(
        name="cubic",
        header="cubic",
        paper="RFC 9438",
        is_not="RFC 9438 in: no HyStart++; ssthresh from cwnd, growth by packets; in recovery the kernel's PRR. "
        "SACK, RACK, timestamps and F-RTO are on (cc/cubic.h)",
        defines=_LINUX_INITIAL_WINDOW,
    ),
    _modern(
        name="cubic-linux",
        header="cubic_linux",
        builtin="cubic",
        paper="Linux tcp_cubic",
        is_not="RFC 9438 in: its target is for the smallest RTT, not the present one; HyStart, not HyStart++, ends slow start "
        "(cc/cubic_linux.h has the list)",
    ),
    _modern(
        name="bic-linux",
        header="bic_linux",
        builtin="bic",
        paper="Xu, Harfoush, Rhee, INFOCOM 2004; Linux tcp_bic, where the kernel has it",
        is_not="the paper's in: beta 0.2, S_max 16, a quarter of the way to W_max for half of it (cc/bic_linux.h)",
    ),
    _modern(
        name="hybla",
        header="hybla",
        paper="Caini & Firrincieli 2004, as Linux tcp_hybla",
        is_not="the paper's in: no first ssthresh from a measured bandwidth, no pacing. SACK, RACK, timestamps and F-RTO are on (cc/hybla.h)",
    ),
    _modern(
        name="hybla-linux",
        header="hybla",
        builtin="hybla",
        paper="Caini & Firrincieli 2004; Linux tcp_hybla, where the kernel has it",
        is_not="the paper's in: no first ssthresh from a measured bandwidth, no pacing; SACK, RACK, timestamps and F-RTO are on",
    ),
    _modern(
        name="dctcp",
        header="dctcp",
        paper="RFC 8257",
        is_not="RFC 8257 in: marked packets are counted, not bytes. Its receivers need it too: their host is set to it "
        "(cc/dctcp.h). SACK, RACK, timestamps and F-RTO are on",
        defines=_LINUX_INITIAL_WINDOW,
    ),
    _modern(
        name="dctcp-linux",
        header="dctcp",
        builtin="dctcp",
        paper="RFC 8257; Linux tcp_dctcp, where the kernel has it",
        is_not="RFC 8257's alpha in bytes: it counts packets; its receivers need it too. SACK, RACK, timestamps and F-RTO are on",
    ),
    _modern(
        name="bbr",
        header="bbr",
        paper="Cardwell et al. 2016; draft-cardwell-iccrg-bbr-congestion-control-00 (version 1)",
        is_not="driven by losses: it paces to what it measures. As Linux's it paces 1 % below, and leaves room for ACKs in clumps; "
        "without Linux's sampling for policers. SACK, RACK, timestamps and F-RTO are on (cc/bbr.h)",
        defines=_LINUX_INITIAL_WINDOW,
        kernel=PACING_KERNEL,
    ),
    _modern(
        name="bbr-linux",
        header="bbr",
        builtin="bbr",
        paper="Cardwell et al. 2016; Linux tcp_bbr, where the kernel has it",
        is_not="driven by losses: it paces to what it measures; SACK, RACK and timestamps are on",
    ),
)
_VARIANTS = {variant.name: variant for variant in _ROWS}
VARIANTS: Mapping[str, Variant] = MappingProxyType(_VARIANTS)
"""All senders by name, those of the user's own (`add_sender`) too."""

OWN_SENDERS = "FAIRLANE_SENDERS"
"""Environment variable: folders of senders of the user's own, as in PATH; every process reads it when it starts."""
_KERNEL_NAME_CHARS_MAX = 15


def add_sender(folder: str | Path) -> Variant:
    """Add a sender of the user's own to the table, for this process and those that it starts.

    `folder` has `sender.py`, whose `SENDER` is a `Variant`, and the header `<SENDER.header>.h`. Raises HostsError `bad-sender`.
    """
    path = Path(folder).resolve()
    try:
        sender = replace(_row_of(path), folder=path)
        other = _VARIANTS.get(sender.name)
        if other is not None and other.folder != path:
            where = f"in {other.folder}" if other.folder else "of fairlane"
            raise ValueError(f"{path}: there is a sender {sender.name!r} already, {where}")
    except ValueError as error:
        raise HostsError("bad-sender", str(error), "`fairlane new --sender NAME` writes one that works") from error
    _VARIANTS[sender.name] = sender
    folders = [known for known in os.environ.get(OWN_SENDERS, "").split(os.pathsep) if known]
    os.environ[OWN_SENDERS] = os.pathsep.join(dict.fromkeys([*folders, str(path)]))
    return sender


def _row_of(path: Path) -> Variant:
    """The checked row of a sender's folder. Raises ValueError."""
    file = path / "sender.py"
    if not file.is_file():
        raise ValueError(f"{path}: a sender's folder has a file sender.py")
    try:
        sender: object = runpy.run_path(str(file)).get("SENDER")
    except Exception as error:  # it is the user's code
        raise ValueError(f"{file}: {type(error).__name__}: {error}") from error
    if not isinstance(sender, Variant):
        raise ValueError(f"{file}: SENDER must be a fairlane_hosts.variants.Variant")
    chars_max = _KERNEL_NAME_CHARS_MAX - len(NAME_PREFIX)
    if not re.fullmatch("[a-z][a-z0-9]*([_-][a-z0-9]+)*", sender.name) or len(sender.name) > chars_max:
        allowed = f"small letters and digits, with single - or _ between them, at most {chars_max} characters"
        raise ValueError(f"{file}: name {sender.name!r}: {allowed}")
    header, line = path / f"{sender.header}.h", f"#ifdef CC_SENDER_{sender.header}"
    try:
        hooks = line in header.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{header}: cannot be read: {error}") from error
    if not hooks:
        raise ValueError(f"{header}: no line `{line}` with its hooks (hosts/cc/tcp.h)")
    return sender


def find_variant(name: str) -> Variant:
    """The variant called `name`, or in the folder `name` where there is a slash. Raises HostsError `unknown-variant`, `bad-sender`."""
    if "/" in name:
        return add_sender(name)
    variant = VARIANTS.get(name)
    if variant is None:
        raise HostsError(
            "unknown-variant",
            f"no TCP variant is called {name!r}; there are {', '.join(VARIANTS)}",
            "\n  ".join(_broken),
        )
    return variant


def receiver_programs(variant: Variant, error_naming: str | None = None) -> tuple[str, ...]:
    """The host programs that the hosts of its receivers need; `error_naming`: `own` or `lowest` instead of what the variant has."""
    programs = variant.receiver_programs
    if error_naming is None or "ena" not in programs:
        return programs
    return ("ena", "ena-lowest") if error_naming == "lowest" else ("ena",)


def bpf_variants() -> list[Variant]:
    """The variants that need a BPF program."""
    return [variant for variant in VARIANTS.values() if not variant.builtin]


_broken: list[str] = []
"""What is wrong with senders that the environment names: reported when one is not found."""
for _folder in filter(None, os.environ.get(OWN_SENDERS, "").split(os.pathsep)):
    try:
        add_sender(_folder)
    except HostsError as _error:
        _broken.append(f"{OWN_SENDERS}: {_error.what}")
