# SPDX-License-Identifier: Apache-2.0
"""A port is the first argument, `s1:3`, and a time has a unit, with any command."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
from fairlane_controller.cli import output
from fairlane_controller.cli.conventions import App
from fairlane_controller.cli.main import main
from fairlane_controller.cli.options import (
    IntervalOption,
    JsonOption,
    OnlyPortArgument,
    PortRef,
    Seconds,
    SwitchOption,
    parse_port,
    split_port,
)
from fairlane_controller.cli.targets import resolve
from fairlane_controller.errors import ErrorCode, FairlaneError
from test_controller_state import good_state, write_state

SECOND = Seconds(1)


def by_port(
    port: OnlyPortArgument = None,
    interval: IntervalOption = SECOND,
    switch: SwitchOption = None,
    as_json: JsonOption = False,
) -> None:
    seen.append((port, interval, switch, as_json))


seen: list[Any] = []


def call(*words: str) -> Any:
    """What `by_port` gets from the command line."""
    app = App(cls=None, pretty_exceptions_enable=False)
    app.command()(by_port)
    typer.main.get_command(app).main(list(words), standalone_mode=False)
    return seen.pop()


@pytest.mark.parametrize(
    ("text", "port"),
    [("s1:3", PortRef("s1", "3")), ("3", PortRef(None, "3")), ("s1:s1-eth3", PortRef("s1", "s1-eth3"))],
)
def test_a_port_is_an_argument_that_names_its_switch_too(text: str, port: PortRef) -> None:
    assert call(text)[0] == port


@pytest.mark.parametrize("text", ["", "s1:", ":3", "s1=127.0.0.1:50051", "s1:3:4"])
def test_what_is_no_port_is_said(text: str) -> None:
    with pytest.raises(FairlaneError, match=r"must be SWITCH:PORT, e\.g\. s1:3; or 3 with --switch"):
        call(text)


def test_only_some_commands_know_a_port_by_its_interface() -> None:
    assert parse_port("s1:3").number == 3
    with pytest.raises(FairlaneError, match=r"port 's1-eth3': must be a number here, e\.g\. s1:3"):
        _ = parse_port("s1:s1-eth3").number


def test_a_switch_is_named_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    write_state(tmp_path / "0", good_state())
    assert [one.name for one in resolve(None, None, parse_port("s2:3")).endpoints] == ["s2"]
    assert [one.name for one in resolve(None, ["s1"], parse_port("3")).endpoints] == ["s1"]
    assert len(resolve(None, None, parse_port("3")).endpoints) == 2
    with pytest.raises(FairlaneError, match=r"port 's1-3': must be SWITCH:PORT, e\.g\. s1:3 \(there are s1, s2\)"):
        resolve(None, None, parse_port("s1-3")).one(parse_port("s1-3"))
    with pytest.raises(FairlaneError, match=r"name a switch with --switch \(there are s1, s2\)"):
        resolve(None, None).one()
    with pytest.raises(FairlaneError, match="s1:3 names its switch: leave --switch out"):
        resolve(None, ["s2"], parse_port("s1:3"))


@pytest.mark.parametrize(
    ("words", "port", "rest"),
    [
        ("", None, []),
        ("5", None, ["5"]),
        ("s1:3", PortRef("s1", "3"), []),
        ("s1:3 5", PortRef("s1", "3"), ["5"]),
        ("3 5", PortRef(None, "3"), ["5"]),
    ],
)
def test_a_port_that_may_be_left_out_is_known_by_its_form_or_comes_first(
    words: str, port: PortRef | None, rest: list[str]
) -> None:
    assert split_port(words.split()) == (port, rest)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("threshold set s1:3 5 6", "'6' is one word too many; a port stands first"),
        ("flows --port s1:3", "no such option: --port"),
        ("ports set --rate 1Mbit", "missing argument 'PORT'"),
    ],
)
def test_a_port_in_another_place_is_an_error_that_says_where_it_stands(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(words))
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("text", "seconds"), [("0", 0), ("500ms", 0.5), ("10m", 600)])
def test_a_time_has_a_unit(text: str, seconds: float) -> None:
    assert call("--interval", text)[1] == seconds


def test_a_time_without_a_unit_or_beyond_its_limits_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(FairlaneError, match="--interval '5' is not a number with a unit; examples: 200us"):
        call("-i", "5")
    with pytest.raises(FairlaneError, match="--interval 11m is out of range: it must be between 0 and 600s") as refused:
        call("--interval=11m")
    assert refused.value.code is ErrorCode.OUT_OF_RANGE
    assert call()[1] == 1


def test_switch_and_port_are_one_column_of_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table("ports", ("switch", "port", "rate"), [("s1", 3, "2 Mbit/s"), ("s2", None, None)])
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["┏━━━━━━┳━━━━━━━━━━┓"],
        ["┃", "port", "┃", "rate", "┃"],
        ["┡━━━━━━╇━━━━━━━━━━┩"],
        ["│", "s1:3", "│", "2", "Mbit/s", "│"],
        ["│", "s2", "│", "-", "│"],
        ["└──────┴──────────┘"],
    ]
