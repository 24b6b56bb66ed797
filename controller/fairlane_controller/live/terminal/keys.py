# SPDX-License-Identifier: Apache-2.0
"""The keyboard of a terminal as a stream of key names, without echo; the terminal is put back whatever happens."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import termios
import tty
from collections.abc import Generator

_NAMES = {
    b"\x1b[A": "up", b"\x1bOA": "up", b"\x1b[B": "down", b"\x1bOB": "down", b"\x1b[D": "up", b"\x1b[C": "down", b"\x1b[Z": "up",
    b"\t": "down", b"k": "up", b"j": "down", b"q": "quit", b"Q": "quit", b"\x03": "quit", b"\x1b": "quit", b"p": "pause", b" ": "pause", b"a": "all",
}  # fmt: skip


def parse_keys(data: bytes) -> list[str]:
    """Names of the keys in what a terminal sent; keys without a meaning are left out."""
    found: list[str] = []
    while data:
        for length in (3, 1):
            name = _NAMES.get(data[:length])
            if name is not None and len(data) >= length and not (data[:1] == b"\x1b" and length == 1 and len(data) > 1):
                found.append(name)
                break
        else:
            length = 3 if data[:2] in (b"\x1b[", b"\x1bO") else 1
        data = data[length:]
    return found


@contextlib.contextmanager
def keyboard() -> Generator[asyncio.Queue[str] | None]:
    """A queue of key names while inside; None where standard input is no terminal. Needs a running event loop."""
    queue: asyncio.Queue[str] = asyncio.Queue()
    try:
        number = sys.stdin.fileno()
        before = termios.tcgetattr(number)
    except (termios.error, OSError, ValueError):
        yield None
        return
    loop = asyncio.get_running_loop()

    def read() -> None:
        try:
            data = os.read(number, 64)
        except OSError:
            data = b""
        if not data:
            loop.remove_reader(number)
        for name in parse_keys(data):
            queue.put_nowait(name)

    try:
        tty.setcbreak(number)
        loop.add_reader(number, read)
        yield queue
    finally:
        loop.remove_reader(number)
        termios.tcsetattr(number, termios.TCSADRAIN, before)
