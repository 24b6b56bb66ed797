# SPDX-License-Identifier: Apache-2.0
"""Options of a command that a model says: each field once, with its type and its help."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Annotated, Any, get_args, get_origin

import typer
from pydantic import BaseModel, BeforeValidator
from pydantic.fields import FieldInfo

from fairlane_controller.errors import unknown_name
from fairlane_controller.program.quantities import Quantity
from fairlane_controller.program.settings import Flag
from fairlane_controller.units import plain_value

Function = Callable[..., None]


def options_of(model: type[BaseModel]) -> Callable[[Function], Function]:
    """Give a command an option for each field of a model that a `Flag` annotates; help and type are the field's.

    The command has a parameter `changes`: the values that were given, by the names of their fields, as plain data that the model reads.
    """
    return with_options([*_options(model)])


def with_options(options: Sequence[inspect.Parameter]) -> Callable[[Function], Function]:
    """Give a command more options, behind its arguments: it gets the values of those that were given as `changes`."""

    def decorate(command: Function) -> Function:
        signature = inspect.signature(command, eval_str=True)
        own = [one for one in signature.parameters.values() if one.name != "changes"]
        arguments = [one for one in own if isinstance(get_args(one.annotation)[1], typer.models.ArgumentInfo)]
        whole = [*arguments, *options, *(one for one in own if one not in arguments)]

        @functools.wraps(command)
        def with_changes(**given: Any) -> None:
            values = {one.name: given.pop(one.name) for one in options}
            command(**given, changes={name: value for name, value in values.items() if value is not None})

        new = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in whole]
        setattr(with_changes, "__signature__", signature.replace(parameters=new))  # noqa: B010 - typer reads it
        return with_changes

    return decorate


def option(name: str, kind: Any, *names: str, **settings: Any) -> inspect.Parameter:
    """An option that may be left out, as a parameter of a command."""
    annotation = Annotated[kind | None, typer.Option(*names, **settings)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def flags_of(model: type[BaseModel]) -> Iterator[tuple[str, Flag]]:
    """The fields that are options, each with its `Flag`."""
    for name, field in model.model_fields.items():
        yield from ((name, one) for one in field.metadata if isinstance(one, Flag))


def _options(model: type[BaseModel]) -> Iterator[inspect.Parameter]:
    for name, flag in flags_of(model):
        field, names = model.model_fields[name], flag.names.split()
        kind, parser = _type_of(name, field, flag, names[0])
        doc = f"{field.description} Repeatable." if kind == list[str] else field.description
        yield option(name, kind, *names, help=doc, metavar=flag.metavar or None, parser=parser)


def _type_of(name: str, field: FieldInfo, flag: Flag, shown: str) -> tuple[Any, Callable[[str], Any] | None]:
    """The option's type, and what reads its text: a text that the model reads stays a text."""
    kind, *marks = [field.annotation, *field.metadata]
    if type(None) in get_args(kind):
        kind = get_args(kind)[0]
    if get_origin(kind) is Annotated:
        kind, *inner = get_args(kind)
        marks += inner
    if flag.parse is not None:
        read = flag.parse
        return (list[str] if get_origin(kind) is tuple else str), lambda text: read(text, shown)
    if isinstance(kind, type) and issubclass(kind, Enum):
        words = [str(one.value) for one in kind]
        return str, lambda text: _known(name.replace("_", " "), text, words)
    if any(isinstance(one, Quantity | BeforeValidator) for one in marks):
        return str, plain_value
    return (kind if kind in (bool, int, float) else str), None


def _known(what: str, word: str, words: Sequence[str]) -> str:
    if word not in words:
        raise unknown_name(what, word, words)
    return word
