# SPDX-License-Identifier: Apache-2.0
"""Real hosts in the simulator: namespaces of a User-mode Linux with the kernel's own TCP, set as Mininet's hosts are (docs/kernel-time.md)."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane_hosts.variants import find_variant

from fairlane_lab.paths import REPOSITORY
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Flow, Scenario, tcp_of
from fairlane_lab.wishes import DEFAULT_RTO_MIN_S, HostWish, RouteWish, Wishes, wishes

BUILT = REPOSITORY / ".setup" / "kernel"
APPLICATIONS = ("greedy",)
"""Kinds that the guest has so far."""


@dataclass(frozen=True)
class Machine:
    """The User-mode Linux of one run."""

    folder: Path
    "Of its own, empty: what it writes lies there."
    kernel: Path = BUILT / "linux"
    guest: Path = BUILT / "guest"
    cpu: int | None = None
    "The core that it shares with the simulation."

    def document(self, scenario: Scenario, sample_period_ns: int) -> dict[str, Any]:
        """The simulator's `machine` object."""
        return {
            "kernel": str(self.kernel),
            "guest": str(self.guest),
            "folder": str(self.folder),
            "end_ns": round(scenario.duration_s * 1e9),
            "sample_ns": sample_period_ns,
            "cpu": self.cpu,
        }


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
    """A core for this process: workers of a pool are numbered from 1."""
    cores = sorted(os.sched_getaffinity(0))
    number = next(iter(multiprocessing.current_process()._identity), 1)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]
    return cores[(int(number) - 1) % len(cores)]


class KernelHosts:
    """The hosts and flows of a scenario as Linux's. Raises RunError for what this runtime has not."""

    def __init__(self, scenario: Scenario, addresses: Mapping[str, str]) -> None:
        """`addresses` of the hosts, by name."""
        for flow in scenario.flows:
            if flow.app.kind not in APPLICATIONS:
                raise RunError(
                    f"flow {flow.name}: --runtime kernel has no application {flow.app.kind!r} yet; it has {', '.join(APPLICATIONS)}"
                )
        self._scenario = scenario
        self._wishes: Wishes = wishes(scenario)
        for (host, peer), route in self._wishes.routes.items():
            if route.window_packets:
                raise RunError(f"{host} to {peer}: --runtime kernel has no window_packets yet")
        self._addresses = addresses

    def host(self, name: str) -> dict[str, Any]:
        """The `linux` object of a host."""
        wish = self._wishes.hosts.get(name)
        if wish is None:
            return {}
        if wish.programs:
            raise RunError(f"host {name}: --runtime kernel loads no host programs yet ({', '.join(wish.programs)})")
        routes = {peer: route for (host, peer), route in self._wishes.routes.items() if host == name}
        return {
            "sysctls": [[f"net.ipv4.{key}", str(value)] for key, value in _sysctls(wish).items()],
            "routes": [_route(self._addresses[peer], route) for peer, route in routes.items() if route != RouteWish()],
        }

    def flow(self, flow: Flow) -> dict[str, Any]:
        """The `linux` object of a flow."""
        tcp = tcp_of(self._scenario, flow)
        return {
            "congestion_control": find_variant(flow.variant).congestion_control,
            "mss_bytes": tcp.mss_bytes,
            "receive_window_bytes": tcp.receive_window_bytes or None,
        }


def _sysctls(wish: HostWish) -> dict[str, int]:
    return {**wish.variant.sysctls, **wish.variant.optional_sysctls, **wish.sysctls}


def _route(address: str, route: RouteWish) -> dict[str, Any]:
    return {
        "to": address,
        "initcwnd": route.initial_window or None,
        "rto_min_ms": None if route.rto_min_s == DEFAULT_RTO_MIN_S else round(route.rto_min_s * 1000),
        "quickack": route.quick_ack,
    }
