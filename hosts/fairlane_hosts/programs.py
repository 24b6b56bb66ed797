# SPDX-License-Identifier: Apache-2.0
"""The one table of host programs: BPF programs beside the congestion control, attached to one host's cgroup and interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .bpf import Hook
from .errors import HostsError

COUNTERS_MAX = 16
"""Of one program (HOST_COUNTERS in bpf/programs/host_slot.bpf.h)."""


@dataclass(frozen=True)
class Counter:
    """One counter of a host program."""

    label: str
    """What it counts, as a table shows it."""
    of_receiver: bool = False
    """It counts at the flow's receiver; False: at its sender."""


@dataclass(frozen=True)
class HostProgram:
    """One program of a host: a BPF object whose parts are attached to its cgroup and its interface."""

    name: str
    """What a variant names in `programs`."""
    bit: int
    """Of `net.ipv4.fairlane_programs` in `--runtime kernel`, where it is built in (hosts/kernel/programs.c)."""
    parts: Mapping[str, Hook]
    """Where each BPF program of the object runs, by its name; at least one at the cgroup."""
    counters: Mapping[str, Counter] = field(default_factory=dict[str, Counter])
    """Its counters by name, in the order of `shared_count` (bpf/programs/host_slot.bpf.h); at most `COUNTERS_MAX`."""
    sysctls: Mapping[str, int] = field(default_factory=dict[str, int])
    """`net.ipv4.*` of the host's namespace that it needs; put back when it goes."""
    kernel: tuple[int, int] = (5, 15)
    """The first kernel that has all that it needs."""
    ipv6: bool = True
    """Whether it reads packets of IPv6 too."""

    @property
    def source(self) -> str:
        """File in `bpf/programs/`."""
        return f"{self.name.replace('-', '_')}.bpf.c"

    @property
    def object_name(self) -> str:
        """File name of the compiled program in `build/`."""
        return f"program_{self.name}.bpf.o"


_PROGRAMS = (
    HostProgram(
        name="ena",
        bit=2,  # finds and names corrupted segments as a receiver, takes the names as a sender
        parts={"ena": Hook.SOCKET, "ena_ingress": Hook.INTERFACE_INGRESS, "ena_egress": Hook.INTERFACE_EGRESS},
        counters={
            "ena_corrupted": Counter("corrupted segments attributed", of_receiver=True),
            "ena_notified": Counter("ACKs with ENA received"),
            "ena_kept": Counter("recoveries without reduction"),
            "ena_reduced": Counter("recoveries with reduction"),
            "ena_allowed": Counter("heads that the allowance paid for"),
            "ena_restored": Counter("windows restored after a wrong reduction"),
        },
        sysctls={"tcp_invalid_ratelimit": 0},  # every corrupted segment is answered at once
        kernel=(5, 17),  # bpf_loop
        ipv6=False,
    ),
    HostProgram(
        name="ena-lowest",
        bit=3,  # beside `ena` at a receiver: every ACK names the lowest that is missing, as ENA+ wants it
        parts={"ena_names_lowest": Hook.SOCKET},
        kernel=(5, 17),
    ),
    HostProgram(
        name="erto",
        bit=1,  # the first three timeouts in a row send new data instead of the head
        parts={"erto_sockops": Hook.SOCKET, "erto_egress": Hook.CGROUP_EGRESS},
        counters={
            "erto_probes": Counter("timeouts answered with new data"),
            "erto_ordinary": Counter("ordinary timeouts"),
        },
        kernel=(6, 1),  # a sockops program that may set TCP_NODELAY
    ),
    HostProgram(
        name="mrto",
        bit=0,  # the RTO floor as low as the kernel goes
        parts={"mrto": Hook.SOCKET},
        counters={"mrto_sockets": Counter("sockets with the short timer")},
    ),
)
PROGRAMS: Mapping[str, HostProgram] = {program.name: program for program in _PROGRAMS}


COUNTERS: Mapping[str, Counter] = {
    name: counter for program in PROGRAMS.values() for name, counter in program.counters.items()
}
"""Those of all programs."""


def find_program(name: str) -> HostProgram:
    """The program called `name`. Raises HostsError `unknown-program` with the names that there are."""
    program = PROGRAMS.get(name)
    if program is None:
        raise HostsError("unknown-program", f"no host program is called {name!r}; there are {', '.join(PROGRAMS)}")
    return program
