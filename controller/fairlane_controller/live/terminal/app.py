# SPDX-License-Identifier: Apache-2.0
"""`fairlane watch`, live: samples, draws, obeys the keyboard; in the terminal's other screen, so that nothing of it stays behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Callable, Generator

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


async def watch_live(source: LiveSource, tail: EventTail, console: Console, interval_s: float) -> None:
    """Draw until `q`, ^C or SIGTERM."""
    loop, pace, wake = asyncio.get_running_loop(), Pace(interval_s), asyncio.Event()
    view = WatchView(await source.snapshot())
    view.take(view.snapshot)
    events, ended, due_s = deque(tail.new(), maxlen=EVENTS_KEPT), False, 0.0

    def press(key: str) -> None:
        nonlocal ended
        if key == "quit":
            ended = True
        elif key == "pause":
            view.paused = not view.paused
        elif key == "all":
            view.all_ports = not view.all_ports
        elif key:
            view.move(-1 if key == "up" else 1)
        wake.set()

    with contextlib.ExitStack() as stack:
        view.keys = stack.enter_context(keyboard(press))
        for number, key in ((signal.SIGTERM, "quit"), (signal.SIGINT, "quit"), (signal.SIGWINCH, "")):
            loop.add_signal_handler(number, press, key)
            stack.callback(loop.remove_signal_handler, number)
        live = stack.enter_context(Live(console=console, screen=True, auto_refresh=False))
        while not ended:
            wake.clear()
            began_s, cpu_s = time.monotonic(), time.process_time()
            due = began_s >= due_s and not view.paused
            if due:
                view.take(await source.snapshot())
                events.extend(tail.new())
                view.events = list(events)
            live.update(render(view, *console.size), refresh=True)
            if due:
                due_s = time.monotonic() + pace.next_sleep_s(time.process_time() - cpu_s, time.monotonic() - began_s)
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(wake.wait(), None if view.paused else max(0.0, due_s - time.monotonic()))


_NAMES = {
    b"\x1b[A": "up", b"\x1bOA": "up", b"\x1b[B": "down", b"\x1bOB": "down", b"\x1b[D": "up", b"\x1b[C": "down", b"\x1b[Z": "up",
    b"\t": "down", b"k": "up", b"j": "down", b"q": "quit", b"Q": "quit", b"\x03": "quit", b"\x1b": "quit", b"p": "pause", b" ": "pause", b"a": "all",
}  # fmt: skip


def parse_keys(data: bytes) -> list[str]:
    """Names of the keys in what a terminal sent; keys without a meaning are left out."""
    keys: list[bytes] = re.findall(rb"(?s)\x1b[\[O].|\x1b\Z|[^\x1b]", data)
    return [_NAMES[key] for key in keys if key in _NAMES]


@contextlib.contextmanager
def keyboard(press: Callable[[str], None]) -> Generator[bool]:
    """Call `press` with the name of each key while inside; False where standard input is no terminal. Needs a running event loop."""
    try:
        number = sys.stdin.fileno()
        before = termios.tcgetattr(number)
    except (termios.error, OSError, ValueError):
        yield False
        return
    loop = asyncio.get_running_loop()

    def read() -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = os.read(number, 64)
        if not data:
            loop.remove_reader(number)
        for name in parse_keys(data):
            press(name)

    try:
        tty.setcbreak(number)
        loop.add_reader(number, read)
        yield True
    finally:
        loop.remove_reader(number)
        termios.tcsetattr(number, termios.TCSADRAIN, before)
