# SPDX-License-Identifier: Apache-2.0
"""`fairlane watch`, live: samples, draws, obeys the keyboard; in the terminal's other screen, so that nothing of it stays behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Generator
from typing import Any

from rich.console import Console
from rich.live import Live

from fairlane_controller.live.events import EventTail
from fairlane_controller.live.sampler import Pace
from fairlane_controller.live.source import LiveSource
from fairlane_controller.live.terminal.frame import WatchView, render

EVENTS_KEPT = 300


async def watch_once(source: LiveSource, tail: EventTail, interval_s: float) -> WatchView:
    """Two snapshots `interval_s` apart, so that there are rates."""
    view = WatchView(await source.snapshot(), keys=False)
    view.take(view.snapshot)
    await asyncio.sleep(interval_s)
    view.take(await source.snapshot())
    view.events = tail.new()
    return view


async def watch_live(source: LiveSource, tail: EventTail, console: Console, interval_s: float) -> int:
    """Until `q`, ^C or SIGTERM; returns how many frames were drawn."""
    app = _App(source, tail, console, interval_s)
    return await app.run()


class _App:
    def __init__(self, source: LiveSource, tail: EventTail, console: Console, interval_s: float) -> None:
        self._source = source
        self._tail = tail
        self._console = console
        self._pace = Pace(interval_s)
        self._events: deque[dict[str, Any]] = deque(tail.new(), maxlen=EVENTS_KEPT)
        self._wake = asyncio.Event()
        self._ended = False
        self._frames = 0

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        view = WatchView(await self._source.snapshot())
        view.take(view.snapshot)
        with contextlib.ExitStack() as stack:
            keys = stack.enter_context(keyboard())
            view.keys = keys is not None
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._end)
                stack.callback(loop.remove_signal_handler, number)
            loop.add_signal_handler(signal.SIGWINCH, self._wake.set)
            stack.callback(loop.remove_signal_handler, signal.SIGWINCH)
            live = stack.enter_context(Live(console=self._console, screen=True, auto_refresh=False))
            due_s = 0.0
            while not self._ended:
                began_s, cpu_s = time.monotonic(), time.process_time()
                due = began_s >= due_s and not view.paused
                if due:
                    view.take(await self._source.snapshot())
                    self._events.extend(self._tail.new())
                    view.events = list(self._events)
                self._draw(live, view)
                if due:
                    pause_s = self._pace.next_sleep_s(time.process_time() - cpu_s, time.monotonic() - began_s)
                    due_s = time.monotonic() + pause_s
                await self._rest(keys, view, due_s)
        return self._frames

    def _draw(self, live: Live, view: WatchView) -> None:
        width, height = self._console.size
        live.update(render(view, width, height), refresh=True)
        self._frames += 1

    async def _rest(self, keys: asyncio.Queue[str] | None, view: WatchView, due_s: float) -> None:
        """Until the next sample is due, a key was pressed, or the window changed."""
        self._wake.clear()
        waits: list[asyncio.Future[Any]] = [asyncio.ensure_future(self._wake.wait())]
        if keys is not None:
            waits.append(asyncio.ensure_future(keys.get()))
        timeout_s = None if view.paused else max(0.0, due_s - time.monotonic())
        done, waiting = await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()
        for each in done:
            key: Any = each.result()
            if isinstance(key, str):
                self._press(key, view)

    def _press(self, key: str, view: WatchView) -> None:
        if key == "quit":
            self._end()
        elif key == "pause":
            view.paused = not view.paused
        elif key == "all":
            view.all_ports = not view.all_ports
        else:
            view.move(-1 if key == "up" else 1)

    def _end(self) -> None:
        self._ended = True
        self._wake.set()


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
