# SPDX-License-Identifier: Apache-2.0
"""What holds for every command: `s1:3` names a port, `-o` chooses the form of the output, helps look the same."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

import typer

from fairlane_controller.cli import output
from fairlane_controller.errors import ErrorCode, FairlaneError, unknown_name
from fairlane_controller.typed import typed

_PLACE = re.compile(r"(?P<switch>[A-Za-z_][A-Za-z0-9_.-]*):(?P<port>[A-Za-z0-9_.-]+)")
_OWN = "fairlane_controller."
"""Commands of this package print their tables by `output.print_table`, which knows all forms."""


def adopt(command: Any) -> None:
    """Make a command of typer's, and all below it, keep the conventions."""
    for param in command.params:
        _without_type(param)
    original: Callable[[Any], Any] = command.get_help_option

    def get_help_option(ctx: Any) -> Any:
        return _without_type(original(ctx))

    setattr(command, "get_help_option", get_help_option)  # noqa: B010 - of typer's object
    if command.help:
        command.help = "\n\n".join(_filled(part) for part in command.help.split("\n\n"))
    _rewrite(command)
    for below in getattr(command, "commands", {}).values():
        adopt(below)


def _rewrite(command: Any) -> None:
    """Give a command that has --json the option -o, and one that takes a port its name `s1:3`."""
    forms: tuple[str, ...] = ()
    if any("--json" in param.opts for param in command.params):
        own = str(getattr(command.callback, "__module__", "")).startswith(_OWN)
        forms = output.FORMS if own else ("table", "json")
        command.params.append(_form_option("|".join(forms)))
    places = any(param.name == "port" for param in command.params)
    if not (forms or places):
        return
    original: Callable[[Any, list[str]], list[str]] = command.parse_args

    def parse_args(ctx: Any, args: list[str]) -> list[str]:
        if places and not ctx.resilient_parsing:
            _check_place(command, args)
        words = list(_with_form(command, args, forms)) if forms else args
        return original(ctx, list(_with_switch(command, words)) if places else words)

    setattr(command, "parse_args", parse_args)  # noqa: B010 - of typer's object


def _form_option(forms: str) -> Any:
    """The option -o for the help; `_with_form` takes it off the command line."""

    def command(
        output: Annotated[str | None, typer.Option("--output", "-o", help="Form of the output.")] = None,
    ) -> None:
        del output

    app = typer.Typer(add_completion=False)
    app.command()(command)
    option = typer.main.get_command(app).params[0]
    option.expose_value, option.metavar = False, forms
    return option


def _with_form(command: Any, words: list[str], forms: Sequence[str]) -> Iterator[str]:
    """The command line with `--json` instead of `-o json`; wide and csv are set for `output`."""
    for option, value, raw in _options(command, words):
        if option != "output" or value is None:
            yield from raw
        elif value not in forms:
            raise unknown_name("form of output", value, list(forms))
        elif value == "json":
            yield "--json"
        else:
            output.use_form(value)


def _with_switch(command: Any, words: list[str]) -> Iterator[str]:
    """The command line with the switch and the number of a port `s1:3` apart. BAD_INPUT where a switch is named twice."""
    found = list(_options(command, words))
    by_position = next((param.name for param in command.params if param.param_type_name == "argument"), None)
    switch_first = by_position == "switch"
    named = any(option == "switch" for option, _, _ in found)
    seen = False
    for option, value, raw in found:
        place = None if seen else _PLACE.fullmatch(value or "")
        if place is None or option not in ("port", None) or (option is None and not _takes_place(command)):
            yield from raw
            continue
        seen = True
        if named:
            message = f"{value} names its switch: leave --switch out"
            raise FairlaneError(ErrorCode.BAD_INPUT, message)
        if option == "port":
            yield from ("--port", place["port"], "--switch", place["switch"])
        elif switch_first:
            yield from (place["switch"], place["port"])
        else:
            yield from (place["port"], "--switch", place["switch"])


def _check_place(command: Any, words: list[str]) -> None:
    """BAD_INPUT, with the line to type, where a port `s1:3` stands alone and the command has -p for it, or behind a -p that it has not."""
    found = list(_options(command, words))
    by_option = [
        str(min(p.opts, key=len)) for p in command.params if p.name == "port" and p.param_type_name == "option"
    ]
    at = next((i for i, (name, value, _) in enumerate(found) if name is None and _PLACE.fullmatch(value or "")), None)
    if at is None or any(name == "port" for name, _, _ in found):
        return
    place, before = found[at][2][0], found[at - 1][2][0] if at else ""
    if by_option:
        said, right = f"belongs behind {by_option[0]} here", [by_option[0], place]
    elif before in ("-p", "--port"):
        said, right = f"stands without {before} here", [place]
        found[at - 1] = (None, None, [])
    else:
        return
    found[at] = (None, place, right)
    line = [*shlex.split(typed())[: -len(words)], *(word for name, _, raw in found if name != "switch" for word in raw)]
    raise FairlaneError(ErrorCode.BAD_INPUT, f"the port {place} {said}: type `fairlane {shlex.join(line)}`")


def _takes_place(command: Any) -> bool:
    """Whether a port is an argument of the command."""
    return any(param.name == "port" and param.param_type_name == "argument" for param in command.params)


def _options(command: Any, words: list[str]) -> Iterator[tuple[str | None, str | None, list[str]]]:
    """The words of a command line: (name of the option or None, its value, the words themselves)."""
    by_option = {text: param for param in command.params for text in (*param.opts, *param.secondary_opts)}
    left = iter(words)
    for word in left:
        if word == "--":
            yield None, None, [word, *left]
            return
        text, equals, value = word.partition("=") if word.startswith("--") else (word, "", "")
        param = by_option.get(text)
        if param is None and word[:1] == "-" and word[1:2] not in ("", "-") and word[:2] in by_option and len(word) > 2:
            param, equals, value = by_option[word[:2]], "=", word[2:]  # -ojson
        if param is None or param.param_type_name == "argument":
            yield None, word, [word]
        elif equals or getattr(param, "is_flag", False):
            yield param.name, value, [word]
        else:
            following = next(left, None)
            yield param.name, following, [word] if following is None else [word, following]


def _without_type(param: Any) -> Any:
    """A flag's help stands alone: typer writes `<bool>` behind it as if it took a value."""
    if getattr(param, "is_bool_flag", False):
        setattr(param, "display_type_rich", _no_type)  # noqa: B010 - of typer's object
    return param


def _filled(paragraph: str) -> str:
    """Re-flow a paragraph, independent of the line breaks of the source; each example keeps a line of its own."""
    text = " ".join(paragraph.split())
    title, colon, rest = text.partition(": ")
    if colon and title in ("Example", "Examples"):
        return "\n".join([f"{title}:", *(f"  {one.strip('`')}" for one in rest.split("`, `"))])
    return text


def _no_type(ctx: Any) -> None:  # noqa: ARG001 - typer gives it
    return None
