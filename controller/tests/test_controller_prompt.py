# SPDX-License-Identifier: Apache-2.0
"""`fairlane p4 cli` in a terminal: a prompt whose mistakes end nothing, and each line a change of its own."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import subprocess
import time

import pytest
from live_switch import LiveSwitch

DEADLINE_S = 40.0


class Terminal:
    """A process with a terminal; what it prints is read until a text appears."""

    def __init__(self, command: list[str]) -> None:
        self._seen = b""
        self._near, far = pty.openpty()
        self.process = subprocess.Popen(command, stdin=far, stdout=far, stderr=far, env={**os.environ, "TERM": "dumb"})
        os.close(far)

    def until(self, text: str) -> None:
        """Read up to `text`; what comes behind it stays for the next time."""
        end = time.monotonic() + DEADLINE_S
        while text.encode() not in self._seen:
            left = end - time.monotonic()
            assert left > 0, f"waited for {text!r}, saw {self._seen.decode(errors='replace')!r}"
            if select.select([self._near], [], [], left)[0]:
                self._seen += os.read(self._near, 4096)
        self._seen = self._seen.split(text.encode(), 1)[1]

    def type(self, text: str) -> None:
        """Type a line."""
        os.write(self._near, text.encode() + b"\n")

    def interrupt(self) -> None:
        """What ^C is to it, until it has ended: between the prompt and its wait, readline overlooks one."""
        end = time.monotonic() + DEADLINE_S
        while self.process.poll() is None:
            assert time.monotonic() < end, "an interrupt ended nothing"
            self.process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(timeout=3)

    def close(self) -> None:
        """End it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=10)
        os.close(self._near)


def test_a_prompt(switch: LiveSwitch) -> None:
    if switch.target != "embedded":
        pytest.skip("the same prompt as on the embedded switch")
    terminal = Terminal(switch.command("p4", "cli"))
    try:
        terminal.until("fairlane> ")
        for line, answer in (
            ("table_num_entries ipv4_lpm", "table ipv4_lpm: entries 2, size 4096"),
            ("table_ad x", "unknown verb 'table_ad'; did you mean 'table_add'?"),
            ("table_add ipv4_lpm forward 10.0.9.0/24 => 08:00:00:00:09:99 1", "added 10.0.9.0/24"),
            ("table_delete ipv4_lpm 0", "entry 10.0.9.0/24"),
            ("help table_add", "Add an entry."),
        ):
            terminal.type(line)
            terminal.until(answer)
            terminal.until("fairlane> ")
        terminal.type("quit")
        assert terminal.process.wait(timeout=20) == 0
    finally:
        terminal.close()
    commands = [one["command"] for one in switch.json("undo", "--list")]
    assert commands[-2:] == [
        "cli: table_add ipv4_lpm forward 10.0.9.0/24 => 08:00:00:00:09:99 1",
        "cli: table_delete ipv4_lpm 0",
    ]
    switch.fairlane("undo")
    assert switch.json("p4", "table_num_entries", "ipv4_lpm")["entries"] == 3


def test_an_interrupt_ends_a_prompt_at_once(switch: LiveSwitch) -> None:
    if switch.target != "embedded":
        pytest.skip("the same prompt as on the embedded switch")
    terminal = Terminal(switch.command("p4", "cli"))
    try:
        terminal.until("fairlane> ")
        terminal.type("table_num_entries ipv4_lpm")
        terminal.until("fairlane> ")
        terminal.interrupt()
        assert terminal.process.returncode in (0, 130)
    finally:
        terminal.close()
