# SPDX-License-Identifier: Apache-2.0
"""Which VCs are active, and N, w_i and weights kept current by it: a tracker that decides and an agent that reads and writes.

A VC is active on an egress port when frames of it arrived there within the last T_active. The agent reads the direct
counters of `vc_share` once a second; where the active VCs have changed it writes that port's N and shares in one batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from finsy import P4TableAction, P4TableEntry

from fairlane_controller.errors import FairlaneError
from fairlane_controller.gfr.apply import Held, difference, restore, wanted_by_key
from fairlane_controller.gfr.config import PortConfig
from fairlane_controller.gfr.deploy import Plan, apply_plan
from fairlane_controller.gfr.entries import port_entries, port_shares
from fairlane_controller.gfr.paths import Place, vcs_of
from fairlane_controller.loop import why
from fairlane_controller.loop.session import Log, SwitchSession
from fairlane_controller.switch import gfr_program as program
from fairlane_controller.switch.client import Endpoint, SwitchClient, entry_key

VcOnPort = tuple[int, int]
"""(egress port, VC id)."""


@dataclass(frozen=True)
class ActivityOptions:
    """When a VC counts, and how the agent reaches its switch."""

    period_s: float = 1.0
    "Between two reads of the counters."
    active_s: float = 2.0
    "T_active: a VC without an arrival for so long is not active."
    connect_timeout_s: float = 2.0
    retry_s: float = 0.2
    "Between two attempts to reach a switch that does not answer."


class ActivityTracker:
    """Arrival counters over time to the VCs that are active; no clock and no switch of its own."""

    def __init__(self, active_s: float) -> None:
        self._active_s = active_s
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
        return {key for key, seen_s in self._seen_s.items() if now_s - seen_s < self._active_s - 1e-9}


class ActivityAgent(SwitchSession):
    """Keeps one switch current until cancelled; when it ends, the switch keeps what it has.

    `restore_switch` is called with name and election id for a switch that has lost its program.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        plan: Plan,
        log: Log,
        options: ActivityOptions | None = None,
        client_factory: Callable[..., SwitchClient] = SwitchClient,
        restore_switch: Callable[[str, int], Awaitable[None]] | None = None,
    ) -> None:
        options = options or ActivityOptions()
        super().__init__(endpoint, log, options.connect_timeout_s, options.retry_s, client_factory)
        self.plan = plan
        self.writes = asyncio.Lock()
        "Held by whoever writes to the switch."
        self._options = options
        self._restore_switch = restore_switch
        self._tracker = ActivityTracker(self._options.active_s)
        self._active: dict[int, frozenset[str]] = {}

    # ---- life ------------------------------------------------------------------------------------------------

    async def _restore(self, client: SwitchClient) -> None:
        if self._restore_switch is None:
            return
        await client.close()
        await self._restore_switch(self.endpoint.name, self._election_id)
        self._event(
            "restored", why="the switch had no program, so it has restarted: it got program, routes and VCs again"
        )
        await client.__aenter__()

    async def _take_over(self, client: SwitchClient) -> None:
        async with self.writes:
            applied = await apply_plan(client, self.plan, self.active_places())
        ports = [p.port for p in self._ports()]
        self._event(
            "gfr_took_over",
            written=applied.written,
            ports=ports,
            why=f"we are the primary controller: {applied.written} entries of ports {ports} differed from the configuration",
        )

    async def _serve(self, client: SwitchClient) -> None:
        await self._serve_together(client, [self._keep_forever(client)])

    async def _keep_forever(self, client: SwitchClient) -> None:
        while True:
            async with self.writes:
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
        changed = [port for port in now_active if now_active[port] != self._active.get(port)]
        before, self._active = self._active, now_active
        if not changed:
            return False
        try:
            written = await self._write(client, changed, entries)
        except BaseException:
            self._active = before  # it is tried again
            raise
        for port in changed:
            self._tell(port, before.get(port, frozenset()))
        return written

    async def _write(self, client: SwitchClient, ports: list[int], shares: list[P4TableEntry]) -> bool:
        crossing = vcs_of(self.plan.state.config, self.plan.run)
        wanted: list[P4TableEntry] = []
        for port in self._ports():
            if port.port in ports:
                vcs, allocation = crossing[port.place], self.plan.state.allocation
                wanted += port_entries(allocation, port, vcs, self._active[port.port])
        held: Held = {entry_key(entry): entry for entry in shares}
        held |= {entry_key(entry): entry for entry in await client.read_table(program.TABLE_PORT_SCHEME)}
        by_key = wanted_by_key(client, wanted)
        updates = difference({key: held[key] for key in by_key if key in held}, by_key).updates
        try:
            await client.write(updates)
        except FairlaneError as problem:
            await restore(client, held, problem, (program.TABLE_VC_SHARE, program.TABLE_PORT_SCHEME))
            raise
        return bool(updates)

    def use(self, plan: Plan) -> None:
        """From now on another configuration, which the switch has already; call it with `writes` held."""
        self.plan = plan
        if self._active:
            self._active = {port.port: self._active.get(port.port, frozenset()) for port in self._ports()}

    def active_places(self) -> dict[Place, frozenset[str]] | None:
        """The active VCs of this switch's ports as far as they are known; None before the first look: all are."""
        if not self._active:
            return None
        return {(self.endpoint.name, port): names for port, names in self._active.items()}

    def status(self) -> dict[str, Any]:
        """What it knows, as plain data."""
        crossing = vcs_of(self.plan.state.config, self.plan.run)
        ports: list[dict[str, Any]] = []
        for port in self._ports():
            names = self._active.get(port.port)
            shares = port_shares(port, crossing[port.place], names)
            ports.append(
                {
                    "port": port.port,
                    "scheme": port.scheme.value,
                    "n": sum(share.active for share in shares),
                    "active": [share.vc for share in shares if share.active],
                    "w_bps": {share.vc: share.words.w for share in shares},
                }
            )
        error = self.last_error.to_json() if self.last_error else None
        return {"switch": self.endpoint.name, "connected": self.client is not None, "error": error, "ports": ports}

    def _ports(self) -> list[PortConfig]:
        return [port for port in self.plan.state.config.ports if port.switch == self.endpoint.name]

    def _tell(self, number: int, before: Iterable[str]) -> None:
        now, old = self._active[number], set(before)
        status = next(port for port in self.status()["ports"] if port["port"] == number)
        self._event(
            "gfr_active",
            port=number,
            n=status["n"],
            active=status["active"],
            started=sorted(now - old),
            stopped=sorted(old - now),
            w_bps=status["w_bps"],
            why=why.of_activity(
                sorted(now - old),
                sorted(old - now),
                status["n"],
                {vc: status["w_bps"][vc] for vc in status["active"]},
                next(port.capacity for port in self._ports() if port.port == number),
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
