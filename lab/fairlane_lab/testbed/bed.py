# SPDX-License-Identifier: Apache-2.0
"""One running topology of the lab: Mininet's network, its hosts' TCP, the schemes at its managed ports, the processes of a run, and what
happens to links in the middle of it.

`Bed` owns what it starts; a control loop of the caller's serves its switches (`fl_control`). The hosts' TCP is set for one scenario: variant,
host programs, sysctls, and what Linux takes from a route (quick ACKs, RTO minimum, first window, largest window). A route's `cwnd N lock`
bounds the congestion window only of connections to a peer that the kernel has metrics of, and it makes those when a connection ends: so one
empty connection is made first, see `HostSettings.clamp`.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fairlane import connect
from fairlane_controller.program.contract import Plan as ControlPlan
from fairlane_controller.program.setup import change_set
from fairlane_controller.state.ask import ask
from fairlane_controller.state.run_state import read_run_state
from fairlane_controller.switch.client import Endpoint, SwitchClient
from fairlane_hosts import loader
from fairlane_hosts.apply import namespace_of, run_in_namespace, use_on_host, write_sysctls
from fairlane_hosts.host import Attachment, attach, host_of
from fairlane_hosts.loader import Lease
from fairlane_switch.control import ControlError
from fairlane_switch.process import end_processes, find_binary
from fairlane_topology import changes as fl_changes
from fairlane_topology import network as fl_net
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import LinkChange
from fairlane_topology.topology import PortKey, managed_ports

from fairlane_lab.programs import find_part
from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import Scenario, changes_of
from fairlane_lab.testbed.captures import Captures
from fairlane_lab.testbed.plan import Plan, make_plan, sample_ms
from fairlane_lab.testbed.programs import Program
from fairlane_lab.wishes import Wishes, wishes

CONNECT_TIMEOUT_S = 10.0


class HostSettings:
    """Puts wishes in force on the hosts of one running topology, and takes routes and programs away again."""

    def __init__(self, pids: dict[str, int], addresses: dict[str, str], lease: Lease, topology: str) -> None:
        """`lease` holds the host programs; `topology` is a name for the cgroups that no other running one has."""
        self._pids = pids
        self._addresses = addresses
        self._routes: list[tuple[str, str]] = []
        self._lease = lease
        self._topology = topology
        self._attachments: dict[str, Attachment] = {}

    def apply(self, wanted: Wishes) -> dict[str, str]:
        """Set all hosts; returns the variant of each. Raises RunError, HostsError."""
        self.clear()
        for name, wish in wanted.hosts.items():
            namespace = self._namespace(name)
            use_on_host(wish.variant, namespace)
            if wish.sysctls:
                run_in_namespace(namespace, lambda wish=wish: write_sysctls(wish.sysctls))
            if wish.programs:
                self._attachments[name] = attach(
                    host_of(f"{self._topology}/{name}", namespace), wish.programs, self._lease
                )
        for (host, peer), wish in wanted.routes.items():
            if wish.words():
                self._route(host, peer, wish.words())
        return {name: wish.variant.name for name, wish in wanted.hosts.items()}

    def clamp(self, wanted: Wishes, ports: dict[tuple[str, str], int]) -> None:
        """Give the kernel the peer metrics that make a route's `cwnd lock` hold; the sinks must listen at `ports`.

        tcp_init_metrics() reads the lock from the peer's metrics, and those come into being when a connection ends
        while `tcp_no_metrics_save` is 0 (net/ipv4/tcp_metrics.c).
        """
        for (host, peer), wish in wanted.routes.items():
            if wish.window_packets:
                address = (self._addresses[peer], ports[host, peer])
                run_in_namespace(self._namespace(host), lambda address=address: _make_metrics(address))

    def entering(self, host: str, command: Sequence[str]) -> list[str]:
        """`command` as a process of the host: in its network namespace, its sockets under its programs."""
        inside = ["mnexec", "-a", str(self._pids[host]), *command]
        attachment = self._attachments.get(host)
        return attachment.host.entering(inside) if attachment else inside

    def counters(self) -> dict[str, dict[str, int]]:
        """Of the host programs, by host, since `apply`. Raises HostsError."""
        return {name: attachment.counters() for name, attachment in self._attachments.items()}

    def clear(self) -> None:
        """Take away the routes and programs that `apply` made, and the peers' metrics."""
        while self._attachments:
            self._attachments.popitem()[1].close()
        while self._routes:
            host, peer = self._routes.pop()
            self._ip(host, ["route", "delete", f"{self._addresses[peer]}/32"])
            self._ip(host, ["tcp_metrics", "flush", self._addresses[peer]], absent_is_fine=True)

    def _route(self, host: str, peer: str, words: list[str]) -> None:
        address = self._addresses[peer]
        (found,) = json.loads(self._ip(host, ["-j", "route", "get", address]))
        way = ["via", found["gateway"]] if "gateway" in found else []
        self._ip(host, ["route", "replace", f"{address}/32", *way, "dev", found["dev"], "onlink", *words])
        self._routes.append((host, peer))

    def _ip(self, host: str, words: list[str], *, absent_is_fine: bool = False) -> str:
        """What `ip` says in the host; `absent_is_fine`: also when what it should take away is not there (ESRCH).

        Only a peer that the host opened connections to has metrics, so a flush on the receiver's side finds nothing.
        """
        command = ["mnexec", "-a", str(self._pids[host]), "ip", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        if done.returncode != 0 and not (absent_is_fine and os.strerror(errno.ESRCH) in done.stderr):
            raise RunError(f"{host}: ip {' '.join(words)}: {(done.stderr or done.stdout).strip()}")
        return done.stdout

    def _namespace(self, host: str) -> Path:
        return namespace_of(self._pids[host])


def _make_metrics(address: tuple[str, int]) -> None:
    setting = Path("/proc/sys/net/ipv4/tcp_no_metrics_save")
    before = setting.read_text()
    setting.write_text("0")
    try:
        with socket.create_connection(address, timeout=CONNECT_TIMEOUT_S) as connection:
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(4096):
                pass
    finally:
        setting.write_text(before)


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
    captures: Captures
    programs: list[Program] = field(default_factory=list[Program])
    """Of the user's."""
    done_ns: int | None = None
    """CLOCK_MONOTONIC instant at which all files were finished, before the run's time was over."""
    counters: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """Of the host programs, by host, at the run's end."""
    capture_problems: list[str] = field(default_factory=list[str])
    """What is missing in the captures, at the run's end."""

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
            for program in running.programs:
                program.end()
            end_processes(running.processes.values(), PROCESS_END_TIMEOUT_S)
            with suppress(ControlError):  # the links may be what has ended
                running.captures.end()

    def endpoint(self, switch: str) -> Endpoint:
        """P4Runtime of a switch."""
        return self.network.switches[switch].endpoint

    def begin(self, scenario: Scenario, folder: Path, wait_s: float) -> Running:
        """Set hosts and scheme, start sinks and senders; the flows start at instants that are set now, later by `wait_s`.

        Raises RunError, FairlaneError.
        """
        assert self._settings is not None
        folder.mkdir(parents=True, exist_ok=True)
        plan, wanted = make_plan(scenario, self.addresses, folder), wishes(scenario)
        variants = self._settings.apply(wanted)
        thresholds, captures = self._control(scenario, plan), Captures(self.network.wire_control, scenario.captures)
        running = self._running = Running(plan, 0, {}, folder, variants, thresholds, captures)
        for sink in plan.sinks:
            sink.ready.unlink(missing_ok=True)
            self._start_traffic(running, sink.name, sink.host, sink.command(sample_ms(scenario)))
        start = partial(self._start_process, running, leads=True)
        for name, flow in plan.commands.items():
            running.programs.append(Program(name, flow, plan.places[name], plan.words(name), start))
            running.programs[-1].listen()
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
        for program in running.programs:
            flow, pid = program.flow, self.network.hosts[program.flow.sender].pid
            start_s, end_s = (running.zero_s + at_s for at_s in (flow.start_s, scenario.end_s(flow)))
            program.send(namespace_of(pid), start_s, end_s, scenario.sample_s)
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
        problems += filter(None, [program.failure(running.folder) for program in running.programs])
        for program in running.programs:
            program.end()
        running.counters = settings.counters()
        running.capture_problems = running.captures.end()
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
        self._start_process(running, name, host, [str(find_binary("fairlane-traffic")), *arguments])

    def _start_process(
        self, running: Running, name: str, host: str, words: list[str], *, leads: bool = False
    ) -> subprocess.Popen[bytes]:
        """`leads` a group of its own, so that what it starts can be ended with it."""
        assert self._settings is not None
        command = self._settings.entering(host, words)
        with (running.folder / f"{name}.log").open("wb") as output:
            process = subprocess.Popen(
                command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=leads
            )
        running.processes[name] = process
        self.network.adopt(process.pid, f"traffic {name} on {host}")
        return process


class Changes:
    """The changes of one run; `apply_due` is called often, `due_s` says when it is next needed."""

    def __init__(self, network: fl_net.Network, scenario: Scenario, zero_ns: int) -> None:
        """Raises RunError for a change that makes no sense."""
        self._network = network
        self._zero_s = zero_ns / 1e9
        self._left = deque(changes_of(scenario, network.topology))
        self._done: list[LinkChange] = []
        self.rates: list[tuple[float, PortKey, int]] = []
        """(s after zero, port, bit/s) of what was done."""
        self.over_s = 0.0
        """CLOCK_MONOTONIC instant at which the last spike or outage is over: nothing can end one early."""

    @property
    def due_s(self) -> float | None:
        """CLOCK_MONOTONIC instant of the next change, or None."""
        return self._zero_s + self._left[0][0] if self._left else None

    def apply_due(self) -> None:
        """Make every change whose time has come. Raises RunError when wire or switch refuse one."""
        while self._left and time.monotonic() >= self._zero_s + self._left[0][0]:
            at_s, change = self._left.popleft()
            self._done.append(change)
            try:
                rates = fl_changes.apply(self._network, change)
            except RuntimeError as error:
                raise RunError(f"at {at_s:g} s: {error}") from None
            now_s = time.monotonic() - self._zero_s
            self.over_s = max(self.over_s, self._zero_s + now_s + max(change.spike_s or 0.0, change.outage_s or 0.0))
            self.rates += [(now_s, (end.node, end.port), rate_bps) for end, rate_bps in rates]

    def undo(self) -> None:
        """Put links and ports back to what the topology says, for the next run. Raises RunError."""
        try:
            fl_changes.restore(self._network, self._done)
        except RuntimeError as error:
            raise RunError(str(error)) from None
        self._done.clear()
