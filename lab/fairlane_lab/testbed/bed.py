# SPDX-License-Identifier: Apache-2.0
"""One running topology of the lab: Mininet's network, its hosts' TCP, the schemes at its managed ports, the processes of a run.

`Bed` owns what it starts; a control loop of the caller's serves its switches (`fl_control`).
"""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlane import connect
from fairlane_controller.program.contract import Plan as ControlPlan
from fairlane_controller.program.setup import change_set
from fairlane_controller.state.ask import ask
from fairlane_controller.state.run_state import read_run_state
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_hosts import loader
from fairlane_switch.process import end_processes, find_binary
from fairlane_topology import changes as fl_changes
from fairlane_topology import network as fl_net
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import LinkChange
from fairlane_topology.topology import PortKey, managed_ports

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
PROCESS_END_TIMEOUT_S = 10.0


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
    thresholds: dict[PortKey, int | None]
    """In force at the beginning, packets."""
    done_ns: int | None = None
    """CLOCK_MONOTONIC instant at which all files were finished, before the run's time was over."""
    counters: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """Of the host programs, by host, at the run's end."""

    @property
    def scenario(self) -> Scenario:
        return self.plan.scenario

    @property
    def zero_s(self) -> float:
        """Of CLOCK_MONOTONIC."""
        return self.zero_ns / 1e9

    @property
    def end_s(self) -> float:
        """When what is measured ends, seconds after the zero."""
        if self.done_ns is None:
            return self.scenario.duration_s
        return min(self.scenario.duration_s, max(self.done_ns / 1e9 - self.zero_s, self.scenario.warmup_s + 1e-3))


