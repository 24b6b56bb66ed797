# SPDX-License-Identifier: Apache-2.0
"""A setting of a link that is a function of time: a number that stands for it wherever Python computes, and the form that wire, switch and simulator read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlane_controller.documents import is_file, is_table
from fairlane_controller.errors import FairlaneError, bad_file, short
from fairlane_controller.state.files import read_text
from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

FILE_KEYS = ("steps", "values", "trace", "attenuation", "modcod")
"""Keys whose values are files where they are texts."""


class Series(float):
    """A function of time. As a number it is the least delay, the largest jitter, or the mean of a rate or a loss."""

    form: Mapping[str, Any]
    """As `link.schema.json` has it; its values are in ms and bit/s."""

    def __new__(cls, number: float, form: Mapping[str, Any]) -> Series:
        """A series for which `number` stands."""
        made = super().__new__(cls, number)
        made.form = form
        return made

    def __bool__(self) -> bool:
        """True: there is something."""
        return True

    def __getnewargs__(self) -> tuple[Any, ...]:
        """For copies and other processes."""
        return float(self), self.form

    def __str__(self) -> str:
        """Its form."""
        return json.dumps(self.form)


def form_of(value: Any) -> Any:
    """A setting as it was given: the form of a series, any other value itself."""
    return value.form if isinstance(value, Series) else value


_PER_S = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def times_in(unit: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings whose times (`delay_ms`, `at_s`) are whole numbers of `unit`, and named by it (`delay_us`, `at_us`); the form of a series stays."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        stem, _, given = name.rpartition("_")
        if given in _PER_S and not stem.endswith("_per"):
            name, factor = f"{stem}_{unit}", _PER_S[unit] / _PER_S[given]
            if isinstance(value, Series):
                value = Series(value * factor, value.form)
            elif not is_table(value):
                value = round(value * factor)
        found[name] = value
    return found


def native() -> Any:
    """The module `fairlane_switch.native`, which knows what a link can be. Raises FairlaneError BAD_FILE where it is not built."""
    try:
        from fairlane_switch import native
    except ImportError:
        raise bad_file("the simulator's module, which checks the settings of links, is not built: make setup") from None
    return native


def read_series(setting: str, form: Mapping[str, Any], *folders: Path) -> Series:
    """The series of a setting such as `delay_us`; files with relative names are in the first of `folders` that has them.

    Raises:
        ValueError: with what is wrong and what is allowed.
        FairlaneError: as `native`.
    """
    for key in FILE_KEYS:
        if isinstance(name := form.get(key), str) and name:
            found = next((path for folder in folders if is_file(path := folder / name)), Path(name))
            form = {**form, key: str(found)}
    if "attenuation" in form:
        form = _coded(form, is_loss=setting == "loss")
    scale = 1000 if setting.endswith("_ms") else 1
    return Series(native().number_of(setting.replace("_ms", "_us"), json.dumps(form)) / scale, form)


_RAIN = {"attenuation", "modcod", "clear_sky_db", "symbol_rate", "loop_s"}


def _coded(form: Mapping[str, Any], *, is_loss: bool) -> Mapping[str, Any]:
    """Rain by OpenSAND's files as steps: the rate of the best coding (DVB-S2 ACM) for the attenuation of `loop_s` before; or its loss, which is 1
    where that coding needs a better signal than there is.
    """
    if missing := _RAIN - {*form, "loop_s"}:
        raise ValueError(f"attenuation: {', '.join(sorted(missing))} is missing")
    for key in sorted(form.keys() & _RAIN):
        value, is_name = form[key], key in FILE_KEYS
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
        if not (isinstance(value, str) if is_name else is_number):
            raise ValueError(f"{key}: {short(repr(value))} is not {'the name of a file' if is_name else 'a number'}")
    clear_db, symbols, loop_s = (float(form.get(key, 0)) for key in ("clear_sky_db", "symbol_rate", "loop_s"))
    fades, codings = _rows(form["attenuation"], 0), _rows(form["modcod"], 3)

    def signal_db(t_s: float) -> float:
        return clear_db - next((fade_db for at_s, fade_db in reversed(fades) if at_s <= t_s), fades[0][1])

    def step(t_s: float) -> list[float]:
        possible = [coding for coding in codings if coding[1] <= signal_db(t_s - loop_s)]
        bits, needed_db = max(possible, default=(0.0, float("-inf")))
        return [t_s, float(needed_db > signal_db(t_s)) if is_loss else bits * symbols]

    times = sorted({at_s + late_s for at_s, _ in fades for late_s in (0, loop_s)})
    return {"steps": [step(t_s) for t_s in times], **{key: form[key] for key in form.keys() - _RAIN}}


def _rows(path: str, first: int) -> list[tuple[float, float]]:
    """Two columns of one of OpenSAND's files."""
    found: list[tuple[float, float]] = []
    try:
        lines = read_text(Path(path)).splitlines()
    except FairlaneError as error:
        raise ValueError(error.message) from None
    for number, line in enumerate(lines, start=1):
        if line.strip() and not line.lstrip().startswith(("#", "/")) and "=" not in line:
            try:
                one, two = line.split()[first : first + 2]
                found.append((float(one), float(two)))
            except ValueError:
                raise ValueError(
                    f"{path}: line {number}: {line:.40} has no two numbers from column {first + 1} on"
                ) from None
    if not found:
        raise ValueError(f"{path}: has no line with numbers")
    return found


@dataclass(frozen=True)
class Varying:
    """Marks a number that may be a function of time, for pydantic."""

    setting: str
    """Its key in `link.schema.json`, or that with ms for µs."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A number as before, or a form."""

        def read(value: Any, check: core_schema.ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
            if is_table(value):
                folders: tuple[Path, ...] = getattr(info.context, "folders", ())
                return read_series(self.setting, value, *folders)
            return value if isinstance(value, Series) else check(value)

        as_given = core_schema.plain_serializer_function_ser_schema(form_of)
        return core_schema.with_info_wrap_validator_function(read, handler(source), serialization=as_given)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The number's schema, or an object."""
        return {"anyOf": [handler(schema), {"type": "object"}]}
