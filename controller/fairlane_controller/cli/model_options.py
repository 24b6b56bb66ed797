# SPDX-License-Identifier: Apache-2.0
"""Options of a command that a model describes: each field once, with its type and its help."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel, BeforeValidator

from fairlane_controller.cli.conventions import Function, option
from fairlane_controller.program.quantities import Quantity
from fairlane_controller.program.settings import Flag
from fairlane_controller.units import plain_value


def options_of(model: type[BaseModel]) -> Callable[[Function], Function]:
    """Give a command an option for each field of a model that a `Flag` annotates; help and type are the field's.

    The command has a parameter `changes`: the values that were given, by the names of their fields, as plain data that the model reads.
    """
    return with_options([*_options(model)])


def with_options(options: Sequence[inspect.Parameter]) -> Callable[[Function], Function]:
    """Give a command more options; its parameter `changes` gets the values of those that were given, by name."""
    return replacing("changes", options, lambda values, _: {n: one for n, one in values.items() if one is not None})


def replacing(
    name: str, options: Sequence[inspect.Parameter], value_of: Callable[[dict[str, Any], dict[str, Any]], Any]
) -> Callable[[Function], Function]:
    """Give a command options in place of one of its parameters.

    Args:
        name: The parameter.
        options: The options.
        value_of: Its value by the values of the options, and of the command's other parameters.
    """

    def decorate(command: Function) -> Function:
        signature = inspect.signature(command, eval_str=True)

        @functools.wraps(command)
        def replaced(**given: Any) -> Any:
            values = {one.name: given.pop(one.name) for one in options}
            return command(**given, **{name: value_of(values, given)})

        parameters = [
            new.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for one in signature.parameters.values()
            for new in (options if one.name == name else [one])
        ]
        setattr(replaced, "__signature__", signature.replace(parameters=parameters))  # noqa: B010 - typer reads it
        return replaced

    return decorate


def flags_of(model: type[BaseModel]) -> Iterator[tuple[str, Flag]]:
    """The fields that are options, each with its `Flag`."""
    for name, field in model.model_fields.items():
        yield from ((name, one) for one in field.metadata if isinstance(one, Flag))


def _options(model: type[BaseModel]) -> Iterator[inspect.Parameter]:
    for name, flag in flags_of(model):
        field, names = model.model_fields[name], flag.names.split()
        kind, parser = _type_of([field.annotation, *field.metadata], flag, names[0])
        doc = f"{field.description} Repeatable." if kind == list[str] else field.description
        yield option(name, kind, *names, help=doc, metavar=flag.metavar or None, parser=parser)


def _type_of(annotation: Sequence[Any], flag: Flag, shown: str) -> tuple[Any, Callable[[str], Any] | None]:
    """The option's type, and what reads its text: a text that the model reads stays a text."""
    kind, *marks = annotation
    if type(None) in get_args(kind):
        kind = get_args(kind)[0]
    if get_origin(kind) is Annotated:
        kind, *inner = get_args(kind)
        marks += inner
    if (read := flag.parse) is not None:
        return (list[str] if get_origin(kind) is tuple else str), lambda text: read(text, shown)
    if any(isinstance(one, Quantity | BeforeValidator) for one in marks):
        return str, plain_value
    return (kind if kind in (bool, int, float) else str), None
