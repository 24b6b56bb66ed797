# SPDX-License-Identifier: Apache-2.0
"""Conventions of every command: all helps have one layout."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args

import typer

Function = Callable[..., Any]


class App(typer.Typer):
    """A group of commands that follow the conventions; with `cls=None` one command."""

    def __init__(self, **settings: Any) -> None:
        usual: dict[str, Any] = {"no_args_is_help": True, "add_completion": False}
        usual["context_settings"] = {"help_option_names": ["-h", "--help"]}
        super().__init__(**{**usual, **settings})

    def command(self, name: str | None = None, help: str | None = None, **settings: Any) -> Function:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Register a function as a command.

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
            signature = inspect.signature(function, eval_str=True)
            for one in signature.parameters.values():
                kind, *marks = get_args(one.annotation) or (None,)
                for mark in marks if kind is bool else ():
                    mark.metavar = ""  # typer has <bool>, as if a flag took a value
            if inspect.isfunction(function):
                setattr(function, "__signature__", signature)  # noqa: B010 - typer reads it
            typer_register(**settings)(function)
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


def _filled(paragraph: str) -> str:
    """A paragraph without the line breaks of the source; each example has a line of its own."""
    text = " ".join(paragraph.split())
    title, colon, rest = text.partition(": ")
    if colon and title in ("Example", "Examples"):
        return "\n".join([f"{title}:", *(f"  {one.strip('`')}" for one in rest.split("`, `"))])
    return text
