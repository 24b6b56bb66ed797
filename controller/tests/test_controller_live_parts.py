# SPDX-License-Identifier: Apache-2.0
"""The parts of the live picture that need no switch: rates, the pace, the tail of an event log, the loop's answers, routes, queues."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi.ports import PortInfo
from fairlane_controller.live.events import EventTail, place_of, sentence_of
from fairlane_controller.live.model import DropRow, PortRow
from fairlane_controller.live.sampler import CPU_SHARE, pause_s
from fairlane_controller.live.source import read_loop
from fairlane_controller.live.view import line_drops, port_row
from fairlane_controller.loop.control import ControlServer
from fairlane_controller.state.ask import SOCKET_FILE
from fairlane_controller.state.run_state import PortState
from fairlane_controller.switch.reading import RateBook


def test_a_rate_is_the_difference_to_the_reading_before() -> None:
    book = RateBook()
    book.begin(10.0)
    assert book.per_s("a", 100) is None
    assert book.interval_s is None
    book.begin(12.0)
    assert (book.per_s("a", 300), book.per_s("b", 5), book.interval_s) == (100.0, None, 2.0)


def test_a_counter_that_went_back_or_was_not_read_gives_no_rate() -> None:
    book = RateBook()
    rate = None
    for now_s, value in ((0.0, 100), (1.0, 7), (2.0, 9)):
        book.begin(now_s)
        rate = book.per_s("a", value)
    assert rate == 2.0
    book.begin(3.0)  # a reading without it
    book.begin(4.0)
    assert book.per_s("a", 20) is None
    book.begin(4.0)
    assert book.per_s("a", 30) is None, "no time has passed"
    book.forget()
    book.begin(9.0)
    assert book.per_s("a", 40) is None


def test_pictures_that_cost_much_come_less_often() -> None:
    assert pause_s(0.5, 0.01, 0.02) == pytest.approx(0.48)
    assert pause_s(0.5, 2 * CPU_SHARE, 0.3) == pytest.approx(2.0 - 0.3)


def _write(path: Path, *events: dict[str, Any], mode: str = "a") -> None:
    with path.open(mode, encoding="utf-8") as file:
        file.writelines(json.dumps(event) + "\n" for event in events)


def test_the_tail_of_an_event_log_over_a_rotation(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tail = EventTail(path, first=2)
    assert tail.new() == [], "there is no log yet"
    _write(path, *({"event": "a", "n": n} for n in range(5)))
    assert [event["n"] for event in tail.new()] == [3, 4]
    with path.open("a", encoding="utf-8") as file:
        file.write('{"event": "b", "n"')
    assert tail.new() == [], "half a line is not read"
    with path.open("a", encoding="utf-8") as file:
        file.write(": 5}\nno json\n[1]\n")
    assert [event["n"] for event in tail.new()] == [5]
    path.rename(tmp_path / "events.jsonl.1")
    _write(path, {"event": "c", "n": 6, "text": "longer than the next"})
    assert [event["n"] for event in tail.new()] == [6]
    _write(path, {"event": "d", "n": 7}, mode="w")
    assert [event["n"] for event in tail.new()] == [7], "a log that was emptied"


def test_what_was_written_just_before_a_rotation_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log turns over between two looks; also when its rest takes several looks."""
    path, full = tmp_path / "events.jsonl", tmp_path / "events.jsonl.1"
    _write(path, {"event": "a", "n": 0})
    tail = EventTail(path)
    assert [event["n"] for event in tail.new()] == [0]
    _write(path, {"event": "a", "n": 1}, {"event": "a", "n": 2})
    path.rename(full)
    assert [event["n"] for event in tail.new()] == [1, 2], "before there is a new one"
    _write(path, {"event": "a", "n": 3})
    assert [event["n"] for event in tail.new()] == [3]
    _write(path, *({"event": "a", "n": n} for n in range(4, 10)))
    path.rename(full)
    _write(path, {"event": "a", "n": 10})
    with monkeypatch.context() as patch:
        patch.setattr("fairlane_controller.live.events.STEP_BYTES", 50)
        looks = [[event["n"] for event in tail.new()] for _ in range(6)]
    assert [n for look in looks for n in look] == list(range(4, 11))
    assert len(looks[0]) < 4


def test_who_follows_before_there_is_a_log_gets_it_from_its_beginning(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    tail = EventTail(path, first=0)
    assert tail.new() == []
    _write(path, {"event": "started", "n": 0}, {"event": "took_over", "n": 1})
    assert [event["n"] for event in tail.new()] == [0, 1]
    assert EventTail(path, first=0).new() == [], "of a log that was there nothing"


def test_a_long_log_is_read_from_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlane_controller.live.events.FIRST_BYTES", 4096)
    path = tmp_path / "events.jsonl"
    _write(path, *({"event": "a", "n": n, "text": "x" * 100} for n in range(1000)))
    found = EventTail(path, first=1000).new()
    assert 20 < len(found) < 40
    assert found[-1]["n"] == 999


def test_an_event_in_words() -> None:
    event = {"time": "t", "event": "threshold", "switch": "s1", "port": 3, "class": 2, "why": "BW fell to 1 Mbit/s"}
    assert (place_of(event), sentence_of(event)) == ("s1:3 class 2", "BW fell to 1 Mbit/s")
    plain = {"event": "took_over", "switch": "s1", "flows": 3}
    assert (place_of(plain), sentence_of(plain)) == ("s1", "flows 3")


async def test_no_loop_is_no_error(tmp_path: Path) -> None:
    assert (await read_loop(None)).rows is None
    said = await read_loop(tmp_path)
    assert (said.rows, said.error) == (None, None)


async def test_a_loop_that_has_no_measurements_is_asked_all_the_same(tmp_path: Path) -> None:
    async def answer(request: dict[str, Any]) -> Any:
        if request["op"] == "status":
            return [{"switch": "s1", "connected": True, "error": None, "ports": []}]
        raise FairlaneError(ErrorCode.UNKNOWN_NAME, "unknown op")

    async with ControlServer(tmp_path / SOCKET_FILE, answer):
        said = await read_loop(tmp_path)
    assert [row.switch for row in said.rows or ()] == ["s1"]
    assert said.measured == {}


def test_what_the_traffic_manager_says_goes_into_the_picture() -> None:
    book, limit = RateBook(), PortState(port=3, rate_bps=2_000_000, queue_packets=50)

    def rows(line: PortInfo) -> tuple[PortRow, PortRow, list[DropRow]]:
        values = {
            "dropped_packets": 2073,
            "waiting_packets": 9,
            "capacity_packets": 40,
            "sent_bytes": 7,
            "mode": "auto",
        }
        managed = port_row("s1", 3, limit, line, None, values, True, book.per_s)
        of_line = PortInfo(1, rate_bps=0, queue_packets=7, waiting_packets=2)
        other = port_row("s1", 1, PortState(port=1), of_line, None, {"dropped_packets": 5}, False, book.per_s)
        return managed, other, [*line_drops("s1", line, book.per_s), *line_drops("s1", of_line, book.per_s)]

    book.begin(0.0)
    rows(PortInfo(3, rate_bps=10**6, waiting_packets=99, sent_bytes=0, drops={"port_full": 4}))
    book.begin(1.0)
    got, other, drops = rows(
        PortInfo(3, rate_bps=10**6, waiting_packets=99, sent_bytes=100_000, drops={"port_full": 6}, receive_losses=8)
    )
    assert (got.rate_bps, got.tx_bps, got.utilisation, got.sent_bytes) == (1e6, 8e5, 0.8, 100_000)
    assert (got.dropped_packets, got.drops_per_s) == (2073 + 6, 2.0), "what the program refused, and the queue"
    assert other.dropped_packets == 5, "the queue behind it refused nothing"
    assert got.waiting_packets == 9, "the program's own count stays: thresholds are compared with it"
    assert (got.capacity_packets, dict(got.values)) == (40, {"mode": "auto"})
    assert (other.rate_bps, other.waiting_packets, other.capacity_packets) == (None, 2, 7)
    assert [(d.port, d.reason, d.packets, d.per_s, d.by) for d in drops] == [
        (3, "port_full", 6, 2.0, "queue"),
        (3, "not_received", 8, 8.0, "link"),
    ]
    alone = port_row("s1", 3, limit, None, None, {}, False, book.per_s)
    assert (alone.rate_bps, alone.capacity_packets, alone.dropped_packets) == (2_000_000, 50, None)
    measured = {"bw_bps": {"value": 1e6, "age_s": 0.1}, "waiting_packets": 4}
    book.begin(2.0)
    port_row("s1", 5, None, None, measured, {"sent_bytes": 0}, True, book.per_s)
    book.begin(3.0)
    got = port_row("s1", 5, None, None, measured, {"sent_bytes": 100_000}, True, book.per_s)
    assert (got.waiting_packets, got.utilisation, got.measured) == (4, 0.8, measured), "what the loop measures"
