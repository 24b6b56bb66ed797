# SPDX-License-Identifier: Apache-2.0
"""`fairlane config init`: program, routes, port limits and schemes from the run state into the switches."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer

from fairlane_controller import history
from fairlane_controller.cli.change import DryResult, print_dry
from fairlane_controller.cli.options import DryRunOption, JsonOption, StateOption, SwitchOption
from fairlane_controller.cli.output import print_json, say
from fairlane_controller.cli.targets import resolve
from fairlane_controller.cli.types import Seconds, time_option
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.program.registry import load_program
from fairlane_controller.program.setup import set_up_program
from fairlane_controller.state.run_state import SwitchState
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.setup import SetupResult, endpoint_of, pipeline_of
from fairlane_controller.switch.updates import plain_change
from fairlane_controller.typed import typed
from fairlane_controller.units import counted

TIMEOUT = Seconds(15)


def init_command(
    scheme: Annotated[
        str | None, typer.Option("--scheme", help="Scheme of all managed ports, where the program has schemes; default: as it is.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Load the program anew: every entry and counter is lost.")] = False,
    timeout: Annotated[Seconds, time_option("--timeout", help="How long to wait for a switch.", at_least=0.1, at_most=600)] = TIMEOUT,
    dry_run: DryRunOption = False,
    state: StateOption = None,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Load the program and write routes, port limits and schemes (and what else the program has); what is right already is not touched.

    Examples: `fairlane config init --scheme drop_tail`, `fairlane config init -s s1 --dry-run`
    """
    targets = resolve(state, switch)
    run = targets.need_run()
    if targets.loop_folder is not None:
        raise FairlaneError(
            ErrorCode.LOOP_RUNNING,
            f"a control loop runs for {run.name!r} and has set its switches up: stop it before `init`",
        )
    program = load_program(run.program)
    plan = program.initial_plan(run, scheme)
    states = [run.switch(e.name) for e in targets.endpoints]
    for one in states:
        pipeline_of(one).check()

    async def dry(one: SwitchState) -> DryResult:
        async with SwitchClient(endpoint_of(one), timeout_s=timeout) as client:
            client.planned = []
            if await loads(client, one):
                return DryResult(one.name, loads=True)
            await set_up_program(client, program, plan, one)
            return DryResult(one.name, [plain_change(change) for change in client.planned], client.switch.p4info)

    async def loads(client: SwitchClient, one: SwitchState) -> bool:
        return force or not client.has_pipeline or await client.cookie() != pipeline_of(one).cookie()

    async def set_up_switch(one: SwitchState) -> tuple[SetupResult, bool]:
        files: dict[str, Any] = {"pipeline": pipeline_of(one), "force_pipeline": force, "timeout_s": timeout}
        async with SwitchClient(endpoint_of(one), timeout_s=timeout) as before:
            is_new = await loads(before, one)
        async with SwitchClient(endpoint_of(one), write=True, **files) as client:
            return await set_up_program(client, program, plan, one), is_new

    async def work() -> tuple[list[SetupResult], list[FairlaneError]]:
        async with history.changing(run.folder, typed()) as made:
            found = await asyncio.gather(*(set_up_switch(one) for one in states), return_exceptions=True)
            errors = [one for one in found if isinstance(one, FairlaneError)]
            for one in found:
                if isinstance(one, BaseException) and not isinstance(one, FairlaneError):
                    raise one
            done = [one for one in found if not isinstance(one, BaseException)]
            loaded = [result.switch for result, is_new in done if is_new]
            if loaded:
                made.undo = []
                made.note = (
                    f"the program was loaded on {', '.join(loaded)}, and the entries and counters of the one before are gone: "
                    "start the topology with the other program and run `fairlane config init`"
                )
            else:
                there = {result.switch for result, _ in done}
                made.undo = [step for step in made.undo if step["switch"] in there]
        return [result for result, _ in done], errors

    async def all_dry() -> list[DryResult]:
        return list(await asyncio.gather(*(dry(one) for one in states)))

    if dry_run:
        print_dry(asyncio.run(all_dry()), as_json)
        return
    results, errors = asyncio.run(work())
    if as_json:
        print_json([{"switch": r.switch, "routes": r.routes, "managed_ports": list(r.managed_ports), "written": r.entries_written} for r in results])  # fmt: skip
    for r in () if as_json else results:
        ports = ", ".join(map(str, r.managed_ports)) or "none"
        say(
            f"{r.switch}: {counted(r.routes, 'route')}, {program.ports_title}: {ports}; {counted(r.entries_written, 'entry')} written"
        )
    if errors:
        text = "; ".join(error.message for error in errors)
        raise FairlaneError(errors[0].code, f"{len(errors)} of {counted(len(states), 'switch')}: {text}")
