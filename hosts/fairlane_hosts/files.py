# SPDX-License-Identifier: Apache-2.0
"""JSON files that this package keeps: whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_json(path: Path) -> Any:
    """The document in a file; None where there is no file, or no JSON in it."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def write_json(path: Path, document: object) -> None:
    """Replace a file; a process that is killed meanwhile leaves the one before. Raises OSError."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(document, indent=1) + "\n")
    partial.replace(path)
