# SPDX-License-Identifier: Apache-2.0
"""Which VCs are active, what the lines carry, and N, w_i and weights current by it.

A VC is active on an egress port when frames of it arrived there within the last T_active. The control reads the direct
counters of `vc_share` once a second. When the active VCs have changed, it writes what differs in one batch. Where the
configuration allows it (`follow_capacity`), C_GFR, LBO and HBO follow what the line really drains.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

from fairlane import (
    Config,
    P4TableEntry,
    RunState,
    Session,
    SwitchControl,
    TopologyControl,
    apply_plan,
    enable_digest,
    every,
    load_program,
    port_state,
)
from fairlane.measure import (
    PortMeter,
    PortReport,
    plain,
)
from fairlane.switch import CELL_LINE_BYTES, SwitchClient, put_entries
from fairlane.text import counted, format_rate

from . import names
from .config import ManagedPort
from .entries import port_shares
from .plan import GfrPlan

ACTIVITY_PERIOD_S = 1.0
"""Between two polls of which VCs are active."""
ACTIVE_TIME_S = 2.0
"""T_active: a VC without an arrival for so long is not active."""
REPORT = "gfr_report_t"
"""The digest of what a port did."""
MIN_REPORTS = 3
"""Min number of reports for the rate of a line."""
MIN_CHANGE = 0.05
"""Min change of a line's rate that is reported, as a part of the rate that was known."""


