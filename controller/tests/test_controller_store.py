# SPDX-License-Identifier: Apache-2.0
"""The state file: documents, journal; several processes at a time, one that is killed, one that may not write."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.state import store as module
from fairlane_controller.state.store import STATE_FILE, Store

ADD = """
import os, sys
from pathlib import Path
from fairlane_controller.state.store import Store
with Store(Path(sys.argv[1])) as store:
    for number in range(int(sys.argv[2])):
        store.put({f"{os.getpid()}/{number}": number, "last": number})
"""
PAIRS = """
import sys
from pathlib import Path
from fairlane_controller.state.store import Store
with Store(Path(sys.argv[1])) as store:
    number = store.get('b') or 0
    while True:
        number += 1
        store.record(number, {"number": number}, {"a": {"text": "x" * 5000, "number": number}, "b": number})
"""


def test_documents_are_put_replaced_removed_and_found_by_their_prefix(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        assert store.get("a") is None
        assert not (tmp_path / STATE_FILE).exists(), "reading makes no file"
        store.put({"a": {"x": [1, None]}, "policy/s1/1/0": 1, "policy/s2/1/0": 2})
        store.put({"policy/s2/1/0": None, "other": "é"})
        assert store.all("policy/") == {"s1/1/0": 1}
        assert (store.get("a"), store.get("other"), store.get("policy/s2/1/0")) == ({"x": [1, None]}, "é", None)
    assert [path.name for path in tmp_path.iterdir()] == [STATE_FILE]


def test_a_stamp_tells_every_change_of_its_documents_and_no_other(tmp_path: Path) -> None:
    store, other = Store(tmp_path), Store(tmp_path)
    stamps = [store.stamp("policy/")]
    for documents in ({"policy/a": 1}, {"policy/a": 1}, {"policy/a": None}, {"policy/b": 2}):
        other.put(documents)
        stamps.append(store.stamp("policy/"))
    assert len(set(stamps)) == len(stamps)
    other.put({"topology": {}})
    assert store.stamp("policy/") == stamps[-1]


def test_a_file_that_was_made_anew_is_another_one(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put({"a": 1})
    before = store.stamp()
    for path in tmp_path.iterdir():
        path.unlink()
    assert store.get("a") is None
    Store(tmp_path).put({"a": 2})
    assert store.get("a") == 2
    assert store.stamp() != before


def test_without_a_folder_it_is_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store(None)
    store.put({"a": 1})
    assert store.get("a") == 1
    assert Store(None).get("a") is None
    assert list(tmp_path.iterdir()) == []


def test_processes_that_write_at_once_lose_no_change(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ADD, str(tmp_path), "50"]
    processes = [subprocess.Popen(command) for _ in range(4)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0, 0]
    assert len(Store(tmp_path).all("")) == 201


def test_a_process_that_is_killed_leaves_whole_changes(tmp_path: Path) -> None:
    for _ in range(5):
        process = subprocess.Popen([sys.executable, "-c", PAIRS, str(tmp_path)])
        before, end = Store(tmp_path).get("b"), time.monotonic() + 30
        while Store(tmp_path).get("b") in (before, None):
            assert time.monotonic() < end
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=10)
        with Store(tmp_path) as store:
            number = store.get("b")
            assert store.get("a")["number"] == number
            assert store.journal()[-1] == (number, {"number": number})
            store.put({"c": number})


def test_who_waits_too_long_for_another_process_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BUSY_TIMEOUT_S", 0.05)
    store = Store(tmp_path)
    store.put({"a": 1})
    with contextlib.closing(sqlite3.connect(tmp_path / STATE_FILE, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(FairlaneError, match="another process was writing") as told:
            store.put({"a": 2})
        assert told.value.code is ErrorCode.TIMED_OUT
        assert store.get("a") == 1, "a reader does not wait"


def test_a_reader_does_not_wait_for_a_change_of_another_thread(tmp_path: Path) -> None:
    """It may wait for another process's lock, and who reads serves switches."""
    store = Store(tmp_path)
    store.put({"a": 1})
    other = sqlite3.connect(tmp_path / STATE_FILE, isolation_level=None)
    with contextlib.closing(other), ThreadPoolExecutor() as threads:
        other.execute("BEGIN IMMEDIATE")
        changing = threads.submit(store.put, {"a": 2})
        time.sleep(0.1)
        assert not changing.done()
        assert store.get("a") == 1
        other.execute("ROLLBACK")
        changing.result(timeout=30)
        assert store.get("a") == 2


@pytest.mark.parametrize(
    ("table", "column", "said"),
    [
        ("documents", "value", "Could not decode to UTF-8 column 'value' .*: mend it, or remove it and start"),
        ("journal", "record", "Could not decode to UTF-8 column 'record' .*: mend it, or remove it and start"),
        ("sqlite_master", "sql", r"malformed database schema \(\w+\).*: mend it, or remove it and start"),
        ("sqlite_master", "name", r"malformed database schema \(.*\\xff.*: mend it, or remove it and start"),
    ],
)
def test_a_bad_byte_in_a_text_is_one_error_with_its_place(tmp_path: Path, table: str, column: str, said: str) -> None:
    with Store(tmp_path) as store:
        store.put({"a": {"x": 1}})
        store.record(1, {"x": 1})
    with contextlib.closing(sqlite3.connect(tmp_path / STATE_FILE)) as file:
        file.execute("PRAGMA writable_schema = ON")
        file.execute(f"UPDATE {table} SET {column} = CAST(X'ff' || {column} || X'ff' AS TEXT)")
        file.commit()

    def read_all(store: Store) -> None:
        store.get("a")
        store.journal()

    with pytest.raises(FairlaneError, match=rf"cannot read .*state\.db: {said}") as told:
        read_all(Store(tmp_path))
    assert told.value.code is ErrorCode.BAD_FILE
    with pytest.raises(FairlaneError, match=r"cannot write .*state\.db: .*mend it") if table == "sqlite_master" else contextlib.nullcontext():  # fmt: skip
        Store(tmp_path).put({"b": 1})


def test_what_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / STATE_FILE).write_bytes(b"no database" * 1000)
    uses: list[Callable[[Store], Any]] = [lambda s: s.get("a"), lambda s: s.put({"a": 1})]
    for use in uses:
        with pytest.raises(FairlaneError, match=r"state\.db: file is not a database: mend it") as told:
            use(Store(tmp_path))
        assert told.value.code is ErrorCode.BAD_FILE


def test_a_folder_that_is_gone_is_named(tmp_path: Path) -> None:
    store = Store(tmp_path / "none")
    assert store.get("a") is None
    with pytest.raises(FairlaneError, match="cannot write"):
        store.put({"a": 1})


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it becomes somebody else")
def test_who_may_only_read_reads_also_while_others_write(tmp_path: Path) -> None:
    writer = Store(tmp_path)
    writer.put({"a": 1})
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755)
    os.seteuid(65_534)
    try:
        assert Store(tmp_path).get("a") == 1
        with pytest.raises(FairlaneError, match=r"cannot write .*Permission denied: run this as root \(sudo\)"):
            Store(tmp_path).put({"a": 2})
    finally:
        os.seteuid(0)
    writer.put({"a": 3})
    writer.close()
    os.seteuid(65_534)
    try:
        assert Store(tmp_path).get("a") == 3, "nothing stands beside the file now"
    finally:
        os.seteuid(0)
