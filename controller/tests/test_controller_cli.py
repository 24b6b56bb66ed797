# SPDX-License-Identifier: Apache-2.0
"""The command line without a switch: plan, errors with names and ranges, exit codes, JSON."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from fairlane_controller.cli.main import COMMANDS, PLUGIN_SUMMARIES, main, make_app
from fairlane_controller.program.names import command_groups
from test_controller_state import good_state, write_state
from typer.testing import CliRunner


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and standard output of `fairlane ARGUMENTS` as typer's runner sees it."""
    result = CliRunner().invoke(make_app(with_plugins=False), list(arguments))
    return result.exit_code, result.output


def failing(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and standard error of the whole command."""
    with pytest.raises(SystemExit) as caught:
        main(list(arguments))
    assert isinstance(caught.value.code, int)
    return caught.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        "config init",
        "config diff",
        "run",
        "status",
        "flows",
        "ports measure",
        "threshold set",
        "p4 show_tables",
    ],
)
def test_every_command_has_help(command: str) -> None:
    code, output = run(*command.split(), "--help")
    assert code == 0
    assert "Usage" in output


def test_at_most_20_words_are_at_the_top_those_of_programs_and_our_other_packages_too() -> None:
    words = [command.name for command in COMMANDS]
    assert command_groups().keys() <= set(words)
    assert len({*words, *PLUGIN_SUMMARIES}) == len([*words, *PLUGIN_SUMMARIES]) <= 20


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("ports", "set", "s1:3", "--rate", "2Zbit"), 2, "rate '2Zbit' is not a number with a unit; examples: 512kbit"),
        (("ports", "set", "s1:3", "--rate", "2"), 2, "--rate '2' is not a number with a unit; examples: 512kbit"),
        (("status", "--switch", "s1:50051"), 3, "unknown switch 's1:50051'; did you mean 's1'?"),
        (("status", "--switch", "s1=127.0.0.1"), 2, "must be NAME=HOST:PORT"),
        (("status", "--switch", "s1=127.0.0.1:99999"), 2, "with a port of 1 to 65535"),
        (("status", "--switch", "s3"), 3, "unknown switch 's3'; did you mean"),
        (("threshold", "set", "--scheme", "droptail"), 3, "unknown scheme 'droptail'; did you mean 'drop_tail'?; valid: drop_tail, lanes, qthresh"),
        (("config", "init", "--scheme", "qtresh"), 3, "unknown scheme 'qtresh'; did you mean 'qthresh'?"),
        (("threshold", "set"), 2, "needs at least one option"),
        (("config", "init",), 3, "the compiled program a.json does not exist"),
        (("config", "init", "-s", "s1=127.0.0.1:1"), 3, "this command needs the run state of a topology"),
        (("watch", "export", "run.csv", "--for", "3"), 2, "--for '3' is not a number with a unit"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence_and_a_code(
    arguments: tuple[str, ...],
    code: int,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    write_state(tmp_path / "0", good_state())
    got, text = failing(capsys, *arguments)
    assert got == code
    assert message in text
    assert text.count("\n") == 1


def test_no_topology(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    code, text = failing(capsys, "status")
    assert code == 3
    assert "no topology is running" in text


def test_errors_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = failing(capsys, "ports", "set", "s1:3", "--rate", "fast", "--json")
    assert code == 2
    error = json.loads(text)["error"]
    assert error["code"] == "bad_input"
    assert "rate 'fast' is not a number with a unit" in error["message"]


@pytest.fixture
def closed_port() -> int:
    """A loopback TCP port on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    "arguments",
    [("flows",), ("threshold", "show"), ("threshold", "set", "3", "5"), ("p4", "show_tables"), ("ports", "measure")],
)
def test_a_dead_switch_is_named(
    arguments: tuple[str, ...], closed_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text = failing(capsys, *arguments, "-s", f"s1=127.0.0.1:{closed_port}")
    assert code == 4
    assert f"switch s1 at 127.0.0.1:{closed_port} does not answer" in text


def test_status_of_a_dead_switch_still_shows_the_rest(closed_port: int, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["status", "--json", "-s", f"s1=127.0.0.1:{closed_port}"])
    assert caught.value.code == 4
    data = json.loads(capsys.readouterr().out)
    assert data["switches"][0]["reachable"] is False
    assert data["switches"][0]["error"]["code"] == "switch_unreachable"


def test_status_is_not_well_when_a_file_of_tls_is_none(
    closed_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAIRLANE_TLS_CA", str(tmp_path / "none.pem"))
    with pytest.raises(SystemExit) as caught:
        main(["status", "--json", "-s", f"s1=127.0.0.1:{closed_port}"])
    assert caught.value.code == 4
    (switch,) = json.loads(capsys.readouterr().out)["switches"]
    assert switch["reachable"] is False
    assert "none.pem" in switch["error"]["message"]


def test_a_switch_that_accepts_and_says_nothing_is_given_up(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        code, text = failing(capsys, "flows", "-s", f"s1=127.0.0.1:{port}")
    assert code == 4
    assert f"switch s1 at 127.0.0.1:{port}" in text