class GfrControl(SwitchControl):
    """One switch; when the control ends, the switch stays as it is."""

    topology: GfrTopology

    def __init__(self, session: Session, topology: GfrTopology) -> None:
        super().__init__(session, topology)
        self._counts: dict[tuple[int, str], tuple[int, float]] = {}
        "By egress port and VC: frames that arrived so far, and since when there are so many."
        self._active: dict[int, frozenset[str]] = {}
        "Active VCs of each port; empty before the first poll."
        self._meters: dict[int, PortMeter] = {}
        self._line_bps: dict[int, float] = {}
        "What the line of a port carries, where that is not its configured capacity."
        self._is_stale = False
        "Somebody else has written entries since the last poll."

    @property
    def plan(self) -> GfrPlan:
        """What is in force, with the active VCs and the rates of the lines."""
        name = self.session.endpoint.name
        active = {(name, port): vcs for port, vcs in self._active.items()}
        return replace(
            self.topology.plan, active=active, lines={(name, port): bps for port, bps in self._line_bps.items()}
        )

    @property
    def _ports(self) -> dict[int, ManagedPort]:
        """The managed ports."""
        ports = self.topology.plan.state.ports
        return {port.port: port for port in ports if port.switch == self.session.endpoint.name}

    # ---- life ------------------------------------------------------------------------------------------------

    async def take_over(self, client: SwitchClient) -> None:
        """Write what differs from the plan."""
        async with self.session.writes:
            written = await self._reconcile(client)
        why = f"we are the primary controller: {counted(written, 'entry')} differed from the configuration"
        self.session.event("gfr_took_over", written=written, ports=[*self._ports], why=why)
        await self.poll(client)

    async def changed(self, client: SwitchClient) -> None:
        """The next poll compares what the ports have with what they should have."""
        del client
        self._is_stale = True

    def jobs(self, client: SwitchClient) -> list[Coroutine[Any, Any, Any]]:
        """Poll the VCs' counters; measure the lines; compare what the switch counts as waiting with its queues."""
        jobs = [*super().jobs(client)]
        if self.topology.listens:
            jobs.append(self._listen(client))
        return jobs + self.link_jobs(client, self.meters, names.COUNTED if self.topology.checks_counts else None)

    # ---- what it does --------------------------------------------------------------------------------------------

    @every(ACTIVITY_PERIOD_S)
    async def poll(self, client: SwitchClient, now_s: float | None = None) -> bool:
        """Read the counters once and write what has changed by them.

        Args:
            client: The switch.
            now_s: Seconds of any clock; None: the running loop's.

        Returns:
            Whether something had to be written.
        """
        async with self.session.writes:
            return await self._poll(client, asyncio.get_running_loop().time() if now_s is None else now_s)

    async def _poll(self, client: SwitchClient, now_s: float) -> bool:
        entries = await client.read_table(names.TABLE_VC_SHARE, counters=True)
        ids = {number: name for name, number in self.topology.plan.state.numbers.get("", {}).items()}
        shares = {(int(entry["egress_port"]), ids[entry["vc"]]): entry for entry in entries if entry["vc"] in ids}
        before, is_stale = self._active, self._is_stale
        active, follow = self._active_vcs(now_s, shares), self._follow_lines(now_s)
        changed = {number for number in active if active[number] != before.get(number)}
        if not (changed or follow or is_stale):
            return False
        self._active, self._is_stale = active, False
        try:
            written = await self._reconcile(client, None if is_stale else changed | follow)
        except BaseException:
            self._active, self._is_stale = before, True  # it is tried again
            raise
        for port in self.status()["ports"]:
            if port["port"] in changed:
                self._report_active(port, before.get(port["port"], frozenset()))
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
        after_s = now_s - ACTIVE_TIME_S + 1e-9
        active = [key for key, (_, since_s) in self._counts.items() if since_s > after_s]
        return {number: frozenset(vc for port, vc in active if port == number) for number in self._ports}

    async def _reconcile(self, client: SwitchClient, ports: Collection[int] | None = None) -> int:
        """Have the switch have what the plan says, and nothing else; returns how many entries changed.

        Args:
            client: The switch.
            ports: Only what the loop decides about of these ports; None: all. With many VCs all takes a multiple of the time.
        """
        if ports is None:
            return await apply_plan(client, load_program(names.PROGRAM), self.plan)
        return await put_entries(client, self.plan.port_entries(self.session.endpoint.name, ports))

    def status(self) -> dict[str, Any]:
        """N and the shares of its ports."""
        ports = list[dict[str, Any]]()
        for port, vcs in self.plan.ports(self.session.endpoint.name):
            number, active = port.port, self._active.get(port.port)
            running = [vc.name for vc in vcs if active is None or vc.name in active]
            w_bps = {vc: max(1, round(w)) for vc, w in port_shares(port, vcs, active).items()}
            line = {"line_bps": self._line_bps[number]} if number in self._line_bps else {}
            ports.append({"port": number, "n": len(running), "active": running, "w_bps": w_bps, **line})
        return {"ports": ports}

    def _report_active(self, status: Mapping[str, Any], before: frozenset[str]) -> None:
        """The event of a port whose active VCs were `before` and are those of its `status`."""
        now = self._active[status["port"]]
        started, stopped = sorted(now - before), sorted(before - now)
        parts = [f"frames of {', '.join(started)} arrived"] if started else []
        parts += [f"nothing of {', '.join(stopped)} arrived for {ACTIVE_TIME_S:g} s"] if stopped else []
        why = f"{' and '.join(parts) or 'first poll'}: N is {status['n']}"
        self.session.event("gfr_active", **status, started=started, stopped=stopped, why=why)

    # ---- what is measured ----------------------------------------------------------------------------------------

    def meters(self) -> dict[int, PortMeter]:
        """Of the managed ports."""
        for number, port in self._ports.items():
            if number not in self._meters:
                self._meters[number] = PortMeter(
                    self.topology.measure, port.capacity, partial(self.report_link, number)
                )
        return {number: self._meters[number] for number in self._ports}

    async def _listen(self, client: SwitchClient) -> None:
        await enable_digest(self.session, client, REPORT)
        async for reports in client.digests(REPORT):
            for report in reports:
                self.take_report(asyncio.get_running_loop().time(), report)

    def take_report(self, now_s: float, report: Mapping[str, Any]) -> None:
        """One `gfr_report_t`; what an ethernet line adds to a frame is in none of its counts, so nothing is known of its rate."""
        number = int(report["egress_port"])
        layer = port_state(self.topology.plan.run, (self.session.endpoint.name, number)).link_layer
        meter = None if layer == "ethernet" else self.meters().get(number)
        if meter is not None:
            of_line = report["busy_bytes"] if layer == "none" else CELL_LINE_BYTES * int(report["busy_cells"])
            # The digest does not count frames; their mean length is not shown.
            meter.on_report(now_s, PortReport(0, int(report["busy_us"]), int(of_line), busy_packets=1, flows=0))

    def measurements(self) -> list[dict[str, Any]]:
        """One object a managed port: BW and τ."""
        now_s = asyncio.get_running_loop().time()
        measured = {number: meter.measurement(now_s) for number, meter in self.meters().items()}
        return [{"port": at, "bw_bps": plain(one.bw_bps), "tau_s": plain(one.tau_s)} for at, one in measured.items()]

    def _follow_lines(self, now_s: float) -> set[int]:
        """Report each line whose rate has changed; returns the ports that follow their lines."""
        follow = set[int]()
        for number, meter in self.meters().items():
            port, rate = self._ports[number], meter.measurement(now_s).bw_bps
            current_bps = self._line_bps.get(number, port.capacity)
            if rate is None or rate.count < MIN_REPORTS or abs(rate.value / current_bps - 1) <= MIN_CHANGE:
                continue
            self._line_bps.pop(number, None)
            if abs(rate.value / port.capacity - 1) > MIN_CHANGE:
                self._line_bps[number] = rate.value
            if port.follow_capacity:
                follow.add(number)
            effect = "C_GFR, LBO and HBO follow it" if port.follow_capacity else "the configuration does not follow it"
            drains = f"the line drains {format_rate(rate.value)} while frames wait ({rate.count} reports)"
            self.session.event(
                "gfr_capacity",
                port=number,
                measured_bps=rate.value,
                configured_bps=port.capacity,
                followed=port.follow_capacity,
                why=f"{drains}, configured are {format_rate(port.capacity)}: {effect}",
            )
        return follow


class GfrTopology(TopologyControl):
    """The plan of all switches."""

    control_type = GfrControl
    needs_all_switches = True

    def __init__(self, run: RunState | None = None, *, probes: bool = True, plan: GfrPlan | None = None) -> None:
        """Read what is remembered.

        Args:
            run: The topology.
            probes: Whether the links are probed for τ.
            plan: Instead of what is remembered: what the switch counts as waiting is not compared with its queues, and without `probes`
                nothing is measured.

        Raises:
            FairlaneError: NO_TOPOLOGY without both; BAD_FILE when the topology cannot have what is remembered.
        """
        super().__init__(run, probes=probes)
        self.listens, self.checks_counts, self.plan = probes or plan is None, plan is None, plan or self._in_force()

    def refresh(self, controls: Mapping[str, GfrControl]) -> None:
        """With the configuration that is remembered now."""
        del controls
        self.plan = self._in_force()

    def _in_force(self) -> GfrPlan:
        return cast("GfrPlan", self.program.plan(Config(), self.run))
