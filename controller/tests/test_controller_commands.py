# SPDX-License-Identifier: Apache-2.0
"""The list of commands: each can be loaded, the list imports none, a mistake gets the nearest name and exit code 2."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import typer
from fairlane_controller.cli.main import COMMANDS, PLUGIN_SUMMARIES, main, make_app, plugins


@pytest.mark.parametrize("lazy", COMMANDS, ids=lambda lazy: lazy.name)
def test_every_command_loads_and_explains_itself(lazy: Any) -> None:
    command = lazy.command()
    assert command.name == lazy.name
    assert command.help
    assert len(lazy.summary) <= 80, "one line of the list"


@pytest.mark.parametrize("plugin", plugins(), ids=lambda plugin: plugin.name)
def test_the_summaries_of_our_other_packages_are_what_they_say(plugin: Any) -> None:
    found = plugin.load()
    assert isinstance(found, typer.Typer)
    if plugin.name in PLUGIN_SUMMARIES:
        assert found.info.help == plugin.summary


def test_the_list_imports_no_command() -> None:
    code = (
        "import sys\n"
        "from fairlane_controller.cli.main import main\n"
        "try: main(['-h'])\n"
        "except SystemExit: pass\n"
        "heavy = {'finsy', 'grpc', 'pydantic', 'fairlane_lab', 'asyncio'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "threshold" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("statsu",), "no such command 'statsu'. Did you mean 'status'?; see `fairlane -h`"),
        (("p4", "table-ad"), "no such command 'table-ad'. Did you mean 'table_add'"),
        (("p4", "frobnicate"), "no such command 'frobnicate'; see `fairlane p4 -h`"),
        (("frobnicate",), "no such command 'frobnicate'; see `fairlane -h`"),
        (("status", "--jsn"), "no such option: --jsn (Possible options: --json); see `fairlane status -h`"),
        (("threshold", "shwo"), "Did you mean 'show'?; see `fairlane threshold -h`"),
        (("gfr", "vc", "add"), "missing argument 'NAME'; see `fairlane gfr vc add -h`"),
        (("threshold", "set", "-1"), "a value that begins with - is read as an option; none may be negative"),
        (("ports", "set", "s1:3", "--rate"), "option '--rate' requires an argument"),
    ],
)
def test_a_mistake_is_one_sentence_with_the_nearest_name(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*arguments])
    assert caught.value.code == 2
    text = capsys.readouterr().err
    assert message in text
    assert text.count("\n") == 1
    with pytest.raises(SystemExit) as caught:
        main([*arguments, "--json"])
    assert caught.value.code == 2
    if "--rate" not in arguments:  # there --json is the option's argument
        assert json.loads(capsys.readouterr().err)["error"]["code"] == "bad_input"


def _below(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield words, command
    for name in command.list_commands(None) if hasattr(command, "list_commands") else ():
        yield from _below(command.resolve_command(None, [name])[1], (*words, name))


def test_an_option_has_one_name_one_letter_and_one_meaning_over_all_commands() -> None:
    """Its line of the help up to the sentence: names, letter, and what it takes. Commands of our other packages too."""
    root = typer.main.get_command(make_app())
    context: Any = root.make_context("fairlane", [], resilient_parsing=True)
    meanings: dict[str, dict[str, str]] = defaultdict(dict)
    for words, command in _below(root, ()):
        for param in command.params:
            for name in (*param.opts, *param.secondary_opts) if param.param_type_name == "option" else ():
                meanings[name].setdefault(param.get_help_record(context)[0], " ".join(words))
    assert meanings.keys() >= {"--json", "-n", "--rate", "--direction"}
    assert {name: found for name, found in meanings.items() if len(found) > 1} == {}


EXAMPLES = [
    (example.strip().removeprefix("fairlane "))
    for lazy in COMMANDS
    for _, command in _below(lazy.command(), (lazy.name,))
    for example in re.findall(r"^  (fairlane .*)$", command.help or "", re.MULTILINE)
]


def test_there_are_examples_for_most_commands() -> None:
    assert len(EXAMPLES) > 50


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_of_the_helps_can_be_read(example: str) -> None:
    words = shlex.split(example.split(" < ")[0])
    command: Any = next(lazy for lazy in COMMANDS if lazy.name == words[0]).command()
    words = words[1:]
    while words and hasattr(command, "get_command") and command.get_command(None, words[0]):
        command = command.resolve_command(None, [words.pop(0)])[1]
    command.make_context("fairlane", words)
