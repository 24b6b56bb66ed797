# SPDX-License-Identifier: Apache-2.0
"""Conventions of every command: `-o` chooses the form of the output, all helps have one layout."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, get_args

import typer

from fairlane_controller.cli.output import FORMS, use_form
from fairlane_controller.errors import unknown_name

Function = Callable[..., Any]


class App(typer.Typer):
    """A group of commands that follow the conventions; with `cls=None` one command."""

    def __init__(self, **settings: Any) -> None:
        usual: dict[str, Any] = {"no_args_is_help": True, "add_completion": False}
        usual["context_settings"] = {"help_option_names": ["-h", "--help"]}
        super().__init__(**{**usual, **settings})

    def command(self, name: str | None = None, help: str | None = None, **settings: Any) -> Function:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Register a function as a command, with the option -o where it has --json.

        Args:
            name: The command's name.
            help: Its help; default: the function's docstring.
            settings: Passed on to typer.
        """
        return self._register(super().command, help, name=name, **settings)

    def callback(self, **settings: Any) -> Function:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Register what the group itself does."""
        return self._register(super().callback, None, **settings)

    def _register(self, typer_register: Function, help: str | None, **settings: Any) -> Function:
        def register(function: Function) -> Function:
            if doc := help or function.__doc__:
                settings["help"] = "\n\n".join(map(_filled, inspect.cleandoc(doc).split("\n\n")))
            typer_register(**settings)(_with_output(function))
            return function

        return register


def option(name: str, kind: Any, *names: str, **settings: Any) -> inspect.Parameter:
    """An optional option, as a parameter of a command.

    Args:
        name: The parameter.
        kind: Type of its value.
        names: As typed: `--rate`.
        settings: Passed on to `typer.Option`.
    """
    annotation = Annotated[kind | None, typer.Option(*names, **settings)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def replace_parameter(
    command: Function, name: str, options: Sequence[inspect.Parameter], value: Callable[[Mapping[str, Any]], Any]
) -> Function:
    """A command that typer sees with several options in the place of one parameter.

    Args:
        command: Its parameters are annotated as typer's.
        name: The parameter that is replaced.
        options: Those that stand in its place.
        value: Makes the parameter's value of the values of the options.
    """
    signature = inspect.signature(command, eval_str=True)

    @functools.wraps(command)
    def replaced(**given: Any) -> Any:
        values = {one.name: given.pop(one.name) for one in options}
        return command(**given, **{name: value(values)})

    parameters = [
        new.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for one in signature.parameters.values()
        for new in (options if one.name == name else [one])
    ]
    setattr(replaced, "__signature__", signature.replace(parameters=parameters))  # noqa: B010 - typer reads it
    return replaced


def parse_word(what: str, words: Sequence[str]) -> Callable[[str], str]:
    """What reads one of several words; raises UNKNOWN_NAME with all of them."""

    def parse(text: str) -> str:
        if text not in words:
            raise unknown_name(what, text, words)
        return text

    return parse


def _with_output(function: Function) -> Function:
    """A command with `-o`, of which --json (the parameter `as_json`) is one form."""
    given = inspect.signature(function, eval_str=True).parameters
    for one in given.values():
        kind, *marks = get_args(one.annotation) or (None,)
        for mark in marks if kind is bool else ():
            mark.metavar = ""  # typer has <bool>, as if a flag took a value
    if "as_json" not in given:
        return function
    # Commands of this package print their tables by `output.print_table`, which knows all forms.
    forms = FORMS if function.__module__.startswith("fairlane_controller.") else ("table", "json")
    text = f"Form of the output: {', '.join(forms)}."
    parse = parse_word("form of output", forms)
    output = option("output", str, "--output", "-o", help=text, metavar="FORM", parser=parse)

    def as_json(values: Mapping[str, Any]) -> bool:
        use_form(values["output"] or "table")
        return values["as_json"] or values["output"] == "json"

    return replace_parameter(function, "as_json", [given["as_json"], output], as_json)


def _filled(paragraph: str) -> str:
    """A paragraph without the line breaks of the source; each example has a line of its own."""
    text = " ".join(paragraph.split())
    title, colon, rest = text.partition(": ")
    if colon and title in ("Example", "Examples"):
        return "\n".join([f"{title}:", *(f"  {one.strip('`')}" for one in rest.split("`, `"))])
    return text