class Bed:
    """A running topology; `start`, then runs one after the other, then `stop`."""

    def __init__(
        self,
        document: Mapping[str, Any],
        options: fl_net.NetworkOptions,
    ) -> None:
        topology = fl_topology.check(document, str(document.get("name") or "topology"))
        self.network = fl_net.Network(topology, options)
        self.target = options.target
        self.ports = managed_ports(topology)
        self.part = find_part(options.program)
        self.plans: Sequence[ControlPlan] = ()
        "What is in force, for the program's part."
        self.addresses = {name: topology.address(name) for name in topology.hosts}
        self._lease: loader.Lease | None = None
        self._settings: HostSettings | None = None
        self._running: Running | None = None

    @property
    def about(self) -> dict[str, Any]:
        """What it is, for `RunResult.about`."""
        options = self.network.options
        about = {"target": self.target, "instance": options.instance, "program": options.program}
        return {"runtime": "mininet", "processes": "one" if options.in_one_process else "separate", **about}

    @property
    def state(self) -> Path:
        """The run-state folder."""
        return self.network.folder

    def start(self) -> None:
        """Start the topology. Raises RuntimeError when something does not start."""
        self._lease = loader.acquire()
        self.network.start()
        pids = {name: host.pid for name, host in self.network.hosts.items()}
        self._settings = HostSettings(pids, self.addresses, self._lease, self.network.options.name)

    def shape(self) -> None:
        """Put rates and queues in force on a target that takes them only once its program is loaded (BMv2)."""
        for switch in self.network.switches.values():
            switch.shape()

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
            end_processes(running.processes.values(), PROCESS_END_TIMEOUT_S)

    def change_link(self, change: LinkChange) -> list[tuple[PortKey, int]]:
        """Make a change of a link now; returns the ports that have new rates, and these, bit/s. Raises RuntimeError."""
        return [((end.node, end.port), rate_bps) for end, rate_bps in fl_changes.apply(self.network, change)]

    def restore_links(self, changes: Sequence[LinkChange]) -> None:
        """Put what these changes touched back to what the topology says. Raises RuntimeError."""
        fl_changes.restore(self.network, changes)

    def endpoint(self, switch: str) -> Endpoint:
        """P4Runtime of a switch."""
        return self.network.switches[switch].endpoint

    def begin(self, scenario: Scenario, folder: Path, wait_s: float) -> Running:
        """Set hosts and scheme, start sinks and senders; the flows start at instants that are set now, later by `wait_s`.

        Raises RunError, HostsError, FairlaneError.
        """
        assert self._settings is not None
        folder.mkdir(parents=True, exist_ok=True)
        plan, wanted = make_plan(scenario, self.addresses, folder), wishes(scenario)
        variants = self._settings.apply(wanted)
        running = self._running = Running(plan, 0, {}, folder, variants, self._control(scenario, plan))
        for sink in plan.sinks:
            sink.ready.unlink(missing_ok=True)
            self._start_traffic(running, sink.name, sink.host, sink.command(sample_ms(scenario)))
        deadline = time.monotonic() + SINK_READY_TIMEOUT_S
        while missing := [sink.ready.name for sink in plan.sinks if not sink.ready.exists()]:
            if time.monotonic() > deadline:
                raise RunError(f"{missing[0]} did not appear within {SINK_READY_TIMEOUT_S:g} s")
            time.sleep(0.01)
        self._settings.clamp(wanted, {(s.flow.sender, s.flow.receiver): s.sink.port for s in plan.senders})
        ways = [way for link in self.network.topology.links for way in (link.a_to_b, link.b_to_a)]
        round_trip_s = sum(way.delay_us for way in ways) / 1e6  # no connection takes longer to be there
        lead_s = LEAD_S + round_trip_s + LEAD_PER_PROCESS_S * plan.processes + wait_s
        running.zero_ns = time.monotonic_ns() + round(lead_s * 1e9)
        for sender in plan.senders:
            words = sender.command(scenario, running.zero_ns)
            self._start_traffic(running, sender.name, sender.flow.sender, words)
        return running

    def _control(self, scenario: Scenario, plan: Plan) -> dict[PortKey, int | None]:
        """Put the scenario's control in force, as after a fresh start; returns the thresholds. Raises RunError, FairlaneError."""
        for configuration in self.part.configurations(scenario, self.network.topology):
            connect(self.state).apply(configuration)
        run, program = read_run_state(self.state), self.part.program
        if program.decided:
            asyncio.run(self._forget_decisions(self.part.plans(run, scenario, self.network.topology)[-1]))
        if self.part.has_loop and (options := self.part.loop_options(plan.weights())):
            asyncio.run(ask(self.state, {"op": "loop_put", "loop": options}))
        self.plans = [program.initial_plan(run)]
        return self.part.thresholds(scenario.control, {key: spec.queue_packets for key, spec in self.ports.items()})

    async def _forget_decisions(self, plan: ControlPlan) -> None:
        """Replace what a law has decided for the run before, which a configuration leaves as it is; the loop writes."""
        for name in self.network.switches:
            async with SwitchClient(self.endpoint(name), write=False) as client:
                found = await change_set(self.part.program, plan, {name: client})
            if updates := found.updates(name):
                await ask(self.state, {"op": "table_write", "switch": name, "updates": updates})

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
        running, settings = self._running, self._settings
        assert running is not None
        assert settings is not None
        self._running = None
        deadline = time.monotonic() + END_TIMEOUT_S
        deadline += max(0.0, running.zero_s + running.scenario.duration_s - time.monotonic())
        problems: list[str] = []
        for sender in running.plan.senders:
            try:
                code = running.processes[sender.name].wait(timeout=max(0.1, deadline - time.monotonic()))
                words = (running.folder / f"{sender.name}.log").read_text(errors="replace").strip()[-400:]
                problems += [f"ended with {code}: {words}"] * bool(code)
            except subprocess.TimeoutExpired:
                problems.append("did not end in time")
            if problems:
                problems = [f"the sender of flow {sender.name} {problems[0]}"]
                break
        running.counters = settings.counters()
        end_processes(running.processes.values(), PROCESS_END_TIMEOUT_S)
        if problems:
            raise RunError(problems[0])

    def processes(self) -> dict[int, str]:
        """Switches, links, and the traffic of the run under way: what they are, by pid."""
        one = self.network.options.in_one_process
        kinds = {switch.service.what: name for name, switch in self.network.switches.items()}
        kinds[fl_net.NETWORK] = "the switches and links" if one else "the links"
        services = ((kinds.get(what), service.owned) for what, service in self.network.services.items())
        found = {owned.pid: kind for kind, owned in services if kind is not None and owned is not None}
        if self._running is not None:
            found |= {process.pid: f"the traffic of {name}" for name, process in self._running.processes.items()}
        return found

    def drain_s(self) -> float:
        """How long full queues take to empty, at most."""
        return max(
            (one.queue_packets * 1514 * 8 / one.rate_bps for one in self.ports.values() if one.rate_bps), default=0.0
        )

    def _start_traffic(self, running: Running, name: str, host: str, arguments: list[str]) -> None:
        assert self._settings is not None
        command = self._settings.entering(host, [str(find_binary("fairlane-traffic")), *arguments])
        with (running.folder / f"{name}.log").open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL)
        running.processes[name] = process
        self.network.adopt(process.pid, f"traffic {name} on {host}")
