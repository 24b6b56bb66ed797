# SPDX-License-Identifier: Apache-2.0
"""`fairlane watch`: what is on the screen in every size, the keys, and the command in a terminal of its own."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import io
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path
from typing import Any, cast

import live_rows
import pytest
from fairlane_controller.live.events import EventTail
from fairlane_controller.live.model import Snapshot
from fairlane_controller.live.terminal import WatchView, keyboard, queues_of, render, sparkline, watch
from live_switch import LiveSwitch
from rich.console import Console
from rich.screen import Screen

pytestmark = pytest.mark.timed

DEADLINE_S = 40.0
EVENTS = [
    {"time": "2026-11-21T21:00:00.000+00:00", "event": "tuned", "switch": "s1", "port": 3, "why": f"step {n}"}
    for n in range(30)
] + [{"time": "2026-11-21T21:00:31.000+00:00", "event": "threshold", "switch": "s1", "port": 3, "why": "BW fell " * 40}]


def screen(snapshot: Snapshot, width: int, height: int, **changes: Any) -> list[str]:
    """The lines of one picture."""
    view = WatchView(snapshot, [queues_of(snapshot)] * 20, EVENTS)
    for key, value in changes.items():
        setattr(view, key, value)
    console = Console(width=width, height=height, file=io.StringIO(), record=True, highlight=False)
    console.print(Screen(render(view, width, height)))
    return [line.rstrip() for line in console.export_text().splitlines()]


@pytest.mark.parametrize("size", [(80, 24), (60, 20), (132, 34), (200, 60), (80, 14)])
@pytest.mark.parametrize("flows", [0, 1, 3, 300])
def test_the_picture_fits_its_window(size: tuple[int, int], flows: int) -> None:
    width, height = size
    lines = screen(live_rows.picture(flows), width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width


def test_what_is_in_the_picture() -> None:
    text = "\n".join(screen(live_rows.picture(), 132, 40))
    for said in ("60", "loop runs", "s1:3", "9/50", "Qthresh 5 packets", "auto", "BW 2 Mbit/s", "T_res 7.26 ms (12 s ago)", "N_C 3", "tcp 10.0.1.1:40000 > 10.0.3.3:5001", "5.9", "BW fell", "step 29"):  # fmt: skip
        assert said in text
    assert "step 28" not in text, "of what comes every second only the newest"
    assert "s2:1" not in text, "nobody manages it"
    assert "s2:1" in "\n".join(screen(live_rows.picture(), 132, 40, all_ports=True))


def test_a_switch_that_is_gone_is_said_above_all() -> None:
    lines = screen(live_rows.picture(switches=(live_rows.switch_row(), live_rows.gone()), loop=None), 100, 30)
    assert "✗ s2 is gone: switch s2 at 127.0.0.1:50052 does not answer" in lines[2]
    assert "no control loop runs" in lines[0]


def test_vcs_are_shown_where_gfr_is() -> None:
    text = "\n".join(screen(live_rows.gfr_picture(), 132, 40))
    for said in (
        "scheme proposed · LBO 1,000 cells · HBO 3,000 cells · N 4",
        "1,200/4,000",
        "vc2",
        "9.2 Mbit/s",
    ):
        assert said in text


def test_many_ports_are_shown_around_the_chosen_one() -> None:
    ports = tuple(live_rows.port_row(f"s{n}", 3) for n in range(1, 21))
    view_lines = screen(live_rows.picture(ports=ports), 80, 24, selected=("s15", 3))
    text = "\n".join(view_lines)
    assert "s15:3" in text
    assert "of 20" in text
    assert len(view_lines) <= 24
    view = WatchView(live_rows.picture(ports=ports))
    view.press("up")
    assert view.selected == ("s20", 3)
    view.press("down")
    assert view.selected == ("s1", 3)


def test_a_sparkline_has_a_level_a_value() -> None:
    assert sparkline([None, 0, 4, 8], 5, full=8).plain == " ·▁▄█"


def test_a_pipe_is_no_terminal(switch: LiveSwitch) -> None:
    told = "watch draws in a terminal; elsewhere use `fairlane status --watch --json`"
    assert told in switch.fairlane("watch", code=2)
    got = switch.json("describe", "s1:3", "--interval", "0.1s")
    assert [row["port"] for row in got["ports"] if row["managed"]] == [3]
    assert got["interval_s"] > 0
    assert "is out of range: it must be between 0.1s and 60s" in switch.fairlane("watch", "--interval", "1ms", code=2)


@pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)
def test_live_in_a_terminal(switch: LiveSwitch) -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
    process = subprocess.Popen(
        switch.command("watch", "--interval", "0.2s"),
        stdin=slave,
        stdout=slave,
        env={**environment, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(slave)
    shown = b""

    def read(deadline_s: float) -> None:
        nonlocal shown
        if select.select([master], [], [], deadline_s)[0]:
            with contextlib.suppress(OSError):  # the other end is closed
                shown += os.read(master, 65_536)

    def read_until(wanted: bytes) -> None:
        end = time.monotonic() + DEADLINE_S
        while wanted not in shown:
            assert time.monotonic() < end, f"{wanted!r} was not shown: {shown[-2000:]!r}"
            read(0.1)

    try:
        read_until(b"\x1b[?1049h")  # the other screen
        read_until(b"s1:3")
        began_s, cpu_s = time.monotonic(), _cpu_s(process.pid)
        while time.monotonic() < began_s + 2.0:
            read(0.1)
        share = (_cpu_s(process.pid) - cpu_s) / (time.monotonic() - began_s)
        print(f"fairlane watch at 5 pictures a second: {100 * share:.1f} % of a core")
        os.write(master, b"p")
        read_until(b"PAUSED")
        os.write(master, b"q")
        read_until(b"\x1b[?1049l")
        assert process.wait(timeout=DEADLINE_S) == 0
    finally:
        process.kill()
        process.wait(timeout=10)
        os.close(master)


async def test_keys_that_come_together_are_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = pty.openpty()
    pressed: list[str] = []
    with os.fdopen(slave) as terminal, os.fdopen(master, "wb", buffering=0) as keys:
        monkeypatch.setattr("sys.stdin", terminal)
        with keyboard(pressed.append):
            keys.write(b"p\x1b[A\x1b[Bxq")
            while len(pressed) < 4:
                await asyncio.sleep(0.01)
    assert pressed == ["pause", "up", "down", "quit"]


async def test_who_is_ended_twice_ends_once(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []

    class Source:
        async def snapshot(self) -> Snapshot:
            return live_rows.picture()

        async def close(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.1)
            closed.append("whole")

    monkeypatch.setattr("sys.stdin", io.StringIO())
    asyncio.get_running_loop().call_later(0.3, os.kill, os.getpid(), signal.SIGTERM)
    try:
        await watch(cast("Any", Source()), EventTail(None), Console(file=io.StringIO()), 0.1)
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(number)
    assert closed == ["whole"]


def _cpu_s(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
