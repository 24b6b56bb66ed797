# SPDX-License-Identifier: Apache-2.0
"""Which VCs are active, and N, w_i and weights kept current by it: a tracker that decides and a control that reads and writes.

Where the configuration lets it (`follow_capacity`), C_GFR, LBO and HBO are kept to what the line really drains (`line.py`).

A VC is active on an egress port when frames of it arrived there within the last T_active. The agent reads the direct
counters of `vc_share` once a second; where the active VCs have changed it writes that port's N and shares in one batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from fairlane import Session, SwitchControl, apply_plan, enable_digest, load_program, runs_program
from fairlane.measure import LinkChange, OccupancyKeeper, listen_probes, send_probes
from fairlane.switch import (
    ChangeSet,
    Entries,
    SwitchClient,
    apply,
    difference,
    entity_key,
    entries_by_key,
    open_ports,
    sort_entries,
)
from fairlane.text import counted, format_rate
from finsy import P4TableAction, P4TableEntry

from . import names as program
from .config import PortConfig
from .entries import port_entries, port_shares
from .line import DIFFERS, DIGEST_REPORT, MAX_AGE_S, MIN_COUNT, LineMeter, listen_reports, scale_to_capacity
from .paths import Place, vcs_of
from .plan import GfrPlan

if TYPE_CHECKING:
    from .topology import GfrTopology

VcOnPort = tuple[int, int]
"""(egress port, VC id)."""


@dataclass(frozen=True)
class ActivityOptions:
    """When a VC counts, and what is measured."""

    period_s: float = 1.0
    "Between two reads of the counters."
    active_s: float = 2.0
    "T_active: a VC without an arrival for so long is not active."
    measure: bool = True
    "Whether the drain rate of the lines, tau and the VCs' service rates are measured."
    probes: bool = True
    "Whether the links are probed for tau, where `measure`."
    keeps_counts: bool = True
    "Whether what the switch counts as waiting is compared with its queues (`measure/occupancy.py`)."
    max_measured_vcs: int = 256
    "With more VCs on a switch their service rates are not read."


class ActivityTracker:
    """Arrival counters over time to the VCs that are active; no clock and no switch of its own."""

    def __init__(self, active_s: float) -> None:
        self.active_s = active_s
        self._seen_s: dict[VcOnPort, float] = {}
        self._counts: dict[VcOnPort, int] = {}

    def observe(self, now_s: float, counts: Mapping[VcOnPort, int]) -> None:
        """Frames that have arrived so far. One that is new here counts as active from now on until T_active has passed:
        better N a little too large for a moment than a VC without its share."""
        for key, packets in counts.items():
            if self._counts.get(key) != packets:
                self._seen_s[key] = now_s
        for key in self._seen_s.keys() - counts.keys():
            del self._seen_s[key]
        self._counts = dict(counts)

    def active(self, now_s: float) -> set[VcOnPort]:
        """Those that had an arrival within T_active."""
        return {key for key, seen_s in self._seen_s.items() if now_s - seen_s < self.active_s - 1e-9}


class GfrControl(SwitchControl):
    """Keeps one switch current; when it ends, the switch keeps what it has."""

    topology: GfrTopology

    def __init__(self, session: Session, topology: GfrTopology) -> None:
        super().__init__(session, topology)
        self._tracker = ActivityTracker(self._options.active_s)
        self._active: dict[int, frozenset[str]] = {}
        self._lines: dict[int, LineMeter] = {}
        self._capacity_bps: dict[int, float] = {}
        "What the line of a port drains, where that is in force instead of its configured capacity."
        self._reported_bps: dict[int, float] = {}
        self._is_stale = False
        "Somebody else has written entries since the last look."

    @property
    def plan(self) -> GfrPlan:
        """What is in force."""
        return self.topology.plan

    @property
    def _options(self) -> ActivityOptions:
        return self.topology.options

    @property
    def _name(self) -> str:
        return self.session.endpoint.name

    # ---- life ------------------------------------------------------------------------------------------------

    def entries_after_restart(self) -> list[P4TableEntry]:
        """The plan's; every VC counts as active."""
        return sort_entries(self.plan.entries(self._name), program.TABLES)

    async def observe(self, client: SwitchClient) -> None:
        """A dry run tells what would be written."""
        if self.session.dry_run and runs_program(program.PROGRAM, client.table_names()):
            await self.keep(client)

    async def take_over(self, client: SwitchClient) -> None:
        """Write what differs from the plan."""
        async with self.session.writes:
            applied = await self._reconcile(client)
        ports = [p.port for p in self._ports()]
        self.session.event(
            "gfr_took_over",
            written=applied,
            ports=ports,
            why=f"we are the primary controller: {counted(applied, 'entry')} of ports {ports} differed from the configuration",
        )

    def jobs(self, client: SwitchClient) -> list[Coroutine[Any, Any, Any]]:
        """Look at the VCs' counters; measure the lines."""
        jobs: list[Coroutine[Any, Any, Any]] = [self._keep_forever(client)]
        if self._options.measure:
            jobs.append(self._listen_reports(client))
            if self._options.probes:
                jobs += [send_probes(client, self._managed_lines), listen_probes(client, self.line)]
        if self._options.keeps_counts:
            open_queues = partial(open_ports, self.session.endpoint, self.topology.run)
            keeper = OccupancyKeeper(program.COUNTED, open_queues, self.session.event)
            jobs.append(keeper.keep_forever(client, lambda: [port.port for port in self._ports()]))
        return jobs

    async def _listen_reports(self, client: SwitchClient) -> None:
        await enable_digest(self.session, client, DIGEST_REPORT)
        await listen_reports(client, self.line)

    async def _keep_forever(self, client: SwitchClient) -> None:
        while True:
            async with self.session.writes:
                await self.keep(client)
            await asyncio.sleep(self._options.period_s)

    # ---- what it does --------------------------------------------------------------------------------------------

    async def keep(self, client: SwitchClient, now_s: float | None = None) -> bool:
        """Read the counters once and write what has changed by them; returns whether something had to be written.

        `now_s` None: by the running loop's clock.
        """
        now_s = asyncio.get_running_loop().time() if now_s is None else now_s
        entries = await client.read_table(program.TABLE_VC_SHARE, counters=True)
        self._tracker.observe(now_s, arrivals(entries))
        active = self._tracker.active(now_s)
        names = {number: name for name, number in self.plan.state.allocation.vc_ids.items()}
        now_active = {
            port.port: frozenset(names[vc] for number, vc in active if number == port.port and vc in names)
            for port in self._ports()
        }
        await self._measure_services(client, now_s, entries, names)
        now_capacity = {
            port.port: bps for port in self._ports() if (bps := self._measured_bps(port, now_s)) is not None
        }
        moved = [port for port in now_active if now_capacity.get(port) != self._capacity_bps.get(port)]
        changed = [
            port for port in now_active if now_active[port] != self._active.get(port) or port in moved or self._is_stale
        ]
        is_stale, self._is_stale = self._is_stale, False
        before, self._active = self._active, now_active
        capacity_before, self._capacity_bps = self._capacity_bps, now_capacity
        if not changed and not is_stale:
            return False
        try:
            written = await self._write(client, changed, entries) if not is_stale else await self._reconcile(client) > 0
        except BaseException:
            self._active, self._capacity_bps, self._is_stale = before, capacity_before, True  # it is tried again
            raise
        for port in changed:
            if now_active[port] != before.get(port):
                self._tell(port, before.get(port, frozenset()))
        return written

    async def _reconcile(self, client: SwitchClient) -> int:
        """Have the switch have all that the plan says, and nothing else; returns how many entries changed."""
        if self.session.dry_run:
            return 0
        lines = {(self._name, port): bps for port, bps in self._capacity_bps.items()}
        plan = replace(self.plan, active=self.active_places(), lines=lines)
        return await apply_plan(client, load_program(program.PROGRAM), plan)

    async def _write(self, client: SwitchClient, ports: list[int], shares: list[P4TableEntry]) -> bool:
        if self.session.dry_run:
            return False
        crossing = vcs_of(self.plan.state.config, self.plan.run)
        wanted: list[P4TableEntry] = []
        for port in self._ports():
            if port.port in ports:
                vcs, allocation = crossing[port.place], self.plan.state.allocation
                wanted += port_entries(allocation, self._apply_measured_line(port), vcs, self._active[port.port])
        held: Entries = {entity_key(entry): entry for entry in shares}
        held |= {entity_key(entry): entry for entry in await client.read_table(program.TABLE_PORT_SCHEME)}
        by_key = entries_by_key(client, wanted)
        changes = difference({key: held[key] for key in by_key if key in held}, by_key, program.TABLES)
        await apply(ChangeSet({client.endpoint.name: changes}), {client.endpoint.name: client})
        return bool(changes)

    def use_options(self) -> None:
        """Look so often, and count a VC as active for so long, from now on."""
        self._tracker.active_s = self._options.active_s

    async def changed(self, client: SwitchClient) -> None:
        """The next look compares what the ports have with what they are to have."""
        del client
        self._is_stale = True

    def use_plan(self) -> None:
        """The plan of `topology` may be another one."""
        if self._active:
            self._active = {port.port: self._active.get(port.port, frozenset()) for port in self._ports()}

    def active_places(self) -> dict[Place, frozenset[str]] | None:
        """The active VCs of this switch's ports as far as they are known; None before the first look: all are."""
        if not self._active:
            return None
        return {(self._name, port): names for port, names in self._active.items()}

    def status(self) -> dict[str, Any]:
        """N and the shares of its ports."""
        crossing = vcs_of(self.plan.state.config, self.plan.run)
        ports: list[dict[str, Any]] = []
        for port in self._ports():
            names = self._active.get(port.port)
            shares = port_shares(self._apply_measured_line(port), crossing[port.place], names)
            ports.append(
                {
                    "port": port.port,
                    "capacity_bps": self._apply_measured_line(port).capacity,
                    "scheme": port.scheme.value,
                    "n": sum(share.active for share in shares),
                    "active": [share.vc for share in shares if share.active],
                    "w_bps": {share.vc: share.words.w for share in shares},
                }
            )
        return {"ports": ports}

    # ---- what is measured ----------------------------------------------------------------------------------------

    def line(self, number: int) -> LineMeter | None:
        """The meter of a managed port."""
        if number not in self._lines:
            port = next((port for port in self._ports() if port.port == number), None)
            if port is None:
                return None
            run = self.plan.run
            states = run.switch(self._name).ports if run is not None else ()
            layer = next((state.link_layer for state in states if state.port == number), "")
            tell = partial(self._link_changed, number)
            self._lines[number] = LineMeter(layer, port.capacity, tell)
        return self._lines[number]

    def _managed_lines(self) -> dict[int, LineMeter]:
        return {port.port: line for port in self._ports() if (line := self.line(port.port)) is not None}

    def _link_changed(self, number: int, change: LinkChange) -> None:
        self.session.event("link_changed", port=number, why=change.why, **change.to_json())

    def _apply_measured_line(self, port: PortConfig) -> PortConfig:
        """The port with the capacity that was measured of its line; unchanged when none was measured."""
        bps = self._capacity_bps.get(port.port)
        if bps is None:
            return port
        mcr = sum(vc.mcr for vc in vcs_of(self.plan.state.config, self.plan.run)[port.place])
        return scale_to_capacity(port, bps, mcr)

    def _measured_bps(self, port: PortConfig, now_s: float) -> float | None:
        """What should be in force instead of the configured capacity; None: nothing. An idle line keeps what it had."""
        line, held = self._lines.get(port.port), self._capacity_bps.get(port.port)
        rate = line.rate_bps(now_s) if line is not None else None
        if rate is None or rate.count < MIN_COUNT or rate.age_s > MAX_AGE_S:
            return held if port.follow_capacity else None
        differs = abs(rate.value / port.capacity - 1.0) > DIFFERS
        told = self._reported_bps.get(port.port, port.capacity)
        if abs(rate.value / told - 1.0) > DIFFERS:
            self._reported_bps[port.port] = rate.value if differs else port.capacity
            followed = (
                "C_GFR, LBO and HBO follow it" if port.follow_capacity else "the configuration does not follow it"
            )
            self.session.event(
                "gfr_capacity",
                port=port.port,
                measured_bps=rate.value,
                configured_bps=port.capacity,
                count=rate.count,
                age_s=round(rate.age_s, 3),
                followed=port.follow_capacity,
                why=f"the line drains {format_rate(rate.value)} while frames wait ({rate.count} reports), "
                f"configured are {format_rate(port.capacity)}: {followed}",
            )
        if not port.follow_capacity or not differs:
            return None
        return held if held is not None and abs(rate.value / held - 1.0) <= DIFFERS else rate.value

    async def _measure_services(
        self, client: SwitchClient, now_s: float, shares: Iterable[P4TableEntry], names: Mapping[int, str]
    ) -> None:
        """Bytes that each VC has had accepted, to its port's meter."""
        assignments: dict[int, tuple[int, str]] = {}
        for entry in shares:
            vc = names.get(int(entry["vc"]))
            if isinstance(entry.action, P4TableAction) and entry.action.name == program.ACTION_SET_SHARE and vc:
                assignments[int(entry.action.args["slot"])] = int(entry["egress_port"]), vc
        if not self._options.measure or not 0 < len(assignments) <= self._options.max_measured_vcs:
            return
        accepted = [verdict for verdict in program.Verdict if verdict.accepted]
        indices = {
            slot << 5 | clp << 4 | verdict: slot for slot in assignments for clp in (0, 1) for verdict in accepted
        }
        counts: dict[int, dict[str, int]] = {}
        for index, cell in (await client.read_counters(program.COUNTER_VERDICTS, indices)).items():
            port, vc = assignments[indices[index]]
            of_port = counts.setdefault(port, {})
            of_port[vc] = of_port.get(vc, 0) + cell.byte_count
        for number, of_port in counts.items():
            line = self.line(number)
            if line is not None:
                line.on_counts(now_s, of_port)

    def measurements(self) -> list[dict[str, Any]]:
        """One object a managed port."""
        now_s = asyncio.get_running_loop().time()
        return [
            {
                "port": number,
                "capacity_bps": self._apply_measured_line(port).capacity,
                **line.to_json(now_s),
            }
            for port in self._ports()
            for number, line in [(port.port, self.line(port.port))]
            if line is not None
        ]

    def _ports(self) -> list[PortConfig]:
        return [port for port in self.plan.state.config.ports if port.switch == self._name]

    def _tell(self, number: int, before: Iterable[str]) -> None:
        now, old = self._active[number], set(before)
        status = next(port for port in self.status()["ports"] if port["port"] == number)
        self.session.event(
            "gfr_active",
            port=number,
            n=status["n"],
            active=status["active"],
            started=sorted(now - old),
            stopped=sorted(old - now),
            w_bps=status["w_bps"],
            why=explain_activity(
                sorted(now - old),
                sorted(old - now),
                status["n"],
                {vc: status["w_bps"][vc] for vc in status["active"]},
                status["capacity_bps"],
                self._options.active_s,
            ),
        )


def arrivals(entries: Iterable[P4TableEntry]) -> dict[VcOnPort, int]:
    """Frames that arrived for each entry of `vc_share`, refused ones too."""
    found: dict[VcOnPort, int] = {}
    for entry in entries:
        if isinstance(entry.action, P4TableAction) and entry.action.name == program.ACTION_SET_SHARE:
            key = int(entry["egress_port"]), int(entry["vc"])
            found[key] = entry.counter_data.packet_count if entry.counter_data else 0
    return found


def explain_activity(
    started: list[str], stopped: list[str], n: int, w_bps: Mapping[str, int], capacity_bps: float, silent_s: float
) -> str:
    """The sentence of `gfr_active`: which VC began or fell silent, and what (3) makes of it."""
    parts: list[str] = []
    if started:
        parts.append(f"frames of {', '.join(started)} arrived")
    if stopped:
        parts.append(f"nothing of {', '.join(stopped)} arrived for {silent_s:g} s")
    shares = ", ".join(f"{vc} {format_rate(w)}" for vc, w in sorted(w_bps.items()))
    return (
        f"{' and '.join(parts) or 'first look'}: N is {n}, and (3) shares {format_rate(capacity_bps)} as "
        f"w_i = {shares or 'nobody'}"
    )
