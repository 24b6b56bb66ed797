# SPDX-License-Identifier: Apache-2.0
"""JSON lines: one record a line, written as they come, and read back."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from ..errors import HostsError

Record = dict[str, Any]


class RecordWriter:
    """Writes records to a file, or to standard output for `-`; a context manager."""

    def __init__(self, out: str) -> None:
        self._to_stdout = out == "-"
        try:
            self._file: TextIO = sys.stdout if self._to_stdout else Path(out).open("w", buffering=1 << 16)  # noqa: SIM115
        except OSError as error:
            raise HostsError("option", f"cannot write --out {out}: {error.strerror}") from error

    def write(self, record: Record) -> None:
        self._file.write(json.dumps(record, separators=(",", ":")) + "\n")

    def summary(self, summary: Record) -> None:
        """The last record; also on standard output."""
        self.write({"summary": summary})
        self._file.flush()
        if not self._to_stdout:
            print(json.dumps({"summary": summary}), flush=True)

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.flush()
        if not self._to_stdout:
            self._file.close()


def name_of(connection: socket.socket) -> str:
    """`address:port` of our end."""
    host, port = connection.getsockname()[:2]
    return f"{host}:{port}"


def write_ready(file: str | None, port: int) -> None:
    """Say in a file, where one is wanted, that something listens at a port: whole from its first instant on."""
    if file:
        partial = Path(f"{file}.{os.getpid()}")
        partial.write_text(f"{port}\n")
        partial.replace(file)


def read_records(path: Path) -> Iterator[Record]:
    """The records of a file. Raises HostsError `option` naming the line that is not JSON."""
    with path.open() as file:
        for number, line in enumerate(file, 1):
            try:
                yield json.loads(line)
            except json.JSONDecodeError as error:
                raise HostsError("option", f"{path}, line {number}: not a JSON record: {error.msg}") from error


def read_summary(path: Path) -> Record:
    """The summary of a file. Raises HostsError `option` when the run has not written one."""
    for record in read_records(path):
        if "summary" in record:
            return record["summary"]
    raise HostsError("option", f"{path} has no summary: the run that wrote it did not end")
