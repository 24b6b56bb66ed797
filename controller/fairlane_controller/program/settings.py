# SPDX-License-Identifier: Apache-2.0
"""Base classes of what a program can be set to: a port, sections of `fairlane.toml`, options of the control loop."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A frozen table of `fairlane.toml`; unknown keys are refused, a docstring under a field is its description."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, use_attribute_docstrings=True)


class Settings(Section):
    """What one managed port can be set to: TOML (`[[ports]]`), JSON Schema, topology files, CLI and lab come from this alone."""
