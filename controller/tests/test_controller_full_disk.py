# SPDX-License-Identifier: Apache-2.0
"""A disk without room: a command is made and recorded, or it fails and every switch and file is as it was. On a real, small file system."""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.history import undo as history
from fairlane_controller.history.sites import Sites
from fairlane_controller.history.steps import make
from fairlane_controller.history.undo import read_history
from fairlane_controller.state import locks
from fairlane_controller.state.run_state import RunState, write_topology
from fairlane_controller.state.store import Store
from live_switch import LiveSwitch
from state_tools import contents
from test_controller_history import held

PAGE = 4096
SIZE = 128 * PAGE


class SmallDisk:
    """A tmpfs over a folder, filled up to a few pages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def leave(self, pages: int) -> None:
        """So much is free."""
        gc.collect()  # the end of a command's process closes its connection to state.db; here the command ran in this one
        self.empty()
        room = os.statvfs(self.folder)
        with self._filler.open("wb") as file:
            file.write(b"x" * max(0, (room.f_bavail - pages) * room.f_bsize))

    def empty(self) -> None:
        """Everything is free again but for what is kept."""
        self._filler.unlink(missing_ok=True)


@pytest.fixture
def small_disk(wired_switch: LiveSwitch) -> Iterator[SmallDisk]:
    """The switch's run-state folder, on a disk of its own; what a change adds to the history takes two pages."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it mounts a tmpfs")
    folder = wired_switch.folder / "run"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", str(folder)], capture_output=True, text=True, timeout=20
    )
    if mounted.returncode != 0:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.strip()}")
    wired_switch.folder = folder
    wired_switch.write_state()
    wired_switch.fairlane("config", "init", "--scheme", "qthresh")
    yield SmallDisk(folder)
    subprocess.run(["umount", "-l", str(folder)], check=True, timeout=20)


COMMANDS: dict[str, tuple[str, ...]] = {
    "scheme": ("threshold", "set", "--scheme", "drop_tail"),
    "threshold": ("threshold", "set", "9", "--weight", "2"),
    "ports": ("ports", "set", "s1:3", "--rate", "1Mbit", "--queue-packets", "40"),
    "verb": ("p4", "table_add", "ipv4_lpm", "forward", "10.9.0.0/16", "=>", "08:00:00:00:01:11", "1"),
    "config": ("config", "apply", "{config}"),
    "undo": ("undo",),
}


def state_of(switch: LiveSwitch) -> tuple[Any, Any]:
    """All that the switch holds: tables and ports."""
    kept = ("rate_bps", "queue_packets", "scheduler")
    (ports,) = [[{key: port[key] for key in kept} for port in switch.json("ports", "--interval", "0s")]]
    return held(switch), ports


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("wired_switch", ["embedded"], indirect=True)
def test_a_change_without_room_for_its_record_is_not_made(
    wired_switch: LiveSwitch, small_disk: SmallDisk, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With every number of free pages, from none to enough."""
    config = tmp_path_factory.mktemp("config") / "config.toml"
    config.write_text('[[ports]]\nswitch = "s1"\nport = 3\nqueue_packets = 45\n', encoding="utf-8")
    command = [part.format(config=config) for part in COMMANDS[name]]
    if name == "undo":
        wired_switch.fairlane("threshold", "set", "7")
    before, files = state_of(wired_switch), contents(small_disk.folder)
    refused = 0
    for pages in range(60):
        small_disk.leave(pages)
        try:
            said = wired_switch.fairlane(*command, code=3)
        except AssertionError:
            assert len(contents(small_disk.folder)[1]) == len(files[1]) + 1, f"{pages} pages: made and not recorded"
            break
        refused += 1
        assert "No space left on device" in said, f"{pages} pages: {said}"
        small_disk.empty()
        assert contents(small_disk.folder) == files, f"{pages} pages"
        assert state_of(wired_switch) == before, f"{pages} pages: it failed, and was half made"
    else:
        raise AssertionError("never enough")
    assert refused >= 2
    small_disk.empty()
    assert state_of(wired_switch) != before
    if name != "undo":
        wired_switch.fairlane("undo")
        assert state_of(wired_switch) == before


# ---- the same with a fault at one place -----------------------------------------------------------------------------


def no_commit(*_: object) -> None:
    raise FairlaneError(ErrorCode.BAD_FILE, f"cannot write state.db: {os.strerror(errno.ENOSPC)}")


def no_marker(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    write_topology(tmp_path, {"name": "test"})
    return tmp_path


async def put(folder: Path, value: int) -> None:
    """A change of a document."""
    run = RunState(name="test", folder=folder)
    async with history.changing(folder, f"put {value}", run), Sites(run) as sites:
        await make([], sites, {"a": value})


@pytest.mark.parametrize(
    ("owner", "name", "fault"), [(Store, "record", no_commit), (locks, "_write_holder", no_marker)]
)
async def test_a_change_and_an_undo_are_refused_first(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch, owner: object, name: str, fault: Callable[..., None]
) -> None:
    await put(run_folder, 1)
    files = contents(run_folder)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fault)
        with pytest.raises(FairlaneError, match="No space left on device"):
            await put(run_folder, 2)
        with pytest.raises(FairlaneError, match="No space left on device"):
            await history.undo_last(run_folder, RunState(name="test", folder=run_folder))
    assert contents(run_folder) == files
    await history.undo_last(run_folder, RunState(name="test", folder=run_folder))
    assert Store(run_folder).get("a") is None


async def test_a_refused_change_whose_record_cannot_be_removed_is_taken_back_by_the_next(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk has no room for the removal either."""
    await put(run_folder, 1)
    with monkeypatch.context() as patch:
        patch.setattr(Store, "forget", no_commit)
        with contextlib.suppress(FairlaneError):
            async with history.changing(run_folder, "put 2") as change:
                await change.announce([], {"a": 2})
                raise FairlaneError(ErrorCode.REFUSED, "refused")
    assert Store(run_folder).get("a") == 2
    await put(run_folder, 3)
    assert [one.command for one in read_history(run_folder)] == ["put 1", "put 3"]
    await history.undo_last(run_folder, RunState(name="test", folder=run_folder))
    assert Store(run_folder).get("a") == 1
