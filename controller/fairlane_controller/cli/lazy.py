# SPDX-License-Identifier: Apache-2.0
"""Commands that are imported when they are called: the list and `fairlane -h` need their names and one sentence only."""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import typer
from typer.core import TyperCommand

from fairlane_controller.cli.conventions import App, Group

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What typer raises for a command line that it cannot read; it has no public name there."""

_SUGGESTION = re.compile(r"\. Did you mean '([^']+)'.*\?$")


@dataclass(frozen=True)
class LazyCommand:
    """One command of the list."""

    name: str
    target: str
    "`module:object`: a function (one command) or a `typer.Typer` (a group)."
    summary: str
    "One sentence for the list; the command's own help says more."
    panel: str
    load: Callable[[], Any] | None = None
    "Instead of importing `target`: how an entry point is loaded."

    def stub(self) -> TyperCommand:
        """What the list needs: name, sentence, panel."""
        return TyperCommand(self.name, help=self.summary, rich_help_panel=self.panel, callback=None)

    def command(self) -> Any:
        """Import it and make it a command of typer's."""
        if self.load is not None:
            found = self.load()
        else:
            module, _, attribute = self.target.partition(":")
            found = getattr(importlib.import_module(module), attribute)
        if not isinstance(found, typer.Typer):
            function, found = found, App(cls=None)
            found.command(self.name)(function)
        found._add_completion = False  # pyright: ignore[reportPrivateUsage]
        made = typer.main.get_command(found)
        made.name = self.name
        return made


class LazyGroup(Group):
    """A group that knows `LazyCommand`s beside its own commands; unknown names get the nearest one."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._lazy: dict[str, LazyCommand] = {}
        self._listing = False

    def add_lazy(self, commands: list[LazyCommand]) -> None:
        """Commands in the order of the list."""
        self._lazy.update({command.name: command for command in commands})

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - typer gives it
        """Names in the order of the list."""
        return [*self._lazy, *(name for name in self.commands if name not in self._lazy)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command itself, or in a list what stands for it."""
        lazy = self._lazy.get(cmd_name)
        if lazy is None:
            return super().get_command(ctx, cmd_name)
        return lazy.stub() if self._listing else lazy.command()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The list, without importing what is in it."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Names for the shell, without importing what they name."""
        self._listing = True
        try:
            return super().shell_complete(ctx, incomplete)
        finally:
            self._listing = False

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Raise with the nearest name when there is no such command."""
        self._check_name(ctx, args[0])
        return super().resolve_command(ctx, args)

    def _check_name(self, ctx: Any, name: str) -> None:
        names = self.list_commands(ctx)
        if name in names or name.startswith("-") or ctx.resilient_parsing:
            return
        near = difflib.get_close_matches(name.lower().replace("-", "_"), names, n=3, cutoff=0.6)
        near += difflib.get_close_matches(name.lower().replace("_", "-"), names, n=3, cutoff=0.6)
        starts = [other for other in names if other.startswith(name)]
        hints = list(dict.fromkeys([*starts, *near]))[:3]
        hint = f"did you mean {' or '.join(hints)}?" if hints else f"`{ctx.command_path} -h` lists the commands"
        ctx.fail(f"there is no command {name!r}; {hint}")


def lazy_app(commands: list[LazyCommand], **settings: Any) -> App:
    """A group of commands that are imported when they are called; its own callback may be registered later."""

    class Lazy(LazyGroup):
        def __init__(self, *args: Any, **settings: Any) -> None:
            super().__init__(*args, **settings)
            self.add_lazy(commands)

    app = App(cls=Lazy, **settings)
    app.callback()(_nothing)
    return app


def _nothing() -> None:
    pass


def usage_message(error: Exception) -> str:
    """typer's error in our form: what is wrong, what is near, where the help is."""
    message = cast("Any", error).format_message().strip().rstrip(".")
    message = message[:1].lower() + message[1:]
    message = _SUGGESTION.sub(lambda found: f"; did you mean {found[1]}?", message)
    message = message.replace("(Possible options: ", "(did you mean ").replace(
        "no such option: ", "there is no option "
    )
    message = " ".join(message.split())
    if message in ("there is no option -p", "there is no option --port"):
        message += ": a port is the first argument, e.g. s1:3"
    ctx = getattr(error, "ctx", None)
    if ctx is None or "`" in message:
        return message
    return f"{message}; see `{ctx.command_path} -h`"
