# SPDX-License-Identifier: Apache-2.0
"""The JSON schema of `fairlane.toml`, for editors: taplo and others complete keys and underline mistakes with it."""

from __future__ import annotations

import json
from typing import Any

from fairlane_controller.config.model import config_model

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """The schema; its descriptions are the model's own."""
    made = config_model().model_json_schema(by_alias=True, mode="validation")
    return {"$schema": DIALECT, **made, "title": "fairlane.toml"}


def json_schema_text() -> str:
    """As `docs/fairlane.schema.json` has it."""
    return json.dumps(json_schema(), indent=2) + "\n"
