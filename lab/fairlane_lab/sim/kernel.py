# SPDX-License-Identifier: Apache-2.0
"""Real hosts in the simulator: namespaces of a User-mode Linux with the kernel's own TCP, set as Mininet's hosts are (docs/kernel-time.md)."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from fairlane_hosts.programs import COUNTERS_MAX, PROGRAMS, find_program
from fairlane_hosts.variants import find_variant

from fairlane_lab.paths import REPOSITORY
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import UDP_KINDS, Flow, Scenario, program_failure, tcp_of
from fairlane_lab.sim.sharing import marks_s, spike_marks_s
from fairlane_lab.wishes import DEFAULT_RTO_MIN_S, RouteWish, wishes

MEMORY_MB = 64
CONNECTION_MB = 4
"""Of the machine, and of each connection: taken only when it is used."""
LIBRARY_CACHE = "/etc/ld.so.cache"
BUILT = REPOSITORY / ".setup" / "kernel"


@dataclass(frozen=True)
class Machine:
    """The User-mode Linux of one run."""

    folder: Path
    "Of its own, empty: what it writes lies there."
    kernel: Path = BUILT / "linux"
    guest: Path = BUILT / "guest"
    cpu: int | None = None
    "The core that it shares with the simulation."
    boot_limit_s: int = 20
    "Wall time within which it has to boot: a third of a second, alone on the machine."
    patience_s: int = 60
    "Wall time within which it has to answer: a program that waits for nothing would hold virtual time for ever."

    def document(self, scenario: Scenario, sample_period_ns: int) -> dict[str, Any]:
        """The simulator's `machine` object."""
        given = {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}
        memory_mb = MEMORY_MB + CONNECTION_MB * sum(flow.connections for flow in scenario.flows)
        end_ns = round(scenario.duration_s * 1e9)
        marks_ns = [round(mark_s * 1e9) for mark_s in (*marks_s(scenario), *spike_marks_s(scenario))]
        samples = {"sample_ns": sample_period_ns, "marks_ns": [*marks_ns, end_ns]}
        return {**given, "end_ns": end_ns, **samples, "memory_mb": memory_mb}

    def build(self) -> dict[str, str]:
        """Which kernel it is: the source package, and the SHA-256 of its file."""
        record = self._record()
        return {"package": record["package"], "sha256": record["sha256"]}

    def _record(self) -> dict[str, Any]:
        return json.loads((self.kernel.parent / "linux.json").read_text())

    def check_senders(self, scenario: Scenario) -> None:
        """Raises RunError for a flow whose sender is not in the kernel."""
        used = {
            find_variant(each.variant).congestion_control for each in scenario.flows if each.app.kind not in UDP_KINDS
        }
        for name in sorted(used.difference(self._record()["senders"])):
            if name.startswith("fl_"):
                raise RunError(f"the kernel has no {name}: name its folder in FAIRLANE_SENDERS and call `make kernel`")

    def add_libraries(self, programs: Iterable[str]) -> None:
        """Put what dynamic programs load into the folder, which is the machine's root. Raises RunError for a library that is missing."""
        for program in dict.fromkeys(programs):
            said = subprocess.run(["ldd", program], capture_output=True, text=True, timeout=20).stdout
            if missing := re.search(r"(\S+) => not found", said):
                raise RunError(f"{program} needs {missing[1]}, which is not there")
            files = re.findall(r"(/\S+) \(0x", said)
            for file in [*files, LIBRARY_CACHE] if files else []:
                copy = self.folder / file.lstrip("/")
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(file, copy)

    def programs_ended(self) -> list[tuple[str, float, float, int]]:
        """(flow, s of start, s of end, exit code) of what `command` applications have run; 256 and more: a signal."""
        started: dict[str, float] = {}
        found: list[tuple[str, float, float, int]] = []
        for at_s, flow, what, code in self._events():
            if what == "start":
                started[flow] = at_s
            elif what == "exit":
                found.append((flow, started.get(flow, 0.0), at_s, code))
        return found

    def not_opened(self) -> Counter[str]:
        """Connections of each flow for which no source port was free."""
        return Counter(flow for _, flow, what, _ in self._events() if what == "no-port")

    def _events(self) -> Iterator[tuple[float, str, str, int]]:
        """(s, flow, what, value) of all that the guest has written down."""
        for line in (self.folder / "events").read_text().splitlines():
            at_ns, flow, what, value = line.rsplit(" ", 3)
            yield int(at_ns) / 1e9, flow, what, int(value)

    def check_programs(self) -> None:
        """Raises RunError with what a `command` application said that ended with a failure."""
        for flow, _, _, code in self.programs_ended():
            if code in (0, 256 + signal.SIGTERM):
                continue
            said = [file.read_text(errors="replace").strip() for file in sorted(self.folder.glob(f"{flow}-*.out"))]
            raise RunError(program_failure(flow, code, " ".join(filter(None, said))))

    def counters(self) -> dict[str, dict[str, int]]:
        """What the host programs of each host have counted until the last sample, by name."""
        file = self.folder / "counters"
        lines = file.read_text().splitlines() if file.exists() else []
        found: dict[str, dict[str, int]] = {}
        for host, bits, *numbers in map(str.split, lines):
            found[host] = {
                name: int(numbers[program.bit * COUNTERS_MAX + index])
                for program in PROGRAMS.values()
                if int(bits) >> program.bit & 1
                for index, name in enumerate(program.counters)
            }
        return found


