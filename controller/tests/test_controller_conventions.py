# SPDX-License-Identifier: Apache-2.0
"""`s1:3` names a port, and `-o` the form of the output, with any command."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

import pytest
import typer
from fairlane_controller.cli import output
from fairlane_controller.cli.conventions import adopt
from fairlane_controller.cli.live_options import OnlyPortOption
from fairlane_controller.cli.main import main
from fairlane_controller.cli.targets import JsonOption, SwitchOption
from fairlane_controller.errors import FairlaneError


def by_options(port: OnlyPortOption = None, switch: SwitchOption = None, as_json: JsonOption = False) -> None:
    seen.append((port, switch, as_json))


def by_both(
    switch: str,
    port: Annotated[str | None, typer.Argument()] = None,
    packet: Annotated[str | None, typer.Option("--packet")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
) -> None:
    seen.append((switch, port, packet, dry_run))


def by_port(rate: str, port: Annotated[str | None, typer.Argument()] = None, switch: SwitchOption = None) -> None:
    seen.append((rate, port, switch))


seen: list[Any] = []


@pytest.fixture(autouse=True)
def table() -> Any:
    yield seen.clear()
    output.use_form("table")


def call(function: Any, *words: str) -> Any:
    """What the function gets from the command line. Its form of output stays set."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(function)
    command = typer.main.get_command(app)
    adopt(command)
    command.main(list(words), standalone_mode=False)
    return seen.pop()


@pytest.mark.parametrize("words", [("-p", "s1:3"), ("--port=s1:3",), ("-ps1:3",), ("--port", "3", "-s", "s1")])
def test_the_option_port_names_a_switch_too(words: tuple[str, ...]) -> None:
    assert call(by_options, *words) == (3, ["s1"], False)


def test_arguments_name_a_port_in_one_word_or_in_two() -> None:
    assert call(by_both, "s1:3") == ("s1", "3", None, False)
    assert call(by_both, "s1", "3", "--dry-run") == ("s1", "3", None, True)
    assert call(by_both, "--packet", "tcp:80", "s1:s1-eth3", "--dry-run") == ("s1", "s1-eth3", "tcp:80", True)
    assert call(by_both, "s1=[::1]:50051", "3") == ("s1=[::1]:50051", "3", None, False)
    assert call(by_port, "2Mbit", "s1:3") == ("2Mbit", "3", ["s1"])
    assert call(by_port, "2Mbit", "-s", "s1") == ("2Mbit", None, ["s1"])


def test_a_switch_is_named_once() -> None:
    with pytest.raises(FairlaneError, match="s1:3 names its switch: leave --switch out"):
        call(by_options, "-p", "s1:3", "-s", "s2")


def by_number(packets: str, port: OnlyPortOption = None, switch: SwitchOption = None) -> None:
    seen.append((packets, port, switch))


@pytest.mark.parametrize(
    ("words", "to_type"),
    [
        ("threshold set s1:3 5", "threshold set -p s1:3 5"),
        ("threshold set 5 s1:3 --dry-run -o wide", "threshold set 5 -p s1:3 --dry-run -o wide"),
        ("threshold set s1:3 5 -s s1", "threshold set -p s1:3 5"),
        ("--tls-ca 'a file' threshold set s1:s1-eth3 5", "--tls-ca 'a file' threshold set -p s1:s1-eth3 5"),
        ("threshold scheme s1:3 fifo", "threshold scheme -p s1:3 fifo"),
        ("flows s1:3", "flows -p s1:3"),
        ("log s1:3", "log -p s1:3"),
        ("gfr set s1:3 --cells 100", "gfr set -p s1:3 --cells 100"),
        ("ports set -p s1:3 --rate 1Mbit", "ports set s1:3 --rate 1Mbit"),
        ("ena mark --port s1:3 --dry-run", "ena mark s1:3 --dry-run"),
    ],
)
def test_a_port_in_the_other_place_is_an_error_with_the_line_to_type(
    words: str, to_type: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIRLANE_TLS_CA", "")  # as it was again at the end: --tls-ca goes there
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(words))
    assert ended.value.code == 2
    assert capsys.readouterr().err.rstrip().endswith(f": type `fairlane {to_type}`")


def test_a_port_behind_its_option_or_where_an_option_names_one_is_no_misplaced_port() -> None:
    assert call(by_number, "5", "-p", "s1:3") == ("5", 3, ["s1"])
    assert call(by_number, "s1:3", "-p", "s2:4") == ("s1:3", 4, ["s2"])
    assert call(by_number, "--", "s1:3") == ("s1:3", None, None)


@pytest.mark.parametrize("words", [("-o", "json"), ("-ojson",), ("--output=json",), ("--json",)])
def test_json_is_a_form_of_output(words: tuple[str, ...]) -> None:
    assert call(by_options, *words) == (None, None, True)


def test_an_unknown_form_is_refused() -> None:
    # csv and wide are of the commands of fairlane_controller: docs/cli.md has them
    with pytest.raises(FairlaneError, match="unknown form of output 'xml'; valid: json, table"):
        call(by_options, "-o", "xml")


def test_a_table_of_ports_is_for_people_or_csv(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table("ports", ("switch", "port", "rate"), [("s1", 3, "2 Mbit/s"), ("s2", None, None)])
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["┏━━━━━━┳━━━━━━━━━━┓"],
        ["┃", "port", "┃", "rate", "┃"],
        ["┡━━━━━━╇━━━━━━━━━━┩"],
        ["│", "s1:3", "│", "2", "Mbit/s", "│"],
        ["│", "s2", "│", "-", "│"],
        ["└──────┴──────────┘"],
    ]
    output.use_form("csv")
    output.print_table("ports", ("switch", "port", "rate"), [("s1", 3, "2 Mbit/s"), ("s2", None, None)])
    output.console.print("more")
    said = capsys.readouterr()
    assert said.out == "switch,port,rate\ns1,3,2 Mbit/s\ns2,,\n"
    assert said.err == "more\n"


def test_wide_shows_what_a_usual_table_leaves_out() -> None:
    assert not output.shows_wide()
    output.use_form("wide")
    assert output.shows_wide()
