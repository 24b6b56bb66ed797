# SPDX-License-Identifier: Apache-2.0
"""Commands that are imported when they are called: the list and `fairlane -h` need their names and one sentence only."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from fairlane_controller.cli.conventions import App
from fairlane_controller.errors import ErrorCode, FairlaneError

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What typer raises for a command line that it cannot read; it has no public name there."""


@dataclass(frozen=True)
class LazyCommand:
    """One command of the list."""

    name: str
    target: str
    "`module:object`, or `.module:object` of this package: a function (one command) or a `typer.Typer` (a group)."
    summary: str
    "One sentence for the list; the command's own help says more."
    panel: str
    "Heading of the list under which it stands."

    def load(self) -> Any:
        """Import the function or `typer.Typer`. Raises INTERNAL with what went wrong in its module."""
        module, _, attribute = self.target.partition(":")
        try:
            return getattr(importlib.import_module(module, __package__), attribute)
        except FairlaneError:
            raise
        except Exception as ex:
            raise ErrorCode.INTERNAL(f"the command {self.name!r} of {self.target} cannot be loaded: {ex}") from ex

    def command(self) -> Any:
        """Import it and make it a command of typer's. Raises as `load`."""
        found = self.load()
        if isinstance(found, typer.Typer):
            made = typer.main.get_group(found)
            made.name = self.name
            return made
        app = App(cls=None)
        app.command(self.name)(found)
        return typer.main.get_command(app)


def lazy_app(commands: list[LazyCommand], **settings: Any) -> App:
    """A group of commands that are imported when they are called; its own callback may be registered later.

    Args:
        commands: In the order of the list. `resolve_command` of the group imports them; its other methods see what the list needs.
        settings: Passed on to `typer.Typer`.
    """
    by_name = {one.name: one for one in commands}

    class Lazy(TyperGroup):
        def __init__(self, *args: Any, **settings: Any) -> None:
            super().__init__(*args, **settings)
            listed = {one.name: TyperCommand(one.name, help=one.summary, rich_help_panel=one.panel) for one in commands}
            self.commands = {**listed, **self.commands}

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            name, command, rest = super().resolve_command(ctx, args)
            return name, by_name[name].command() if name in by_name else command, rest

    app = App(cls=Lazy, **settings)
    app.callback()(lambda: None)
    return app


def usage_message(error: Exception) -> str:
    """One sentence of an error of typer's: what is wrong, what is near, where the help is."""
    message = " ".join(cast("Any", error).format_message().split()).rstrip(".")
    message = message[:1].lower() + message[1:]
    message = message.replace(": Value error, ", ": ", 1).replace(": Input should be", ": must be", 1)
    if re.match(r"no such option: -[0-9.]", message):
        message += " (a value that begins with - is read as an option; none may be negative)"
    ctx = getattr(error, "ctx", None)
    return message if ctx is None else f"{message}; see `{ctx.command_path} -h`"
