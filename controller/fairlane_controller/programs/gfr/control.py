# SPDX-License-Identifier: Apache-2.0
"""Which VCs are active, what the lines carry, and N, w_i and weights current by it.

A VC is active on an egress port when frames of it arrived there within the last T_active. The control reads the direct
counters of `vc_share` once a second. When the active VCs have changed, it writes what differs in one batch. Where the configuration
allows it (`follow_capacity`), C_GFR, LBO and HBO follow what the line really drains (`LineMeter`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fairlane import (
    ErrorCode,
    FairlaneError,
    P4TableEntry,
    RunState,
    Session,
    SwitchControl,
    TopologyControl,
    apply_plan,
    enable_digest,
    load_program,
    runs_program,
)
from fairlane.measure import (
    LinkChange,
    MeasureOptions,
    OccupancyKeeper,
    PortMeter,
    PortReport,
    listen_digest,
    listen_probes,
    plain,
    send_probes,
)
from fairlane.switch import CELL_LINE_BYTES, SwitchClient, open_ports, put_entries, sort_entries
from fairlane.text import counted, format_rate

from . import names
from .config import GfrLoop, PortConfig
from .entries import port_shares
from .plan import GfrPlan, gfr_store, plan_in_force

MIN_COUNT = 3
"""Reports before the line's rate is believed."""
MAX_AGE_S = 3.0
DIFFERS = 0.05
"""A line that drains so much faster or slower than its capacity in force is another line."""


DIGEST_REPORT = "gfr_report_t"


@dataclass(frozen=True)
class LineReport:
    """The digest `gfr_report_t`."""

    busy_us: int
    busy_bytes: int
    busy_cells: int
    waiting_cells: int = 0


@dataclass
class LineMeter(PortMeter):
    """BW and τ of one port, by the reports of `gfr.p4`."""

    link_layer: str = ""
    "Of the line; what is not `none` or `ethernet` is an atm line."

    def on_line_report(self, now_s: float, report: LineReport) -> None:
        """One report; what an ethernet line adds to a frame is in none of its counts, so nothing is known of its rate."""
        is_atm = self.link_layer in ("", "atm")
        line_bytes = report.busy_cells * CELL_LINE_BYTES if is_atm else report.busy_bytes
        if self.link_layer != "ethernet":
            self.on_report(now_s, PortReport(0, report.busy_us, line_bytes, busy_packets=1, flows=0))


