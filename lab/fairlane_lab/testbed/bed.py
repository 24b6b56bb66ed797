# SPDX-License-Identifier: Apache-2.0
"""One running topology of the lab: Mininet's network, its hosts' TCP, the schemes at its managed ports, the processes of a run.

`Bed` owns what it starts; a control loop of the caller's serves its switches (`fl_control`).
"""

from __future__ import annotations

import asyncio
import ipaddress
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane_controller.state.ask import ask
from fairlane_controller.switch.client import Endpoint
from fairlane_hosts import loader
from fairlane_topology import changes as fl_changes
from fairlane_topology import network as fl_net
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import LinkChange
from fairlane_topology.topology import managed_ports

from fairlane_lab.programs import find_part
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Scenario
from fairlane_lab.testbed.host_settings import HostSettings
from fairlane_lab.testbed.plan import Plan, make_plan, sample_ms
from fairlane_lab.wishes import wishes

LEAD_S = 0.7
"""From starting the senders' processes to the scenario's zero, beside the round trip in which they connect: for the first …"""
LEAD_PER_PROCESS_S = 0.06
"""… and for each process to get up."""
SINK_READY_TIMEOUT_S = 20.0
END_TIMEOUT_S = 15.0


@dataclass(frozen=True)
class ManagedPort:
    """A switch port with a bottleneck's queue."""

    switch: str
    port: int
    interface: str
    rate_bps: int
    queue_packets: int
    link_layer: str = "none"


@dataclass
class Running:
    """A run that has begun."""

    plan: Plan
    zero_ns: int
    """CLOCK_MONOTONIC instant at which the first flow may start."""
    processes: dict[str, subprocess.Popen[bytes]]
    folder: Path
    variants: dict[str, str]
    """Of the hosts."""
    thresholds: dict[tuple[str, int], int | None]
    """In force at the beginning, packets."""
    done_ns: int | None = None
    """CLOCK_MONOTONIC instant at which all files were finished, before the run's time was over."""
    counters: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """Of the host programs, by host, at the run's end."""

    @property
    def scenario(self) -> Scenario:
        return self.plan.scenario


