# SPDX-License-Identifier: Apache-2.0
"""Small files: read with one sentence for what is wrong, written so that a reader, or a crash, never sees half of it."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from fairlane_controller.documents import DocumentError, parse_json
from fairlane_controller.errors import ErrorCode, FairlaneError


def read_text(path: Path) -> str:
    """A file that a person named; raises BAD_FILE where it cannot be read or is not UTF-8."""
    try:
        return text_of(path)
    except FileNotFoundError as ex:
        raise unreadable(path, ex) from None


def text_of(path: Path) -> str:
    """A file of a run: as `read_text`, but FileNotFoundError where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise
    except OSError as ex:
        raise unreadable(path, ex) from None
    except UnicodeDecodeError as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"{path}: not UTF-8 text: {ex}") from None


def read_json(path: Path) -> Any:
    """A JSON file of a run; BAD_FILE with the place of what is wrong, FileNotFoundError where there is none."""
    try:
        return parse_json(text_of(path))
    except DocumentError as ex:
        raise FairlaneError(ErrorCode.BAD_FILE, f"{path}: {ex}") from None


def unreadable(path: Path, problem: OSError) -> FairlaneError:
    """BAD_FILE; whoever may not read the file is told who may."""
    return FairlaneError(ErrorCode.BAD_FILE, f"cannot read {path}: {reason(problem)}")


def reason(problem: OSError) -> str:
    """What the system said, and for whoever lacks the permission who has it."""
    who = ": run this as root (sudo)" if isinstance(problem, PermissionError) and os.geteuid() != 0 else ""
    return f"{problem.strerror or problem}{who}"


_ROOMS: set[Replacement] = set()
"""Those that hold room for a text that is not known yet."""


class Replacement:
    """What will stand at `path`, written beside it first: `put` it, and `commit` needs no room on the disk any more. A context manager."""

    def __init__(self, path: Path, room_bytes: int = 0) -> None:
        """`room_bytes` are taken on the disk now, for a text that is not known yet. Raises OSError."""
        self._path = path
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        self._draft: Path | None = Path(name)
        self._file = os.fdopen(handle, "w", encoding="utf-8")
        try:
            if room_bytes:
                os.posix_fallocate(handle, 0, room_bytes)
                _ROOMS.add(self)
        except BaseException:
            self.close()
            raise

    def put(self, text: str) -> None:
        """The text, flushed to the disk, in place of one that was put before. Raises OSError."""
        self._file.seek(0)
        self._file.write(text)
        self._file.truncate()
        self._file.flush()
        os.fsync(self._file.fileno())

    def shrink(self) -> None:
        """Give the room back. Raises OSError."""
        self._file.truncate(0)

    def commit(self) -> None:
        """Rename over the path, in one step. Raises OSError."""
        assert self._draft is not None
        _ROOMS.discard(self)
        self._file.close()
        self._draft.replace(self._path)
        self._draft = None

    def close(self) -> None:
        """Leave nothing behind that was not committed."""
        _ROOMS.discard(self)
        draft, self._draft = self._draft, None
        with contextlib.suppress(OSError):  # a text that had no room, once more
            self._file.close()
        if draft is not None:
            with contextlib.suppress(OSError):
                draft.unlink()

    def __enter__(self) -> Replacement:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def give_room_back() -> None:
    """What this process has taken on the disk is free again: call it before a change is taken back, which writes files too."""
    for one in _ROOMS:
        with contextlib.suppress(OSError):
            one.shrink()


def json_text(data: Any) -> str:
    """`data` as our files have it."""
    return json.dumps(data, indent=1, sort_keys=True) + "\n"


def write_json_atomically(path: Path, data: Any) -> None:
    """`data` as JSON, in one step. Raises OSError."""
    replace_atomically(path, json_text(data))


def replace_atomically(path: Path, text: str) -> None:
    """Write beside `path`, flush to the disk, rename over it. Raises OSError."""
    with Replacement(path) as new:
        new.put(text)
        new.commit()