class GfrControl(SwitchControl):
    """One switch; when the control ends, the switch stays as it is."""

    topology: GfrTopology

    def __init__(self, session: Session, topology: GfrTopology) -> None:
        super().__init__(session, topology)
        self._counts: dict[tuple[int, str], tuple[int, float]] = {}
        "By egress port and VC: frames that arrived so far, and since when there are so many."
        self._active: dict[int, frozenset[str]] = {}
        "Active VCs of each port; empty before the first poll."
        self._lines: dict[int, LineMeter] = {}
        self._capacity_bps: dict[int, float] = {}
        "What the line of a port drains, where that is in force instead of its configured capacity."
        self._reported_bps: dict[int, float] = {}
        self._is_stale = False
        "Somebody else has written entries since the last poll."

    @property
    def plan(self) -> GfrPlan:
        """What is in force, with the active VCs and the rates of the lines."""
        name = self.session.endpoint.name
        active = {(name, port): vcs for port, vcs in self._active.items()}
        return replace(
            self.topology.plan, active=active, lines={(name, at): bps for at, bps in self._capacity_bps.items()}
        )

    @property
    def _ports(self) -> dict[int, PortConfig]:
        """The managed ports, as configured."""
        ports = self.topology.plan.state.config.ports
        return {port.port: port for port in ports if port.switch == self.session.endpoint.name}

    # ---- life ------------------------------------------------------------------------------------------------

    def entries_after_restart(self) -> list[P4TableEntry]:
        """The plan's; every VC counts as active."""
        return sort_entries(self.topology.plan.entries(self.session.endpoint.name), names.TABLES)

    async def observe(self, client: SwitchClient) -> None:
        """A dry run reports what would be written."""
        if self.session.dry_run and runs_program(names.PROGRAM, client.table_names()):
            await self.poll(client)

    async def take_over(self, client: SwitchClient) -> None:
        """Write what differs from the plan."""
        async with self.session.writes:
            written = await self._reconcile(client)
        ports = list(self._ports)
        why = f"we are the primary controller: {counted(written, 'entry')} of ports {ports} differed from the configuration"
        self.session.event("gfr_took_over", written=written, ports=ports, why=why)

    async def changed(self, client: SwitchClient) -> None:
        """The next poll compares what the ports have with what they should have."""
        del client
        self._is_stale = True

    def jobs(self, client: SwitchClient) -> list[Coroutine[Any, Any, Any]]:
        """Poll the VCs' counters; measure the lines."""
        jobs: list[Coroutine[Any, Any, Any]] = [self._poll_forever(client)]
        if self.topology.listens:
            jobs.append(self._listen(client))
            if self.topology.probes:
                jobs += [send_probes(client, self._all_lines), listen_probes(client, self.line)]
        if self.topology.checks_counts:
            open_queues = partial(open_ports, self.session.endpoint, self.topology.run)
            keeper = OccupancyKeeper(names.COUNTED, open_queues, self.session.event)
            jobs.append(keeper.keep_forever(client, lambda: self._ports))
        return jobs

    async def _listen(self, client: SwitchClient) -> None:
        await enable_digest(self.session, client, DIGEST_REPORT)
        await listen_digest(client, DIGEST_REPORT, self.line, LineReport, LineMeter.on_line_report)

    async def _poll_forever(self, client: SwitchClient) -> None:
        while True:
            async with self.session.writes:
                await self.poll(client)
            await asyncio.sleep(self.topology.loop.activity_period)

    # ---- what it does --------------------------------------------------------------------------------------------

    async def poll(self, client: SwitchClient, now_s: float | None = None) -> bool:
        """Read the counters once and write what has changed by them.

        Args:
            client: The switch.
            now_s: Seconds of any clock; None: the running loop's.

        Returns:
            Whether something had to be written.
        """
        now_s = asyncio.get_running_loop().time() if now_s is None else now_s
        entries = await client.read_table(names.TABLE_VC_SHARE, counters=True)
        ids = {number: name for name, number in self.topology.plan.state.allocation.vc_ids.items()}
        shares = {(int(entry["egress_port"]), ids[entry["vc"]]): entry for entry in entries if entry["vc"] in ids}
        before = self._active, self._capacity_bps
        active = self._active_vcs(now_s, shares)
        rates = {number: self._line_bps(port, now_s) for number, port in self._ports.items()}
        capacity = {number: bps for number, bps in rates.items() if bps is not None}
        changed = {number for number in active if active[number] != before[0].get(number)}
        other_lines = {number for number in active if capacity.get(number) != before[1].get(number)}
        self._active, self._capacity_bps = active, capacity
        if not (changed or other_lines or self._is_stale):
            return False
        is_stale, self._is_stale = self._is_stale, False
        try:
            written = await self._reconcile(client, None if is_stale else changed | other_lines)
        except BaseException:
            (self._active, self._capacity_bps), self._is_stale = before, True  # it is tried again
            raise
        for port in self.status()["ports"] if changed else ():
            if port["port"] in changed:
                self._report_active(port, before[0].get(port["port"], frozenset()))
        return written > 0

    def _active_vcs(self, now_s: float, shares: Mapping[tuple[int, str], P4TableEntry]) -> dict[int, frozenset[str]]:
        """The VCs of each port of which frames arrived within T_active, by the counters of their entries.

        One that is new here counts as active from now on until T_active has passed: better N a little too large for a moment than a VC
        without its share.
        """
        counts = {key: entry.counter_data.packet_count if entry.counter_data else 0 for key, entry in shares.items()}
        for key, count in counts.items():
            if self._counts.get(key, (None, 0.0))[0] != count:
                self._counts[key] = count, now_s
        self._counts = {key: self._counts[key] for key in counts}
        after_s = now_s - self.topology.loop.active_time + 1e-9
        active = [key for key, (_, since_s) in self._counts.items() if since_s > after_s]
        return {number: frozenset(vc for port, vc in active if port == number) for number in self._ports}

    async def _reconcile(self, client: SwitchClient, ports: Collection[int] | None = None) -> int:
        """Have the switch have what the plan says, and nothing else; returns how many entries changed.

        Args:
            client: The switch.
            ports: Only what the loop decides about of these ports; None: all. With many VCs all takes a multiple of the time.
        """
        if self.session.dry_run:
            return 0
        if ports is None:
            return await apply_plan(client, load_program(names.PROGRAM), self.plan)
        return await put_entries(client, self.plan.port_entries(self.session.endpoint.name, ports))

    def status(self) -> dict[str, Any]:
        """N and the shares of its ports."""
        ports: list[dict[str, Any]] = []
        for port, vcs in self.plan.ports(self.session.endpoint.name):
            active = self._active.get(port.port)
            running = [vc.name for vc in vcs if active is None or vc.name in active]
            w_bps = {vc: max(1, round(w)) for vc, w in port_shares(port, vcs, active).items()}
            about = {"port": port.port, "capacity_bps": port.capacity, "scheme": port.scheme, "n": len(running)}
            ports.append({**about, "active": running, "w_bps": w_bps})
        return {"ports": ports}

    def _report_active(self, status: Mapping[str, Any], before: frozenset[str]) -> None:
        """The event of a port whose active VCs were `before` and are those of its `status`."""
        now = self._active[status["port"]]
        started, stopped = sorted(now - before), sorted(before - now)
        parts = [f"frames of {', '.join(started)} arrived"] if started else []
        if stopped:
            parts.append(f"nothing of {', '.join(stopped)} arrived for {self.topology.loop.active_time:g} s")
        n, capacity_bps = status["n"], status["capacity_bps"]
        shares = ", ".join(f"{vc} {format_rate(status['w_bps'][vc])}" for vc in sorted(status["active"])) or "nobody"
        why = f"{' and '.join(parts) or 'first poll'}: N is {n}, and (3) shares {format_rate(capacity_bps)} as w_i = {shares}"
        changes = {name: status[name] for name in ("n", "active")} | {"started": started, "stopped": stopped}
        self.session.event("gfr_active", port=status["port"], **changes, w_bps=status["w_bps"], why=why)

    # ---- what is measured ----------------------------------------------------------------------------------------

    def line(self, number: int) -> LineMeter | None:
        """The meter of a managed port."""
        port = self._ports.get(number)
        return None if port is None else self._line_of(port)

    def _line_of(self, port: PortConfig) -> LineMeter:
        number = port.port
        if number not in self._lines:
            run = self.topology.plan.run
            state = run.switch(port.switch).port(number) if run is not None else None
            layer = state.link_layer if state is not None else ""
            tell = partial(self._report_link, number)
            self._lines[number] = LineMeter(MeasureOptions(), port.capacity, tell, link_layer=layer)
        return self._lines[number]

    def _all_lines(self) -> dict[int, LineMeter]:
        return {number: self._line_of(port) for number, port in self._ports.items()}

    def measurements(self) -> list[dict[str, Any]]:
        """One object a managed port: BW and τ."""
        now_s = asyncio.get_running_loop().time()
        measured = {number: line.measurement(now_s) for number, line in self._all_lines().items()}
        return [{"port": at, "bw_bps": plain(one.bw_bps), "tau_s": plain(one.tau_s)} for at, one in measured.items()]

    def _report_link(self, number: int, change: LinkChange) -> None:
        self.session.event("link_changed", port=number, why=change.why, **change.to_json())

    def _line_bps(self, port: PortConfig, now_s: float) -> float | None:
        """What should be in force instead of the configured capacity; None: nothing. An idle line keeps what it had."""
        line, current = self._lines.get(port.port), self._capacity_bps.get(port.port)
        rate = line.measurement(now_s).bw_bps if line is not None else None
        if rate is None or rate.count < MIN_COUNT or rate.age_s > MAX_AGE_S:
            return current if port.follow_capacity else None
        configured, measured = port.capacity, rate.value
        is_other = abs(measured / configured - 1.0) > DIFFERS
        if abs(measured / self._reported_bps.get(port.port, configured) - 1.0) > DIFFERS:
            self._reported_bps[port.port] = measured if is_other else configured
            followed = (
                "C_GFR, LBO and HBO follow it" if port.follow_capacity else "the configuration does not follow it"
            )
            drains = f"the line drains {format_rate(measured)} while frames wait ({rate.count} reports)"
            self.session.event(
                "gfr_capacity",
                port=port.port,
                measured_bps=measured,
                configured_bps=configured,
                count=rate.count,
                age_s=round(rate.age_s, 3),
                followed=port.follow_capacity,
                why=f"{drains}, configured are {format_rate(configured)}: {followed}",
            )
        if not port.follow_capacity or not is_other:
            return None
        return current if current is not None and abs(measured / current - 1.0) <= DIFFERS else measured


