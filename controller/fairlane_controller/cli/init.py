# SPDX-License-Identifier: Apache-2.0
"""`fairlane config init`: program, routes, port limits and schemes from the run state into the switches."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, NamedTuple

import typer

from fairlane_controller import history
from fairlane_controller.cli.change import DryResult, print_dry
from fairlane_controller.cli.options import DryRunOption, JsonOption, StateOption, SwitchOption
from fairlane_controller.cli.output import print_json, say
from fairlane_controller.cli.targets import resolve
from fairlane_controller.cli.types import Seconds, time_option
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.program.registry import load_program
from fairlane_controller.program.setup import set_up_changes, set_up_program
from fairlane_controller.state.run_state import SwitchState
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.setup import endpoint_of, pipeline_of
from fairlane_controller.typed import typed
from fairlane_controller.units import counted

TIMEOUT = Seconds(15)


class _Done(NamedTuple):
    """What became of one switch."""

    result: dict[str, Any]
    "Of `set_up_program`; a dry run has none."
    plan: DryResult


def init_command(
    scheme: Annotated[
        str | None, typer.Option("--scheme", help="Scheme of all managed ports, where the program has schemes; default: as it is.")
    ] = None,
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
        raise ErrorCode.LOOP_RUNNING(
            f"a control loop runs for {run.name!r} and has set its switches up: stop it before `init`",
        )
    program = load_program(run.program)
    plan = program.initial_plan(run, scheme)
    states = [run.switch(e.name) for e in targets.endpoints]
    for one in states:
        pipeline_of(one).check()

    async def set_up(one: SwitchState) -> _Done | FairlaneError:
        endpoint, files = endpoint_of(one), pipeline_of(one)
        try:
            async with SwitchClient(endpoint, timeout_s=timeout) as client:
                loads = not client.has_pipeline or await client.cookie() != files.cookie()
                if dry_run and loads:
                    return _Done({}, DryResult(one.name, loads=True))
                if dry_run:
                    change = await set_up_changes(client, program, plan, one)
                    return _Done({}, DryResult(one.name, change.updates(one.name), client.switch.p4info))
            async with SwitchClient(endpoint, write=True, pipeline=files, timeout_s=timeout) as client:
                return _Done(await set_up_program(client, program, plan, one), DryResult(one.name, loads=loads))
        except FairlaneError as ex:
            return ex

    async def work() -> tuple[list[_Done], list[FairlaneError]]:
        async with history.changing(None if dry_run else run.folder, typed()) as made:
            found = await asyncio.gather(*map(set_up, states))
            done = [one for one in found if isinstance(one, _Done)]
            loaded = [one.plan.switch for one in done if one.plan.loads]
            # A program that was loaded cannot be taken back; a switch that failed is as it was.
            names = {one.plan.switch for one in done} if not loaded else ()
            made.undo = [step for step in made.undo if step["switch"] in names]
            if loaded:
                made.note = (
                    f"the program was loaded on {', '.join(loaded)}, and the entries and counters of the one before are gone: "
                    "start the topology with the other program and run `fairlane config init`"
                )
        return done, [one for one in found if isinstance(one, FairlaneError)]

    done, errors = asyncio.run(work())
    results = [one.result for one in done]
    if dry_run:
        print_dry([one.plan for one in done], as_json)
    elif as_json:
        print_json(results)
    else:
        for r in results:
            ports = ", ".join(map(str, r["managed_ports"])) or "none"
            routes, written = counted(r["routes"], "route"), counted(r["written"], "entry")
            say(f"{r['switch']}: {routes}, {program.ports_title}: {ports}; {written} written")
    if errors:
        text = "; ".join(error.message for error in errors)
        raise errors[0].code(f"{len(errors)} of {counted(len(states), 'switch')}: {text}")
