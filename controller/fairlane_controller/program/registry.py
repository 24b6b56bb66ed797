# SPDX-License-Identifier: Apache-2.0
"""Finding programs: built in (folders of `fairlane_controller/programs`), installed (entry points of the group `fairlane.programs`,
`module:Class`), or in a folder that is named by its path."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from fairlane_controller.documents import is_file
from fairlane_controller.errors import ErrorCode, FairlaneError, bad_file, short, unknown_name
from fairlane_controller.logs import warn
from fairlane_controller.program import settings
from fairlane_controller.program.contract import Program
from fairlane_controller.program.names import BUILT_IN, built_in_names, installed_programs, program_names

PROGRAM_FILE = "program.py"
_MODELS = {"Settings": settings.Settings, "Sections": settings.Section, "LoopSettings": settings.Section}


def is_folder(name: str) -> bool:
    """Whether a program is named by its folder (`path/`, `./path`)."""
    return "/" in name or name.startswith(".")


def folder_of(name: str) -> Path:
    """The folder of a program.

    Args:
        name: A path, as a person wrote it.

    Raises:
        FairlaneError: BAD_FILE, no folder can have that name.
    """
    try:
        return Path(name).expanduser().resolve()
    except (OSError, ValueError, RuntimeError) as ex:  # `~` of nobody
        raise bad_file(f"{short(name)!r} is no program's folder: {ex}") from None


def check_folder(folder: Path) -> Path:
    """The file of a program's folder, which is not run.

    Raises:
        FairlaneError: BAD_FILE, there is none.
    """
    path = folder / PROGRAM_FILE
    if not is_file(path):
        raise bad_file(f"{folder} is no program's folder: it has no {PROGRAM_FILE}")
    return path


def load_program(name: str) -> Program:
    """The program of a name or in a folder; imported once.

    Args:
        name: `NAME`, `path/` or `./path`.

    Raises:
        FairlaneError: UNKNOWN_NAME with the nearest name, or BAD_FILE with what is wrong with the program.
    """
    return _load(str(folder_of(name)) if is_folder(name) else name)


@cache
def _load(name: str) -> Program:
    where = f"program {name!r}"
    if is_folder(name):
        where = str(check_folder(Path(name)))
    elif name in installed_programs():
        where += f" of {installed_programs()[name].value}"
    elif name not in built_in_names():
        raise ErrorCode.UNKNOWN_NAME(
            f"{unknown_name('program', name, program_names())}, or a folder, such as {short(name)}/"
        )
    try:
        found = _import(name)
        members = vars(found).values() if isinstance(found, ModuleType) else [found]
        programs = [one for one in members if _is_program(one, found)]
        if len(programs) != 1:
            raise TypeError(f"must define one subclass of fairlane.Program, not {len(programs)}")
        for model, base in _MODELS.items():
            if not issubclass(getattr(programs[0], model), base):
                raise TypeError(f"its {model} is no fairlane.{base.__name__}")
        program = programs[0]()
        if not isinstance(program.name, str):
            raise TypeError("its name is no text")
        return program
    except (Exception, SystemExit) as ex:
        raise bad_file(f"{where} cannot be used: {type(ex).__name__}: {ex}") from ex


def _import(name: str) -> Any:
    """The module of a program, or what its entry point names."""
    if name in built_in_names():
        return importlib.import_module(f"{BUILT_IN}.{name}.program")
    if name in installed_programs():
        return installed_programs()[name].load()
    suffix = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
    package = (
        f"fairlane_program_{Path(name).name}_{suffix}"  # the same in every process: its objects go from one to another
    )
    sys.modules[package] = ModuleType(package)
    sys.modules[package].__path__ = [name]
    return importlib.import_module(f"{package}.program")


def _is_program(one: Any, found: Any) -> bool:
    """Whether it is a subclass of `Program` that an entry point names, or that a module defines."""
    return isinstance(one, type) and issubclass(one, Program) and found in (one, sys.modules.get(one.__module__))


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
    """The programs that have names, without those that cannot be loaded."""
    return tuple(filter(None, map(_usable, program_names())))


def find_program(tables: Iterable[str], named: str = "") -> Program | None:
    """The program that a switch runs, by the tables of its contract.

    Args:
        tables: The switch's tables.
        named: The program that its topology names, which may be a folder. It is tried first, and no other one is loaded when it fits.

    Returns:
        The program; None: none of ours.
    """
    names, all_names = set(tables), program_names()
    first = [named] if is_folder(named) or named in all_names else []
    programs = filter(None, map(_usable, [*first, *all_names]))
    return next((one for one in programs if (one.tables or one.dynamic_tables) and not one.missing_table(names)), None)


def check_owned(program: Program | None, written: Iterable[str | None], where: str) -> None:
    """Check that a client may write tables beside a running loop.

    Args:
        program: The program of the switch.
        written: The tables.
        where: The switch, for the error.

    Raises:
        FairlaneError: LOOP_RUNNING, with the command to use, for a table that a running loop of the program reconciles.
    """
    owned: Mapping[str, str] = program.loop_tables if program is not None else {}
    for table in written:
        if table is not None and table in owned:
            raise ErrorCode.LOOP_RUNNING(
                f"the running control loop keeps the table {table} of {where}: {owned[table]}, or stop the loop first",
            )


def runs_program(name: str, tables: Iterable[str]) -> bool:
    """Whether a switch with these tables runs the program of that name."""
    return load_program(name).missing_table(tables) is None


def check_program(wanted: Program | str, tables: Iterable[str]) -> None:
    """Check that a switch runs a program.

    Args:
        wanted: The program, or its name.
        tables: The switch's tables.

    Raises:
        FairlaneError: WRONG_PROGRAM, with the program that it runs.
    """
    program, names = load_program(wanted) if isinstance(wanted, str) else wanted, set(tables)
    if program.missing_table(names) is not None:
        raise wrong_program(program.name, names)


def wrong_program(name: str, tables: Iterable[str]) -> FairlaneError:
    """The error WRONG_PROGRAM.

    Args:
        name: The program that a switch should run.
        tables: The switch's tables.
    """
    found = find_program(tables)
    text = f"the program on the switch is {found.name if found else 'another one'}, not {name}"
    hint = f"start the topology with the program {name}, and load it with `fairlane config init`"
    return ErrorCode.WRONG_PROGRAM(f"{text}: {hint}")
