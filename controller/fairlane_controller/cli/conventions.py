# SPDX-License-Identifier: Apache-2.0
"""What holds for every command: `-o` chooses the form of the output, helps look the same."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from fairlane_controller.cli.output import FORMS, use_form
from fairlane_controller.errors import unknown_name

CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"]}
_OWN = "fairlane_controller."
"""Commands of this package print their tables by `output.print_table`, which knows all forms."""


class App(typer.Typer):
    """A group of commands that keep the conventions; with `cls=None` one command."""

    def __init__(self, **settings: Any) -> None:
        usual: dict[str, Any] = {"cls": Group, "no_args_is_help": True, "add_completion": False}
        usual["context_settings"] = CONTEXT_SETTINGS
        super().__init__(**{**usual, **settings})

    def command(self, name: str | None = None, doc: str | None = None, **settings: Any) -> Callable[[Any], Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Register a function as a command; it gets the option -o where it has --json. `doc`: its help instead of its docstring."""
        register = super().command(name, cls=Command, **settings)
        return lambda function: (register(with_output(function, doc)), function)[1]

    def callback(self, **settings: Any) -> Callable[[Any], Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Register what the group itself does."""
        register = super().callback(**settings)
        return lambda function: (register(with_output(function)), function)[1]


class Command(TyperCommand):
    """A command whose help has no `<bool>` behind flags, as if they took a value."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters, the help option included."""
        return _without_type(super().get_params(ctx))


class Group(TyperGroup):
    """A group whose help has no `<bool>` behind flags."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters, the help option included."""
        return _without_type(super().get_params(ctx))


def _without_type(params: list[Any]) -> list[Any]:
    for param in params:
        if getattr(param, "is_bool_flag", False):
            param.metavar = ""
    return params


def with_output(function: Callable[..., Any], doc: str | None = None) -> Callable[..., Any]:
    """A command's function with the option -o, of which --json (the parameter `as_json`) is one form, and its help filled."""
    signature = inspect.signature(function, eval_str=True)
    parameters = [*signature.parameters.values()]
    has_forms = "as_json" in signature.parameters
    if has_forms:
        forms = FORMS if function.__module__.startswith(_OWN) else ("table", "json")
        option = Annotated[str, _output_option(forms)]
        parameters.append(
            inspect.Parameter("output", inspect.Parameter.KEYWORD_ONLY, default="table", annotation=option)
        )

    @functools.wraps(function)
    def command(*, output: str = "table", **given: Any) -> Any:
        if has_forms:
            use_form(output)
            given["as_json"] = given["as_json"] or output == "json"
        return function(**given)

    setattr(command, "__signature__", signature.replace(parameters=parameters))  # noqa: B010 - typer reads it
    doc = inspect.cleandoc(doc or function.__doc__ or "")
    command.__doc__ = "\n\n".join(_filled(part) for part in doc.split("\n\n"))
    return command


def _output_option(forms: tuple[str, ...]) -> Any:
    def known(text: str) -> str:
        if text not in forms:
            raise unknown_name("form of output", text, forms)
        return text

    return typer.Option(
        "--output",
        "-o",
        help=f"Form of the output: {', '.join(forms)}.",
        metavar="FORM",
        parser=known,
        show_default=False,
    )


def _filled(paragraph: str) -> str:
    """Re-flow a paragraph, independent of the line breaks of the source; each example keeps a line of its own."""
    text = " ".join(paragraph.split())
    title, colon, rest = text.partition(": ")
    if colon and title in ("Example", "Examples"):
        return "\n".join([f"{title}:", *(f"  {one.strip('`')}" for one in rest.split("`, `"))])
    return text
