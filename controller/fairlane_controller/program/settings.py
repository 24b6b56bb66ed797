# SPDX-License-Identifier: Apache-2.0
"""Base classes of what a program can be set to: a port, sections of `fairlane.toml`, options of the control loop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A frozen table of `fairlane.toml`; unknown keys are refused, a docstring under a field is its description."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, use_attribute_docstrings=True, defer_build=True
    )

    def plain(self) -> dict[str, Any]:
        """The values as JSON has them, by the keys of the file, without those that were not given."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class Settings(Section):
    """What one managed port can be set to: TOML (`[[ports]]`), JSON Schema, topology files, CLI and lab come from this alone."""


@dataclass(frozen=True)
class Flag:
    """The option of commands that sets a field; it annotates the field: `limit: Annotated[Packets, Flag("--limit", "PACKETS")] = 10`.

    The option's help is the field's docstring, its type the field's.
    """

    names: str
    "Its names as typer has them, with blanks between: `--weight -w`; of a yes or no `--up/--down`."
    metavar: str = ""
    parse: Callable[[str, str], Any] | None = None
    "The field's value, or of a tuple one of its values, of the text and the option's name; None: the model reads the text."
