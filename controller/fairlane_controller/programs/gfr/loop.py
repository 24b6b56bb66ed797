# SPDX-License-Identifier: Apache-2.0
"""`fairlane run` on a topology of `gfr.p4`: an activity agent a switch, and the control socket through which people change VCs.

The lock, the socket and the event log are those of the Qthresh loop: one loop a topology.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fairlane_controller.config.loop_options import activity_options, loop_of_activity
from fairlane_controller.config.model import LoopConfig
from fairlane_controller.config.reload import OPS as CONFIG_OPS
from fairlane_controller.config.reload import ConfigService
from fairlane_controller.errors import ErrorCode, FairlaneError, unknown_name
from fairlane_controller.loop.events import EVENTS_FILE, EventLog
from fairlane_controller.loop.roles import FolderRole, Role
from fairlane_controller.loop.run import lead_all, run_agents, tell_ready, until_signalled
from fairlane_controller.programs.gfr.activity import ActivityAgent, ActivityOptions
from fairlane_controller.programs.gfr.deploy import deploy_to, make_plan
from fairlane_controller.programs.gfr.edit import OPS, apply_edit, in_words, source_of
from fairlane_controller.programs.gfr.paths import Place
from fairlane_controller.programs.gfr.setup import plan_in_force, set_up_gfr
from fairlane_controller.programs.gfr.store import GfrStore
from fairlane_controller.state.locks import change_lock
from fairlane_controller.state.run_state import RunState
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.setup import endpoint_of, pipeline_of
from fairlane_controller.units import counted
from fairlane_controller.verbs.updates import serve_write


class GfrLoop:
    """The agents of one topology and the configuration that they keep."""

    def __init__(
        self,
        run: RunState,
        switches: Sequence[str] = (),
        options: ActivityOptions | None = None,
        event_log: Path | None = None,
        *,
        backup: bool = False,
        config: Path | None = None,
        loop_config: LoopConfig | None = None,
    ) -> None:
        """`switches` are those that it keeps, all when none is named; `backup`: as `FolderRole` has it;
        `config`: the file to watch, read once already into `loop_config`.

        Raises LOOP_RUNNING when a loop runs for the folder, BAD_FILE when what is remembered cannot be in force."""
        self.role = FolderRole(run.folder, backup=backup)
        self._run = run
        self._options = options or ActivityOptions()
        self._changes = asyncio.Lock()
        try:
            self._store = GfrStore(run.folder)
            plan = plan_in_force(self._store.state, run)
        except FairlaneError:
            self.role.close()
            raise
        self._log = EventLog(event_log or run.folder / EVENTS_FILE)
        self.agents = {
            switch.name: ActivityAgent(
                endpoint_of(switch), plan, self._log, self._options, restore_switch=self._restore_switch
            )
            for switch in run.switches
            if not switches or switch.name in switches
        }
        said = loop_config or loop_of_activity(self._options)
        self._config = ConfigService(
            run, self._log, self._use_loop, said, config, lambda: self.role.role is Role.PRIMARY
        )
        if loop_config is not None:
            self._use_loop(loop_config)
        if self.role.role is Role.BACKUP:
            for agent in self.agents.values():
                agent.stand_by()

    async def run(self, on_ready: Callable[[], None]) -> None:
        """Until cancelled; `on_ready` is called when every switch was taken over (as the backup: is looked at), or could not
        be for a while."""
        self._log.write("started", switches=sorted(self.agents), program="gfr", role=self.role.role.value)
        # A change without a loop may be on its way: what it leaves is taken over, and the next one finds the socket.
        guard = partial(change_lock, self._run.folder)
        people = self.role.serve(self.handle, self._status, self._lead, guard)
        try:
            ready = tell_ready(self.agents.values(), on_ready)
            await run_agents(self.agents.values(), [people, ready, self._config.watch()], self._log)
        finally:
            self.close()

    async def _lead(self, was_backup: bool) -> None:
        """This is the primary from now on: with the configuration that is remembered now."""
        self._store = GfrStore(self._run.folder)
        plan = plan_in_force(self._store.state, self._run)
        for agent in self.agents.values():
            agent.use(plan)
        if was_backup:
            self._log.close()  # the primary may have turned the file over: the next event opens the one of this name
            lead_all(self.agents.values(), self._log)

    def _use_loop(self, config: LoopConfig) -> None:
        self._options = activity_options(config, self._options)
        for agent in self.agents.values():
            agent.use_options(self._options)

    def _status(self) -> list[dict[str, Any]]:
        return [agent.status() for agent in self.agents.values()]

    async def handle(self, request: dict[str, Any]) -> Any:
        """One request of the control socket: an edit of the configuration, or `status`."""
        if request["op"] == "status":
            return self._status()
        if request["op"] == "measure":
            return [row for agent in self.agents.values() for row in agent.measurements()]
        if request["op"] in OPS:
            return await self.change(request)
        if request["op"] in CONFIG_OPS:
            return await self._config.handle(request)
        if request["op"] == "p4_write":
            return await self._write_raw(request)
        raise unknown_name("op", str(request["op"]), ("status", "measure", "p4_write", *OPS, *CONFIG_OPS))

    async def _write_raw(self, request: dict[str, Any]) -> dict[str, Any]:
        """Updates of what GFR does not keep (`verbs/updates.py`): the loop is the primary, so it writes them."""
        name = str(request["switch"])
        if name not in self.agents:
            raise unknown_name("switch", name, self.agents)
        async with self.agents[name].writes:
            done = await serve_write(self._connected(name), request)
        refused = f", {len(done['failed'])} refused by the switch" if done["failed"] else ""
        self._log.write(
            "changed",
            switch=name,
            written=done["written"],
            refused=len(done["failed"]),
            why=f"asked for by hand: {counted(done['written'], 'update')} of what the loop does not keep{refused}",
        )
        return done

    async def change(self, request: dict[str, Any]) -> dict[str, Any]:
        """One edit into all switches or none; returns entries written by switch."""
        async with self._changes:
            before = self._store.state
            config = apply_edit(before.config, request)
            try:
                plan = make_plan(config, before, time.time(), self._run, source_of(request))
            except FairlaneError as problem:
                raise in_words(problem, request, config.model_dump(mode="json")) from None
            async with contextlib.AsyncExitStack() as stack:
                for agent in self.agents.values():
                    await stack.enter_async_context(agent.writes)
                clients = [self._connected(name) for name in plan.switches]
                done = await deploy_to(plan, clients, self._store, self._active())
                for agent in self.agents.values():
                    agent.use(plan)
        written = {name: applied.written for name, applied in done.items()}
        source = source_of(request)
        self._log.write(
            "gfr_changed",
            request=request["op"],
            source=source,
            written=written,
            why=f"asked for by {request['op']} ({source}): {counted(sum(written.values()), 'entry')} on {', '.join(written) or 'no switch'}",
        )
        return {"written": written}

    def _active(self) -> dict[Place, frozenset[str]]:
        found: dict[Place, frozenset[str]] = {}
        for agent in self.agents.values():
            found |= agent.active_places() or {}
        return found

    def _connected(self, name: str) -> SwitchClient:
        agent = self.agents.get(name)
        if agent is None:
            ours = ", ".join(self.agents)
            raise FairlaneError(
                ErrorCode.BAD_INPUT,
                f"this needs a change of switch {name}, which the running loop does not keep (it keeps {ours})",
            )
        return agent.connected()

    async def _restore_switch(self, name: str, election_id: int | None) -> None:
        """A switch without a program was restarted: program, routes and VCs again."""
        state = self._run.switch(name)
        client = SwitchClient(
            endpoint_of(state),
            write=True,
            election_id=election_id,
            pipeline=pipeline_of(state),
            timeout_s=self._options.connect_timeout_s,
        )
        async with client:
            await set_up_gfr(client, state, self.agents[name].plan)

    def close(self) -> None:
        """Let the folder go; the switches keep everything."""
        self._log.close()
        self.role.close()


async def run_gfr_loop(
    run: RunState,
    switches: Sequence[str],
    on_ready: Callable[[], None],
    event_log: Path | None = None,
    *,
    options: ActivityOptions | None = None,
    backup: bool = False,
    config: Path | None = None,
    loop_config: LoopConfig | None = None,
) -> None:
    """Run the loop of a topology's `switches` until SIGTERM or SIGINT."""
    loop = GfrLoop(
        run, switches, event_log=event_log, options=options, backup=backup, config=config, loop_config=loop_config
    )
    await until_signalled(asyncio.ensure_future(loop.run(on_ready)))
