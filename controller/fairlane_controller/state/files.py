# SPDX-License-Identifier: Apache-2.0
"""Small files: read with one sentence for what is wrong, written so that a reader, or a crash, never sees half of it."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from fairlane_controller.errors import ErrorCode, FairlaneError


def read_text(path: Path) -> str:
    """A file that a person named; raises BAD_FILE where it cannot be read or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"cannot read {path}: {ex.strerror}") from None
    except UnicodeDecodeError as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"{path}: not UTF-8 text: {ex}") from None


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