class Bed:
    """A running topology; `start`, then runs one after the other, then `stop`."""

    def __init__(
        self, document: Mapping[str, Any], program: str, instance: int, target: str, seed: int, frame_bytes: int
    ) -> None:
        """`frame_bytes` is the length of full frames: BMv2 has queue rates in packets."""
        topology = fl_topology.check(document, str(document.get("name") or "topology"))
        self.network = fl_net.Network(topology, fl_net.NetworkOptions(instance, target, program, seed))
        self.target = target
        self.program = program
        self.ports = _managed_ports(self.network)
        self.part = find_part(program).in_mininet(self)
        self.addresses = {name: str(ipaddress.ip_interface(h.ip).ip) for name, h in topology.hosts.items()}
        self._frame_bytes = frame_bytes
        self._lease: loader.Lease | None = None
        self._settings: HostSettings | None = None
        self._running: Running | None = None

    @property
    def state(self) -> Path:
        """The run-state folder."""
        return self.network.folder

    @property
    def total_rate_bps(self) -> int:
        """Of the managed ports: the measure of the load on this machine."""
        return sum(port.rate_bps for port in self.ports)

    def start(self) -> None:
        """Start the topology. Raises RuntimeError when something does not start."""
        self._lease = loader.acquire()
        self.network.start()
        pids = {name: host.pid for name, host in self.network.hosts.items()}
        self._settings = HostSettings(pids, self.addresses, self._lease, self.network.options.name)

    def shape(self) -> None:
        """Put rates and queues in force on a target that takes them only once its program is loaded (BMv2)."""
        for switch in self.network.switches.values():
            switch.shape(self._frame_bytes)

    def stop(self) -> None:
        """Remove everything, also in the middle of a run."""
        try:
            self.abandon()
        finally:
            self.network.stop()
        if self._lease is not None:
            self._lease.close()
            self._lease = None

    def abandon(self) -> None:
        """End the processes of a run that is under way; nothing when there is none."""
        running, self._running = self._running, None
        if running is not None:
            for process in running.processes.values():
                process.terminate()
            for process in running.processes.values():
                _reap(process)

    def change_link(self, change: LinkChange) -> tuple[tuple[str, int, int], ...]:
        """Make a change of a link now; returns the (switch, port, bit/s) that have new rates. Raises RuntimeError."""
        return fl_changes.apply(self.network, change, self._frame_bytes)

    def restore_links(self, changes: Sequence[LinkChange]) -> None:
        """Put what these changes touched back to what the topology says. Raises RuntimeError."""
        fl_changes.restore(self.network, changes, self._frame_bytes)

    def endpoint(self, switch: str) -> Endpoint:
        """P4Runtime of a switch."""
        return Endpoint(switch, self.network.grpc(switch), self.network.switches[switch].options.device_id)

    def ask(self, request: dict[str, Any]) -> Any:
        """Ask the control loop (see `fairlane_controller.state.ask`). Raises FairlaneError."""
        return asyncio.run(ask(self.state, request))

    def begin(self, scenario: Scenario, folder: Path, wait_s: float) -> Running:
        """Set hosts and scheme, start sinks and senders; the flows start at instants that are set now, later by `wait_s`.

        Raises RunError, HostsError, FairlaneError.
        """
        assert self._settings is not None
        folder.mkdir(parents=True, exist_ok=True)
        plan = make_plan(scenario, self.addresses, folder)
        wanted = wishes(scenario)
        variants = self._settings.apply(wanted)
        thresholds = self.part.begin(scenario, plan)
        running = self._running = Running(plan, 0, {}, folder, variants, thresholds)
        for sink in plan.sinks:
            sink.ready.unlink(missing_ok=True)
            running.processes[sink.name] = self._traffic(sink.host, sink.command(sample_ms(scenario)), sink.name)
        for sink in plan.sinks:
            _wait_for(sink.ready, SINK_READY_TIMEOUT_S)
        self._settings.clamp(wanted, {(s.flow.sender, s.flow.receiver): s.sink.port for s in plan.senders})
        lead_s = LEAD_S + self.round_trip_s() + LEAD_PER_PROCESS_S * plan.processes + wait_s
        running.zero_ns = time.monotonic_ns() + round(lead_s * 1e9)
        for sender in plan.senders:
            words = sender.command(scenario, running.zero_ns)
            running.processes[sender.name] = self._traffic(sender.flow.sender, words, sender.name)
        return running

    def look_for_end(self) -> bool:
        """Whether the run that is under way has nothing left to do: it ends with its files, and they are finished."""
        running = self._running
        if running is None or not running.scenario.ends_with_its_files:
            return False
        files = [sender for sender in running.plan.senders if sender.flow.app.kind == "bytes"]
        if running.done_ns is None and all(running.processes[file.name].poll() is not None for file in files):
            running.done_ns = time.monotonic_ns()
            for sender in running.plan.senders:
                if sender not in files:
                    running.processes[sender.name].terminate()
        return running.done_ns is not None

    def end(self) -> None:
        """Wait until the senders have ended, then end the sinks. Raises RunError when one does not, or broke."""
        running = self._running
        assert running is not None
        self._running = None
        end_ns = running.zero_ns + round(running.scenario.duration_s * 1e9)
        deadline = time.monotonic() + max(0.0, (end_ns - time.monotonic_ns()) / 1e9) + END_TIMEOUT_S
        problem = ""
        for sender in running.plan.senders:
            process = running.processes[sender.name]
            try:
                code = process.wait(timeout=max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                code = None
            if code != 0 and not problem:
                words = (running.folder / f"{sender.name}.log").read_text(errors="replace").strip()[-400:]
                how = "did not end in time" if code is None else f"ended with {code}: {words}"
                problem = f"the sender of flow {sender.name} {how}"
        assert self._settings is not None
        running.counters = self._settings.counters()
        for sink in running.plan.sinks:
            running.processes[sink.name].terminate()
        for process in running.processes.values():
            _reap(process)
        if problem:
            raise RunError(problem)

    def round_trip_s(self) -> float:
        """Of a packet that crosses every link there and back: no connection of this network takes longer to be there."""
        ways = [way for link in self.network.topology.links for way in (link.a_to_b, link.b_to_a)]
        return sum(way.delay_us for way in ways) / 1e6

    def processes(self) -> dict[int, str]:
        """Switches, links, and the traffic of the run under way: what they are, by pid."""
        kinds = {switch.service.what: name for name, switch in self.network.switches.items()} | {
            fl_net.WIRE: "the links"
        }
        services = ((kinds.get(what), service.owned) for what, service in self.network.services.items())
        found = {owned.pid: kind for kind, owned in services if kind is not None and owned is not None}
        if self._running is not None:
            found |= {process.pid: f"the traffic of {name}" for name, process in self._running.processes.items()}
        return found

    def drain_s(self) -> float:
        """How long full queues take to empty, at most."""
        return max((port.queue_packets * 1514 * 8 / port.rate_bps for port in self.ports if port.rate_bps), default=0.0)

    def _traffic(self, host: str, arguments: list[str], name: str) -> subprocess.Popen[bytes]:
        assert self._running is not None
        assert self._settings is not None
        command = self._settings.entering(host, [sys.executable, "-m", "fairlane_hosts.traffic", *arguments])
        with (self._running.folder / f"{name}.log").open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        self.network.adopt(process.pid, f"traffic {name} on {host}")
        return process


def _managed_ports(network: fl_net.Network) -> tuple[ManagedPort, ...]:
    return tuple(
        ManagedPort(
            switch,
            number,
            f"{network.prefix}{switch}-eth{number}",
            spec.rate_bps or 0,
            spec.queue_packets,
            spec.link_layer,
        )
        for (switch, number), spec in managed_ports(network.topology).items()
    )


def _wait_for(path: Path, timeout_s: float) -> None:
    deadline = time.monotonic() + timeout_s
    while not path.exists():
        if time.monotonic() > deadline:
            raise RunError(f"{path.name} did not appear within {timeout_s:g} s")
        time.sleep(0.01)


def _reap(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(timeout=5)
