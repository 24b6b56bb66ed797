# SPDX-License-Identifier: Apache-2.0
"""A disk without room: a command is made and recorded, or it fails and every switch and file is as it was. On a real, small file system."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import subprocess
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller import history
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.history import ops
from fairlane_controller.history.journal import read_history
from fairlane_controller.programs.qthresh.loop_state import PolicyState, read_loop_state
from fairlane_controller.programs.qthresh.store import LoopStore
from fairlane_controller.state import store
from fairlane_controller.state.run_state import RunState, write_topology
from fairlane_controller.state.store import Store
from live_switch import LiveSwitch
from state_tools import contents
from test_controller_history import held, number

PAGE = 4096
SIZE = 128 * PAGE


class SmallDisk:
    """A tmpfs over a folder, filled up to a few pages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def leave(self, pages: int) -> None:
        """So much is free."""
        self.empty()
        room = os.statvfs(self.folder)
        with self._filler.open("wb") as file:
            file.write(b"x" * max(0, (room.f_bavail - pages) * room.f_bsize))

    def empty(self) -> None:
        """Everything is free again but for what is kept."""
        self._filler.unlink(missing_ok=True)


@pytest.fixture
def small_disk(wired_switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch) -> Iterator[SmallDisk]:
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
    monkeypatch.setattr(store, "ROOM_BYTES", 4 * PAGE)
    wired_switch.folder = folder
    wired_switch.write_state()
    wired_switch.fairlane("config", "init", "--scheme", "qthresh")
    yield SmallDisk(folder)
    subprocess.run(["umount", "-l", str(folder)], check=True, timeout=20)


COMMANDS: dict[str, tuple[str, ...]] = {
    "scheme": ("threshold", "scheme", "drop_tail"),
    "threshold": ("threshold", "set", "9", "--weight", "2"),
    "ports": ("ports", "set", "s1:3", "--rate", "1Mbit", "--queue-packets", "40"),
    "verb": ("p4", "table_add", "ipv4_lpm", "forward", "10.9.0.0/16", "=>", "08:00:00:00:01:11", "1"),
    "config": ("config", "apply", "{config}"),
    "undo": ("undo",),
}


def state_of(switch: LiveSwitch) -> tuple[Any, Any]:
    """All that the switch holds: tables and ports."""
    kept = ("rate_bps", "queue_packets", "scheduler")
    (ports,) = [[{key: port[key] for key in kept} for port in switch.json("ports", "show", "--interval", "0s")]]
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


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Numbers by name that the request `number_put` sets; a negative one is refused."""
    numbers = {"a": 0}

    async def put(_context: history.Context, request: dict[str, Any]) -> list[dict[str, Any]]:
        if request["value"] < 0:
            raise FairlaneError(ErrorCode.REFUSED, "no negative number")
        before, numbers["a"] = numbers["a"], int(request["value"])
        return [{**request, "value": before}]

    monkeypatch.setitem(ops._REGISTERED, "number_put", put)  # pyright: ignore[reportPrivateUsage]
    return numbers


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def no_commit(*_: object) -> None:
    raise FairlaneError(ErrorCode.BAD_FILE, f"cannot write state.db: {os.strerror(errno.ENOSPC)}")


def set_by_hand(folder: Path, values: dict[str, int], undo: list[dict[str, Any]], note: str = "") -> None:
    async def work() -> None:
        async with history.changing(folder, "set a 5") as made:
            values["a"] = 5
            made.undo, made.note = undo, note

    asyncio.run(work())


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    write_topology(tmp_path, {"name": "test"})
    return tmp_path


def test_a_change_is_refused_first(run_folder: Path, values: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(FairlaneError, match=r"state\.db: No space left on device; nothing was changed"):
        set_by_hand(run_folder, values, [number("a", 0)])
    assert values == {"a": 0}
    assert {path.name for path in run_folder.iterdir()} <= {"state.db", "change.lock"}


@pytest.mark.parametrize(
    ("undo", "note", "value", "message"),
    [
        ([number("a", 0)], "", 0, "No space left on device; the change was taken back"),
        ([number("a", -1)], "", 5, "the change is made, and could not be taken back: no negative number"),
        ([], "the program was loaded", 5, "the change is made, and cannot be taken back"),
    ],
)
def test_a_record_that_fails_after_all_takes_the_change_back(
    run_folder: Path, values: dict[str, int], monkeypatch: pytest.MonkeyPatch,
    undo: list[dict[str, Any]], note: str, value: int, message: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(Store, "record", no_commit)
    with pytest.raises(FairlaneError, match=message):
        set_by_hand(run_folder, values, undo, note)
    assert values == {"a": value}
    assert read_history(run_folder) == []


def test_an_undo_is_refused_first_too(
    run_folder: Path, values: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_by_hand(run_folder, values, [number("a", 0)])
    kept = contents(run_folder)
    for place, name, fault in ((os, "posix_fallocate", full), (Store, "record", no_commit)):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, fault)
            with pytest.raises(FairlaneError, match="No space left on device"):
                asyncio.run(history.undo_last(run_folder, RunState(name="test", folder=run_folder)))
        assert values == {"a": 5}, name
        assert contents(run_folder) == kept


# ---- the loop's settings -------------------------------------------------------------------------------------------


def weights(store: LoopStore) -> tuple[float, float]:
    return store.policy("s1", 3, 0).weight, store.policy("s2", 3, 0).weight


def on_disk(folder: Path) -> tuple[float, float]:
    state = read_loop_state(folder)
    return state.policy("s1", 3, 0).weight, state.policy("s2", 3, 0).weight


@pytest.mark.parametrize("inner_fails", [False, True])
@pytest.mark.parametrize("outer_fails", [False, True])
async def test_two_changes_at_a_time_are_each_kept_or_not(tmp_path: Path, inner_fails: bool, outer_fails: bool) -> None:
    """Those of two switches overlap in the loop: what one takes back is not the other's."""
    settings = LoopStore(tmp_path)

    async def change(switch: str, fails: bool, *inner: Awaitable[None]) -> None:
        with contextlib.suppress(FairlaneError):
            async with settings.changed({(switch, 3, 0): PolicyState(weight=2.0)}) as commit:
                for one in inner:
                    await one
                if fails:
                    raise FairlaneError(ErrorCode.REFUSED, "no")
                await commit()

    await change("s1", outer_fails, change("s2", inner_fails))
    wanted = (1.0 if outer_fails else 2.0, 1.0 if inner_fails else 2.0)
    assert weights(settings) == wanted
    assert on_disk(tmp_path) == wanted
    assert weights(LoopStore(tmp_path)) == wanted


async def test_settings_without_room_are_refused_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = LoopStore(tmp_path)
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(FairlaneError, match="No space left on device; nothing was changed"):
        async with settings.changed({("s1", 3, 0): PolicyState(weight=2.0)}):
            raise AssertionError("the switch was written")
    assert weights(settings) == (1.0, 1.0)
