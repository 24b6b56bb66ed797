# SPDX-License-Identifier: Apache-2.0
"""Makes `fairlane_switch.link_model` of `link.schema.json`, which is made of the Rust code (crate traffic): `python setup/link_model.py`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "switch" / "fairlane_switch"
HEADER = '''\
# SPDX-License-Identifier: Apache-2.0
"""The model of a link. Made by setup/link_model.py of link.schema.json: do not edit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from fairlane_switch.link_series import Varying
'''
CONFIG = '    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)\n'


def schema() -> dict[str, Any]:
    """The schema of a direction's settings, times in µs."""
    return json.loads((FOLDER / "link.schema.json").read_text(encoding="utf-8"))


def model() -> str:
    """The text of the module."""
    properties = schema()["properties"]
    settings = '"""Some settings of a link, times in ms; what is None stays as it is."""'
    return "\n".join(
        (
            HEADER,
            f'\nclass LinkOptions(BaseModel):\n    """{schema()["title"]}"""\n\n{CONFIG}',
            *(_field(name, one, "int | float", repr(one["default"])) for name, one in properties.items()),
            f"\nclass LinkSettings(BaseModel):\n    {settings}\n\n{CONFIG}",
            *(_field(name, one, "float", "None") for name, one in _in_ms(properties)),
            "",
        )
    )


def _in_ms(properties: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, one in properties.items():
        if name.endswith("_us"):
            yield name.replace("_us", "_ms"), {**one, "maximum": one["maximum"] / 1000}
        else:
            yield name, one


def _field(name: str, one: Mapping[str, Any], number: str, default: str) -> str:
    kind = _kind(one, number)
    if "varies" in one:
        kind = f'Annotated[{kind}, Varying("{name}")]'
    optional = " | None" if default == "None" and "None" not in kind else ""
    return f'    {name}: {kind}{optional} = {default}\n    """{one["description"]}"""'


def _kind(one: Mapping[str, Any], number: str) -> str:
    """The Python type of a schema. A number that may be 0 beside its range is from 0 on: the wire refuses what lies between."""
    if "enum" in one:
        return f"Literal{one['enum']}"
    if "anyOf" in one:
        first, second = one["anyOf"]
        return _kind({**second, "minimum": 0}, number) if "const" in first else f"{_kind(first, number)} | None"
    kind = {"boolean": "bool", "integer": "int", "number": number, "string": "str"}[one["type"]]
    if "maximum" in one:
        return f"Annotated[{kind}, Field(ge={one['minimum']:.15g}, le={one['maximum']:.15g})]"
    return kind


if __name__ == "__main__":
    (FOLDER / "link_model.py").write_text(model(), encoding="utf-8")
    subprocess.run(["ruff", "format", "-q", FOLDER / "link_model.py"], check=True)
