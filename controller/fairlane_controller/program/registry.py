# SPDX-License-Identifier: Apache-2.0
"""Finding programs: built in (folders of `fairlane_controller/programs`), installed (entry points of the group `fairlane.programs`,
`module:Class`), or in a folder that is named by its path."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

from fairlane_controller.documents import is_file
from fairlane_controller.errors import ErrorCode, FairlaneError, short, unknown_name
from fairlane_controller.logs import warn
from fairlane_controller.program import settings
from fairlane_controller.program.contract import Program
from fairlane_controller.program.names import (
    BUILT_IN,
    built_in_names,
    command_groups,
    installed_programs,
    program_names,
)

PROGRAM_FILE = "program.py"
_MODELS = {"Settings": settings.Settings, "Sections": settings.Section, "LoopSettings": settings.Section}


def is_folder(name: str) -> bool:
    """Whether a program is named by its folder (`path/`, `./path`)."""
    return "/" in name or name.startswith(".")


def folder_of(name: str) -> Path:
    """The folder that names a program; BAD_FILE for a name that no folder can have."""
    try:
        return Path(name).expanduser().resolve()
    except (OSError, ValueError, RuntimeError) as ex:  # `~` of nobody
        raise FairlaneError(ErrorCode.BAD_FILE, f"{short(name)!r} is no program's folder: {ex}") from None


def load_program(name: str) -> Program:
    """The program of a name or in a folder (`path/`, `./path`); UNKNOWN_NAME, or BAD_FILE that says what is wrong with its folder."""
    return _from_folder(folder_of(name)) if is_folder(name) else _load_by_name(name)


@cache
def _usable(name: str) -> Program | None:
    """The program of a name or in a folder; None, after one warning, where it cannot be loaded: it breaks nothing but itself."""
    try:
        return load_program(name)
    except FairlaneError as ex:
        warn(f"{ex.message}; it is left out")
        return None


@cache
def loaded_programs() -> tuple[Program, ...]:
    """The programs that have names, but for those that cannot be loaded."""
    return tuple(one for name in program_names() if (one := _usable(name)) is not None)


def folder_program(name: str) -> tuple[Program, ...]:
    """The program of a folder, which no list of names has; none for a program with a name. Raises BAD_FILE."""
    return (load_program(name),) if is_folder(name) else ()


@cache
def _load_by_name(name: str) -> Program:
    if name in built_in_names():
        return _program_in(importlib.import_module(f"{BUILT_IN}.{name}.program"), name)
    point = installed_programs().get(name)
    if point is None:
        raise unknown_name("program", name, program_names())
    where = f"program {name!r} of {point.value}"
    try:
        found = point.load()
    except (Exception, SystemExit) as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"{where} cannot be loaded: {type(ex).__name__}: {ex}") from ex
    if not (isinstance(found, type) and issubclass(found, Program)):
        raise FairlaneError(ErrorCode.BAD_FILE, f"program {name!r}: {point.value} is no subclass of fairlane.Program")
    return _made(found, where)


def check_folder(folder: Path) -> Path:
    """The file of a program's folder, which is not run; BAD_FILE when there is none."""
    path = folder / PROGRAM_FILE
    if not is_file(path):
        raise FairlaneError(ErrorCode.BAD_FILE, f"{folder} is no program's folder: it has no {PROGRAM_FILE}")
    return path


@cache
def _from_folder(folder: Path) -> Program:
    path = check_folder(folder)
    place = hashlib.blake2b(str(folder).encode(), digest_size=8).hexdigest()
    package = f"fairlane_program_{folder.name}_{place}"  # the same in every process: its objects go from one to another
    sys.modules[package] = ModuleType(package)
    sys.modules[package].__path__ = [str(folder)]
    try:
        module = importlib.import_module(f"{package}.program")
    except (Exception, SystemExit) as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"{path}: {type(ex).__name__}: {ex}") from ex
    return _program_in(module, str(path))


def _program_in(module: ModuleType, where: str) -> Program:
    """An instance of the one subclass of `Program` that a module defines."""
    found = [
        one
        for one in vars(module).values()
        if isinstance(one, type) and issubclass(one, Program) and one.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise FairlaneError(
            ErrorCode.BAD_FILE, f"{where}: must define one subclass of fairlane.Program, not {len(found)}"
        )
    return _made(found[0], where)


def _made(found: type[Program], where: str) -> Program:
    """An instance; BAD_FILE when it does not keep to the contract in what all commands read of all programs."""
    try:
        for name, base in _MODELS.items():
            if not issubclass(getattr(found, name), base):
                raise TypeError(f"its {name} is no fairlane.{base.__name__}")
        if not isinstance(getattr(found, "name", None), str):
            raise TypeError("it has no name")
        return found()
    except Exception as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"{where} cannot be used: {type(ex).__name__}: {ex}") from ex


def find_program(tables: Iterable[str], named: str = "") -> Program | None:
    """The program that a switch with these tables runs, by the tables of its contract; None: none of ours.

    `named` is what its topology names, which may be a folder. It is looked at first, and no other one is loaded when it is that.
    """
    names = set(tables)
    programs = filter(None, map(_usable, _names_from(named)))
    return next((one for one in programs if (one.tables or one.dynamic_tables) and not one.missing_table(names)), None)


def _names_from(named: str) -> Iterator[str]:
    """The names of all programs, `named` first where it is a program's."""
    if is_folder(named) or named in built_in_names() or named in installed_programs():
        yield named
    yield from program_names()


def check_owned(program: Program | None, written: Iterable[str | None], where: str) -> None:
    """LOOP_RUNNING, with the command that changes it, when one of the `written` tables is one that a running loop of the program keeps."""
    kept: Mapping[str, str] = program.loop_tables if program is not None else {}
    for table in written:
        if table is not None and table in kept:
            raise FairlaneError(
                ErrorCode.LOOP_RUNNING,
                f"the running control loop keeps the table {table} of {where}: {kept[table]}, or stop the loop first",
            )


def runs_program(name: str, tables: Iterable[str]) -> bool:
    """Whether a switch with these tables runs the program of that name."""
    return load_program(name).missing_table(tables) is None


def check_program(wanted: Program | str, tables: Iterable[str]) -> None:
    """WRONG_PROGRAM, with what runs instead, unless a switch with these tables runs the program."""
    program, names = load_program(wanted) if isinstance(wanted, str) else wanted, set(tables)
    if program.missing_table(names) is not None:
        raise wrong_program(program.name, names)


def wrong_program(name: str, tables: Iterable[str]) -> FairlaneError:
    """WRONG_PROGRAM for a switch with these tables, which does not run the program of that name."""
    names = set(tables)
    missing, other = load_program(name).missing_table(names), find_program(names)
    if other is not None:
        folder = f".{other.name}.cli"
        command = next((name for name, (target, _) in command_groups().items() if folder in target), None)
        hint = f": see `fairlane {command}`" if command is not None else ""
        text = f"the program on the switch is {other.name}, not {name}{hint}"
    else:
        text = (
            f"the program on the switch has no table {missing!r}: it is not {name}; "
            f"start the topology with the program {name} and load it with `fairlane config init`"
        )
    return FairlaneError(ErrorCode.WRONG_PROGRAM, text)
