# SPDX-License-Identifier: Apache-2.0
"""JSON files that this package keeps, which `fairlane_controller.documents.write_json` writes."""

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