class GfrTopology(TopologyControl):
    """The plan of all switches."""

    control_type = GfrControl
    needs_all_switches = True
    dry_run_observes = True

    def __init__(
        self,
        run: RunState | None = None,
        *,
        probes: bool = True,
        measures: bool = True,
        checks_counts: bool = True,
        plan: GfrPlan | None = None,
    ) -> None:
        """Read what is remembered.

        Args:
            run: The topology.
            probes: Whether the links are probed for τ, where `measures`.
            measures: Whether the drain rate of the lines and τ are measured.
            checks_counts: Whether what the switch counts as waiting is compared with its queues (`measure/occupancy.py`).
            plan: Instead of what is remembered.

        Raises:
            FairlaneError: NO_TOPOLOGY without both; BAD_FILE when the topology cannot have what is remembered.
        """
        super().__init__(run, probes=probes)
        self.loop, self.listens, self.checks_counts = GfrLoop(), measures, checks_counts
        if plan is None:
            if run is None:
                raise FairlaneError(ErrorCode.NO_TOPOLOGY, "VCs are a whole topology's: name its run state by --state")
            plan = plan_in_force(gfr_store(run.folder).get(), run)
        self.plan = plan

    def use_loop(self, loop: GfrLoop) -> None:
        """Take the keys of `GfrLoop` into use."""
        self.loop = loop

    def refresh(self, controls: Mapping[str, GfrControl]) -> None:
        """With the configuration that is remembered now."""
        del controls
        if self.run is not None and (state := gfr_store(self.run.folder).get()) != self.plan.state:
            self.plan = plan_in_force(state, self.run)
