# SPDX-License-Identifier: Apache-2.0
"""Commands that edit the configuration of a program that is in force: objects with a name and settings, added, changed and removed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from pydantic import BaseModel

from fairlane_controller.cli.change import Planned, carry_out
from fairlane_controller.cli.conventions import App
from fairlane_controller.cli.model_options import options_of
from fairlane_controller.cli.options import DryRunOption, JsonOption, StateOption
from fairlane_controller.cli.output import print_json, print_table, say
from fairlane_controller.cli.targets import Targets, resolve
from fairlane_controller.config.compare import plan_on
from fairlane_controller.config.read import Loaded, Source, check, parse
from fairlane_controller.config.show import program_config, with_units
from fairlane_controller.documents import is_array, is_table
from fairlane_controller.errors import ErrorCode, FairlaneError, bad_input, find_by_name
from fairlane_controller.history.sites import Sites
from fairlane_controller.program.registry import load_program
from fairlane_controller.program.setup import change_set
from fairlane_controller.switch.updates import Plain
from fairlane_controller.units import counted

Edit = Callable[[Plain], None]
"""Changes the configuration in force, as plain data: `ports`, and the sections of its program."""
NameArgument = Annotated[str, typer.Argument(help="Its name.", metavar="NAME")]
NamesArgument = Annotated[list[str], typer.Argument(help="Their names.", metavar="NAME...")]


@dataclass(frozen=True)
class Objects:
    """Objects of a program, a list of its `Sections`, each with a `name`, and the commands that edit them.

    A command edits the configuration in force and puts it into all switches, or into none: checked as a file is, shown by
    `--dry-run`, taken back by `fairlane undo`. Its options are the fields of the model that a `Flag` annotates.
    """

    program: str
    field: str
    "Of the sections: `vcs`."
    model: type[BaseModel]
    title: str
    "Of one: `VC`."

    def app(self, help: str, **texts: str) -> App:
        """The commands `add`, `set`, `delete` and `list`; `texts`: what they are, for their help."""
        app, options = App(help=help), options_of(self.model)
        commands = {"add": options(self.add), "set": options(self.set), "delete": self.delete, "list": self.list_}
        for name, command in commands.items():
            app.command(name, texts.get(name))(command)
        return app

    def add(self, name: NameArgument, changes: Plain, dry_run: DryRunOption = False, state: StateOption = None, as_json: JsonOption = False) -> None:  # fmt: skip
        """Add one."""

        def edit(rows: list[Plain]) -> None:
            if any(one["name"] == name for one in rows):
                raise bad_input(f"there is a {self.title} {name!r} already: change it with `set`")
            rows.append({"name": name, **changes})

        self._make(state, edit, name, "added", dry_run=dry_run, as_json=as_json)

    def set(self, name: NameArgument, changes: Plain, dry_run: DryRunOption = False, state: StateOption = None, as_json: JsonOption = False) -> None:  # fmt: skip
        """Change one; what is not given stays."""
        need_changes("set", changes)

        def edit(rows: list[Plain]) -> None:
            self._find(rows, name).update(changes)

        self._make(state, edit, name, "changed", dry_run=dry_run, as_json=as_json)

    def delete(self, names: NamesArgument, dry_run: DryRunOption = False, state: StateOption = None, as_json: JsonOption = False) -> None:  # fmt: skip
        """Remove some."""

        def edit(rows: list[Plain]) -> None:
            for name in names:
                rows.remove(self._find(rows, name))

        self._make(state, edit, ", ".join(names), "removed", dry_run=dry_run, as_json=as_json)

    def list_(self, state: StateOption = None, as_json: JsonOption = False) -> None:
        """List those of the configuration in force."""
        rows = asyncio.run(self._in_force(self.targets(state)))[self.field]
        if as_json:
            print_json(rows)
            return
        names = [*self.model.model_fields]
        print_table(f"{self.title}s", names, [[_text(row.get(name)) for name in names] for row in with_units(rows)])

    # ---- any edit of the configuration in force ----------------------------------------------------------------------

    def targets(self, state: str | None) -> Targets:
        """The running topology; WRONG_PROGRAM when it runs another program."""
        targets = resolve(state, None)
        run = targets.need_run()
        if load_program(run.program).name != self.program:
            problem = f"the topology {run.name!r} runs the program {run.program!r}: {self.title}s need {self.program}"
            raise ErrorCode.WRONG_PROGRAM(problem)
        return targets

    def make(self, state: str | None, edit: Edit, source: str, done: str, *, dry_run: bool, as_json: bool) -> None:  # fmt: skip
        """Edit the configuration in force, put it into the switches, and print what was done.

        Args:
            state: The topology, as `--state` has it.
            edit: Changes the configuration; raises what is wrong with the command.
            source: What stands where a file's name stands in an error.
            done: What was done, in words.
            dry_run: Print what would be written, and write nothing.
            as_json: Print JSON.
        """

        async def plan(sites: Sites) -> Planned:
            data = await self._read(sites)
            edit(data)
            try:
                return await _planned(data, source, sites)
            except FairlaneError as ex:
                raise ex if ex.code is not ErrorCode.BAD_FILE else bad_input(ex.message) from None

        made = carry_out(self.targets(state), plan, dry_run=dry_run, as_json=as_json)
        if made is None:
            return
        planned, via = made
        if as_json:
            print_json({"written": planned.written, "via": via})
            return
        parts = ", ".join(f"{switch}: {counted(count, 'entry')}" for switch, count in planned.written.items())
        say(f"{done} ({parts or 'no switch concerned'})")

    def _make(self, state: str | None, edit: Callable[[list[Plain]], None], names: str, done: str, **how: bool) -> None:
        subject = f"{self.title} {names}"
        self.make(state, lambda data: edit(data[self.field]), subject, f"{subject} {done}", **how)

    def _find(self, rows: list[Plain], name: str) -> Plain:
        return find_by_name(self.title, name, {one["name"]: one for one in rows})

    async def _in_force(self, targets: Targets) -> Plain:
        async with Sites(targets.run, targets.endpoints) as sites:
            return await self._read(sites)

    async def _read(self, sites: Sites) -> Plain:
        """The configuration in force, as plain data."""
        return {self.field: [], **(await program_config(sites, sites.endpoints)).plain()}


async def _planned(data: Plain, source: str, sites: Sites) -> Planned:
    run = sites.run
    assert run is not None
    loaded = Loaded(parse({"program": run.program, **data}, Source(source)), Source(source))
    check(loaded, run)
    program = load_program(run.program)
    plan = await plan_on(program, loaded.config.part_of(program, run), sites)
    names = sites.endpoints if plan.concerned is None else plan.concerned
    changes = await change_set(program, plan, {name: await sites.reader(name) for name in names})
    return Planned(changes, plan.documents, plan.documents_back)


def _text(value: Any) -> Any:
    """`switch=s1,ingress_port=1; …` of a list of tables."""
    if is_array(value):
        return "; ".join(map(_text, value))
    return ",".join(f"{name}={one}" for name, one in value.items()) if is_table(value) else value


def need_changes(command: str, changes: Plain) -> None:
    """Raises BAD_INPUT for a command that changes nothing."""
    if not changes:
        raise bad_input(f"{command} needs at least one option of what to change (see --help)")
