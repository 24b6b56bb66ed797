# SPDX-License-Identifier: Apache-2.0
"""Reading commands of somebody who may not read the run's files, which root's topology has: they work, or say who may and which file it is."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from fairlane_switch.port_control import read_ports
from fairlane_switch.wire import WireClient
from live_switch import LiveSwitch

NOBODY = 65_534
READS: tuple[tuple[str, ...], ...] = (
    ("status",),
    ("flows",),
    ("ports", "--interval", "0s"),
    ("drops",),
    ("ports", "measure"),
    ("describe", "s1:3", "--json"),
    ("watch", "metrics", "--once"),
    ("log",),
    ("threshold", "show"),
    ("undo", "--list"),
    ("config", "show"),
    ("p4", "show_tables"),
)


@contextlib.contextmanager
def somebody_else() -> Generator[None]:
    """An ordinary user, as far as files and sockets are concerned."""
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def run(bare_switch: LiveSwitch) -> Iterator[LiveSwitch]:
    """A topology whose folder anybody may look into, as /run/fairlane is; changed by hand, with a log."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it becomes somebody else")
    with tempfile.TemporaryDirectory(prefix="fairlane-test-") as folder:
        Path(folder).chmod(0o755)
        bare_switch.folder = Path(folder)
        bare_switch.write_state()
        bare_switch.fairlane("config", "init", "--scheme", "qthresh")
        bare_switch.fairlane("threshold", "set", "9")
        with bare_switch.loop():
            pass
        yield bare_switch


def ask(run: LiveSwitch, command: tuple[str, ...]) -> str:
    """What a command says, whether it works or not."""
    try:
        return run.fairlane(*command)
    except AssertionError as failed:
        return str(failed)


@pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)
@pytest.mark.parametrize("private", [(), ("state.db",), ("controller-events.jsonl",)], ids=lambda names: "".join(names) or "as they are")  # fmt: skip
def test_who_may_not_read_is_told_who_may(run: LiveSwitch, private: tuple[str, ...]) -> None:
    for name in private:
        (run.folder / name).chmod(0o600)
    with somebody_else():
        for command in READS:
            said = " ".join(ask(run, command).split())
            assert "mend it" not in said, (command, said)
            assert "Traceback" not in said, (command, said)
            assert said, command
            if "fairlane: " in said:
                assert "run this as root" in said, (command, said)
                assert str(run.folder) in said, (command, said)


@pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)
def test_the_file_that_may_not_be_read_is_named(run: LiveSwitch) -> None:
    (run.folder / "controller.sock").unlink()  # left by the loop that was killed
    (run.folder / "state.db").chmod(0o600)
    with somebody_else():
        said = " ".join(ask(run, ("threshold", "show")).split())
    assert f"cannot read {run.folder}/state.db: Permission denied: run this as root (sudo)" in said


@pytest.mark.parametrize("bare_switch", ["embedded"], indirect=True)
def test_beside_a_loop_too(run: LiveSwitch) -> None:
    with run.loop(), somebody_else():
        for command in READS:
            said = " ".join(ask(run, command).split())
            assert "mend it" not in said, (command, said)
            if "fairlane: " in said:
                assert "run this as root" in said, (command, said)


def test_sockets_of_the_switches_say_so_too() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root: it becomes somebody else")
    with tempfile.TemporaryDirectory(prefix="fairlane-test-") as folder, socket.socket(socket.AF_UNIX) as server:
        Path(folder).chmod(0o755)
        path = Path(folder) / "wire.sock"
        server.bind(str(path))
        path.chmod(0o600)
        server.listen()
        with somebody_else():
            for ask_it in (WireClient, read_ports):
                with pytest.raises(RuntimeError, match="Permission denied: run this as root"):
                    ask_it(path)
