# SPDX-License-Identifier: Apache-2.0
"""Writing a small file so that a reader, or a crash, never sees half of it."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any


def write_json_atomically(path: Path, data: Any) -> None:
    """`data` as JSON, in one step. Raises OSError."""
    replace_atomically(path, json.dumps(data, indent=1, sort_keys=True) + "\n")


def replace_atomically(path: Path, text: str) -> None:
    """Write beside `path`, flush to the disk, rename over it. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise
