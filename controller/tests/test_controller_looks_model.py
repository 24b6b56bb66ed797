# SPDX-License-Identifier: Apache-2.0
"""What the reading commands compute, without a switch: lines of drops, whether a VC is served, questions to a log."""

from __future__ import annotations

import json
import resource
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.cli.show import drop_lines
from fairlane_controller.errors import FairlaneError
from fairlane_controller.export import Export
from fairlane_controller.live.events import EventFilter, read_events
from fairlane_controller.live.model import DropRow, Snapshot, SwitchRow
from fairlane_controller.live.pictures import need_switches
from fairlane_controller.program.contract import meaning, reasons_of
from fairlane_controller.program.registry import load_program
from fairlane_controller.programs.gfr.view import mcr_met

SWITCH = SwitchRow("s1", "127.0.0.1:1", 1, reachable=True, program="gfr")
VC: dict[str, Any] = {"mcr_bps": 2e6, "rate_bps": None, "offered_bps": 1e6, "goodput_bps": 1e6, "drops_per_s": 0.0}


def snapshot() -> Snapshot:
    """Two drops of ports and what a VC lost."""
    drops = (
        DropRow("s1", 1, "ttl", 9, 0.0, "program"),
        DropRow("s1", 3, "tail", 7, 0.0, "queue"),
        DropRow("s1", 3, "pcr", 30, 10.0, "program", "gold"),
    )
    return Snapshot(1.0, None, None, (SWITCH,), drops=drops, programs={"gfr": load_program("gfr")})


def test_drops_have_meanings_and_the_fastest_are_first() -> None:
    taken = snapshot()
    lines = drop_lines(taken)
    assert [tuple(line[key] for key in ("reason", "port", "object", "packets", "per_s")) for line in lines] == [
        ("pcr", 3, "gold", 30, 10.0),
        ("ttl", 1, None, 9, 0.0),
        ("tail", 3, None, 7, 0.0),
    ]
    assert lines[0]["meaning"] == "above the VC's peak rate, at its edge"
    assert "no room" in lines[2]["meaning"]


def test_a_reason_has_the_meaning_of_the_program_that_the_switch_runs() -> None:
    qthresh, gfr = load_program("qthresh"), load_program("gfr")
    reasons = reasons_of(qthresh).values()
    assert {"short", "parser", "qthresh", "port_full"} <= {reason.name for reason in reasons}
    assert [meaning(qthresh, reason.name) for reason in reasons] == [reason.meaning for reason in reasons]
    unknown = meaning(gfr, "no such reason")
    assert meaning(qthresh, "pcr") == meaning(None, "qthresh") == unknown


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "asks less"),
        ({"drops_per_s": 3.0}, "no (55%)"),
        ({"drops_per_s": 3.0, "rate_bps": 1.99e6}, "yes"),
        ({"goodput_bps": 2e6}, "yes"),
        ({"offered_bps": 0.0, "goodput_bps": 0.0}, "idle"),
        ({"offered_bps": None, "goodput_bps": None}, None),
        ({"mcr_bps": None}, None),
    ],
)
def test_whether_a_vc_gets_its_mcr(changes: dict[str, Any], expected: str | None) -> None:
    assert mcr_met({**VC, **changes}) == expected


def test_what_makes_a_reading_useless_is_raised() -> None:
    taken = snapshot()
    assert need_switches(taken) is taken
    away = replace(SWITCH, error={"code": "switch_unreachable", "message": "away"}, program=None)
    with pytest.raises(FairlaneError, match="away") as caught:
        need_switches(replace(taken, switches=(away,)))
    assert caught.value.exit_code == 4
    with pytest.raises(FairlaneError, match="no program yet"):
        need_switches(replace(taken, switches=(replace(SWITCH, program=None),)))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log and the file that it was rotated to, with a line that is being written."""
    path = tmp_path / "controller-events.jsonl"
    old = [{"time": "2026-01-01T10:00:00.000+00:00", "event": "started"}]
    new = [
        {"time": "2026-01-01T10:05:00.000+00:00", "event": "threshold", "switch": "s1", "port": 3},
        {"time": "2026-01-01T10:06:00.000+00:00", "event": "threshold", "switch": "s2", "port": 4},
        {
            "time": "2026-01-01T10:07:00.000+00:00",
            "event": "gfr_active",
            "switch": "s1",
            "port": 3,
            "started": ["gold"],
            "stopped": [],
        },
    ]
    (tmp_path / "controller-events.jsonl.1").write_text("".join(json.dumps(e) + "\n" for e in old), encoding="utf-8")
    path.write_text("".join(json.dumps(e) + "\n" for e in new) + '{"time": "2026', encoding="utf-8")
    return path


def test_questions_to_a_log(log: Path) -> None:
    def names(wanted: EventFilter, last: int | None = None) -> list[str]:
        return [f"{e['event']} {e.get('switch', '')}" for e in read_events(log, wanted, last)]

    assert names(EventFilter()) == ["started ", "threshold s1", "threshold s2", "gfr_active s1"]
    assert names(EventFilter(), 2) == ["threshold s2", "gfr_active s1"]
    assert names(EventFilter(events=("threshold",), port=4)) == ["threshold s2"]
    assert names(EventFilter(switches=("s1",))) == ["threshold s1", "gfr_active s1"]
    with pytest.raises(FairlaneError, match="unknown event 'treshold'; did you mean 'threshold'"):
        read_events(log, EventFilter(events=("treshold",)))
    assert read_events(log, EventFilter(events=("treshold",)), check_names=False) == []
    assert read_events(log.with_name("none.jsonl"), EventFilter(events=("x",))) == []


def test_a_disk_that_fills_up_ends_an_export_with_one_sentence(tmp_path: Path) -> None:
    file, (soft, hard) = tmp_path / "run.csv", resource.getrlimit(resource.RLIMIT_FSIZE)

    def write() -> None:
        with Export(file, ["drops"], snapshot()) as export:
            for _ in range(1000):
                export.add(snapshot())

    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(FairlaneError, match=r"cannot write .*run\.csv"):
            write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
