# SPDX-License-Identifier: Apache-2.0
"""Small text files: read, with one sentence for what is wrong."""

from __future__ import annotations

import os
from pathlib import Path

from fairlane_controller.errors import FairlaneError, bad_file


def read_text(path: Path) -> str:
    """A file that a person named; a byte order mark is skipped. Raises BAD_FILE where it cannot be read or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as ex:
        raise unreadable(path, ex) from None
    except UnicodeDecodeError as ex:
        raise bad_file(f"{path}: not UTF-8 text: {ex}") from None


def unreadable(path: Path, problem: OSError) -> FairlaneError:
    """BAD_FILE; it says who may read the file."""
    return bad_file(f"cannot read {path}: {reason(problem)}")


def reason(problem: OSError) -> str:
    """The operating system's error text; when a permission is missing, also who has it."""
    who = ": run this as root (sudo)" if isinstance(problem, PermissionError) and os.geteuid() != 0 else ""
    return f"{problem.strerror or problem}{who}"
