# SPDX-License-Identifier: Apache-2.0
"""`fairlane ports measure` for people: one line a value, with what may be wrong with it."""

from __future__ import annotations

from typing import Any

import pytest
from fairlane_controller.cli import show
from fairlane_controller.live.model import PortRow, Snapshot, SwitchRow
from fairlane_controller.program.registry import load_program


def estimate(value: float, uncertainty: float | None = None) -> dict[str, Any]:
    return {"value": value, "count": 50, "age_s": 0.123, "uncertainty": uncertainty}


def printed(monkeypatch: pytest.MonkeyPatch, row: dict[str, Any], program: str) -> list[str]:
    """The table's lines, cells apart by a space."""
    lines: list[str] = []

    def take(_title: str, columns: tuple[str, ...], rows: list[tuple[object, ...]], *, empty: str) -> None:
        assert empty == "nothing yet"
        assert all(len(cells) == len(columns) for cells in rows)
        lines.extend(" ".join(map(str, cells)) for cells in rows)

    monkeypatch.setattr("fairlane_controller.cli.show.print_table", take)
    port = PortRow("s1", 3, measured=row)
    programs = {program: load_program(program)}
    show._print_measured(  # pyright: ignore[reportPrivateUsage]
        Snapshot(0.0, None, None, (SwitchRow("s1", "", 1, True, program),), (port,), programs=programs)
    )
    return lines


def test_tau_and_t_ack_have_their_age_and_uncertainty(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {
        "bw_bps": estimate(2e6, 1000.0),
        "t_res_s": estimate(0.0068, 0.0001),
        "tau_s": estimate(0.002, 0.00001),
        "t_ack_s": estimate(0.0028),
        "l_d_bytes": None,
        "n_c": estimate(2.0, 0.0),
        "t_res_source": "probes",
    }
    lines = printed(monkeypatch, row, "qthresh")
    assert "s1 3 T_res 6.8 ms 100 us 50 0.1 s probes and ACKs" in lines
    assert "s1 3 τ 2 ms 10 us 50 0.1 s probes" in lines
    assert "s1 3 T_ACK 2.8 ms - 50 0.1 s ACKs and probes" in lines
    assert "s1 3 L_D - - - - reports" in lines


def test_gfr_shows_its_own_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    row = {"bw_bps": estimate(6e6, 1e5), "tau_s": None}
    lines = printed(monkeypatch, row, "gfr")
    assert "s1 3 BW 6 Mbit/s 100 kbit/s 50 0.1 s reports" in lines
    assert "s1 3 τ - - - - probes" in lines
    assert not any("T_res" in line for line in lines)