def make_machine(folder: Path) -> Machine:
    """The machine of a run in this process. Raises RunError when no kernel is built."""
    machine = Machine(folder, cpu=_own_core())
    for file in (machine.kernel, machine.guest):
        if not file.exists():
            raise RunError(
                f"there is no {file.relative_to(REPOSITORY)}: `make kernel` builds the kernel of this runtime"
            )
    return machine


def _own_core() -> int:
    """A core for this process: workers of a pool are numbered from 1, others have the core of their pid."""
    cores = sorted(os.sched_getaffinity(0))
    number = next(iter(multiprocessing.current_process()._identity), os.getpid())  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]
    return cores[(int(number) - 1) % len(cores)]


class KernelHosts:
    """The hosts and flows of a scenario as Linux's. Raises RunError for what this runtime has not."""

    def __init__(self, scenario: Scenario, addresses: Mapping[str, Sequence[str]]) -> None:
        """`addresses` of the hosts, by name."""
        self._scenario = scenario
        self._wishes = wishes(scenario)
        self._addresses = addresses

    def host(self, name: str) -> dict[str, Any]:
        """The `linux` object of a host."""
        wish = self._wishes.hosts.get(name)
        if wish is None:
            return {}
        programs = [find_program(program) for program in wish.programs]
        values: dict[str, Any] = {**wish.variant.sysctls, **wish.variant.optional_sysctls, **wish.sysctls}
        for program in programs:
            values |= program.sysctls
        if programs:
            values["fairlane_programs"] = sum(1 << program.bit for program in programs)
        if any(flow.app.kind == "command" and flow.sender == name for flow in self._scenario.flows):
            values["tcp_congestion_control"] = wish.variant.congestion_control
        routes = {peer: route for (host, peer), route in self._wishes.routes.items() if host == name}
        return {
            "sysctls": [[f"net.ipv4.{key}", str(value)] for key, value in values.items()],
            "routes": [
                {
                    "to": address,
                    "initcwnd": route.initial_window or None,
                    "cwnd": route.window_packets or None,
                    "rto_min_ms": None if route.rto_min_s == DEFAULT_RTO_MIN_S else round(route.rto_min_s * 1000),
                    "quickack": route.quick_ack,
                }
                for peer, route in routes.items()
                if route != RouteWish()
                for address in self._addresses[peer]
            ],
        }

    def flow(self, flow: Flow) -> dict[str, Any]:
        """The `linux` object of a flow."""
        if flow.app.kind in UDP_KINDS:
            return {}
        tcp = tcp_of(self._scenario, flow)
        return {
            "congestion_control": find_variant(flow.variant).congestion_control,
            "mss_bytes": tcp.mss_bytes,
            "receive_window_bytes": tcp.receive_window_bytes or None,
        }
