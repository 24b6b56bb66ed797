# SPDX-License-Identifier: Apache-2.0
"""Every command that README.md and the rooms' READMEs show exists, and the ones without side effects are run."""

from __future__ import annotations

import fnmatch
import functools
import itertools
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
from fairlane_controller.cli.lazy import UsageError, usage_message
from fairlane_controller.cli.main import make_app

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [
    path
    for path in (
        ROOT / "README.md",
        *sorted(ROOT.glob("*/README.md")),
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted((ROOT / "docs" / "concepts").glob("*.md")),
    )
    if path.exists() and not path.name.startswith("tutorial-")  # typed word by word by test_tutorials.py
]
TARGETS = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
READ_ONLY = (
    "make help",
    ".venv/bin/fairlane --help",
    ".venv/bin/fairlane lab list",
    "fairlane lab list",
    "fairlane lab show",
)


PAGES = [*DOCUMENTS, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("tutorial-*.md"))]
"""The documents, and those whose code blocks other tests type: of all of them the commands within sentences and table cells are looked at."""
A_COMMAND = re.compile(r"(sudo )?(\.venv/bin/)?(make|fairlane) ")
BLOCK = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)


def commands(*, in_sentences: bool = True) -> list[tuple[str, str]]:
    """(document, command) of every line in a code block, and of every `code` in a table cell or a sentence, that is make or fairlane."""
    found: list[tuple[str, str]] = []
    for path in PAGES:
        document, text = str(path.relative_to(ROOT)), path.read_text()
        blocks = re.findall(r"```(?:sh|bash|console)?\n(.*?)```", text, re.DOTALL) if path in DOCUMENTS else []
        lines = [
            line.split("  #")[0].split(" #")[0].strip().removeprefix("$ ") for line in "".join(blocks).splitlines()
        ]
        rest = BLOCK.sub("", text) if in_sentences else "\n".join(re.findall(r"^\|.*", text, re.MULTILINE))
        lines += [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", rest)]
        found += [(document, line) for line in lines if A_COMMAND.match(line)]
    return found


def test_there_are_commands_to_check() -> None:
    assert ("docs/howto.md", "fairlane hosts use h1 bcr") in commands()  # of a table
    assert ("docs/start.md", "make setup") in commands()  # of a block
    assert len(commands()) > 280


@pytest.mark.parametrize(("document", "command"), [pair for pair in commands() if pair[1].startswith("make")])
def test_make_targets_of_the_documents_exist(document: str, command: str) -> None:
    """And the variables that are set, and files of ours that they name."""
    makefile = (ROOT / "Makefile").read_text()
    for word in shlex.split(command.partition("…")[0])[1:]:
        name, is_variable, value = word.partition("=")
        if is_variable:
            assert f"$({name}" in makefile, f"{document} says {command!r}, but the Makefile has no variable {name!r}"
            assert not value.startswith("mininet/") or (ROOT / value).exists(), f"{document} says {command!r}"
        elif not word.startswith("-"):
            assert word in TARGETS, f"{document} says {command!r}, but the Makefile has no target {word!r}"


@functools.cache
def command_line() -> Any:
    return typer.main.get_command(make_app())


def parse(words: list[str]) -> None:
    """Read a command line with the program's own parser, without running it. Raises what typer raises: a command, an option or a value is not there."""
    command, context = command_line(), command_line().make_context("fairlane", [], resilient_parsing=True)
    while True:
        rest = command.make_parser(context).parse_args(list(words))[1]
        if not hasattr(command, "resolve_command"):
            assert not rest or context.allow_extra_args, f"{rest} is too much"
            return
        if not rest or re.fullmatch("[A-Z_]+", rest[0]):  # a name of the reader's
            return
        context.resilient_parsing = False
        _, command, words = command.resolve_command(context, rest)
        context = type(context)(command, info_name=rest[0], parent=context, **command.context_settings)


@pytest.mark.parametrize(("document", "command"), sorted({pair for pair in commands() if "fairlane " in pair[1]}))
def test_commands_and_options_of_the_documents_exist(document: str, command: str) -> None:
    """As far as a line is said: not what follows `…`, a pipe or another command."""
    read = shlex.shlex(command.partition("…")[0], posix=True, punctuation_chars="|&;<>")
    read.whitespace_split = True
    words = list(itertools.takewhile(lambda word: not set(word) <= set("|&;<>"), read))
    try:
        parse(words[words[0] == "sudo" :][1:])
    except UsageError as error:  # `--packet …`: only the option is named
        if not usage_message(error).startswith(f"option '{words[-1]}' requires an argument"):
            pytest.fail(f"{document} says {command!r}: {usage_message(error)}")


EXPERIMENTS = sorted(
    {
        name
        for _, command in commands()
        if re.search("fairlane lab (run|show) ", command)
        for name in shlex.split(command.partition("…")[0])[3:]
        if re.match(r"[a-z][a-z0-9]*-[a-z0-9*]", name)
    }
)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_experiments_that_the_documents_run_exist(name: str) -> None:
    there = {path.stem for path in (ROOT / "lab" / "experiments").glob("*.toml")}
    assert fnmatch.filter(there, name)


def test_there_are_experiments_to_check() -> None:
    assert len(EXPERIMENTS) > 10


def test_the_experiment_of_the_documents_runs(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "experiments.md").read_text()
    (file,) = re.findall(r"```toml\n(# mine\.toml\n.*?)```", text, re.DOTALL)
    path = tmp_path / "mine.toml"
    path.write_text(file)
    done = subprocess.run(
        [str(ROOT / ".venv/bin/fairlane"), "lab", "run", str(path), "--quick", "--check", "--results", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "mine" / "latest" / "plots" / "fairness.png").is_file()


@pytest.mark.parametrize(
    "command", sorted({command for _, command in commands(in_sentences=False) if command.startswith(READ_ONLY)})
)
def test_read_only_commands_of_the_documents_run(command: str) -> None:
    line = re.sub(r"^fairlane", ".venv/bin/fairlane", command)
    done = subprocess.run(line, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


def test_help_lists_every_target_with_its_meaning() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    listed = set(re.findall(r"^  make (\S+)", done.stdout, re.MULTILINE))
    assert listed == TARGETS


def our_files() -> list[Path]:
    """Every file of the tree that nothing made; without git, which a copy of the tree may not have."""
    made = {"results", "site", "target", "build", "__pycache__"}
    found: list[Path] = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [
            name
            for name in folders
            if name not in made and not name.endswith(".egg-info") and (not name.startswith(".") or name == ".ci")
        ]
        found += [
            Path(folder, name)
            for name in names
            if name != ".git" and not name.endswith((".png", ".pyc", ".so", ".pcap", ".log"))
        ]
    return [path for path in found if not path.is_symlink()]


def test_nothing_committed_names_a_path_of_a_machine_or_a_registry() -> None:
    hosts = "|".join(
        [
            "pypi" + r"\.org",
            "crates" + r"\.io",
            "npmjs" + r"\.",
            "proxy" + r"\.golang",
            "maven" + r"\.org",
            "deb" + r"\.debian",
        ]
    )
    bad = re.compile(r"/(?:work|root|opt/p4)/(?:main|\.|p4c|behav)|" + hosts)
    # Cargo writes where each crate of its lock comes from, always under this one address.
    allowed = {ROOT / "switch" / "Cargo.lock": "https://github.com/rust-lang/crates" + ".io-index"}
    for path in our_files():
        if path.name != Path(__file__).name:
            found = bad.search(path.read_text(errors="replace").replace(allowed.get(path, "\0"), ""))
            assert found is None, f"{path.relative_to(ROOT)} holds {found.group() if found else ''}"


def test_every_source_file_says_its_licence_and_the_text_of_each_licence_is_there() -> None:
    suffixes = {".rs", ".py", ".c", ".h", ".p4", ".js", ".sh", ".toml", ".css", ".html", ".yang"}
    texts = {path.stem for path in (ROOT / "LICENSES").iterdir() if path.read_text().strip()}
    sources = [path for path in our_files() if path.suffix in suffixes]
    assert len(sources) > 500
    for path in sources:
        said = re.search(r"SPDX-License-Identifier\: ([\w.-]+(?: OR [\w.-]+)*)", path.read_text(errors="replace"))
        assert said, f"{path.relative_to(ROOT)} has no SPDX line"
        assert set(said[1].split(" OR ")) <= texts, f"{path.relative_to(ROOT)}: no text in LICENSES/ for {said[1]}"


def test_the_program_that_the_documents_show_is_the_example() -> None:
    example = (ROOT / "docs" / "examples" / "droptail" / "program.py").read_text()
    text = (ROOT / "docs" / "programs.md").read_text()
    assert example[example.index("from typing") :] in text
    example = (ROOT / "docs" / "examples" / "talkers" / "program.py").read_text()
    assert example[example.index("class Talker(") : example.index("class Talkers(")].rstrip() in text


PROMISES = re.findall(
    r"^\| .* \| (.*) \| \[.*\]\((.*)\) `(\w+)` \|$", (ROOT / "SPECIFICATION.md").read_text(), re.MULTILINE
)


def test_there_are_promises() -> None:
    lines = (ROOT / "SPECIFICATION.md").read_text().splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| promise")]
    assert len(rows) == len(PROMISES) > 15


@pytest.mark.parametrize(("number", "path", "name"), PROMISES)
def test_every_promise_is_held_by_a_check_of_that_number(number: str, path: str, name: str) -> None:
    """A test of that name, or a constant of that value (a ratio may be shown as a percentage)."""
    text = (ROOT / path).read_text()
    if name.startswith("test_"):
        assert re.search(rf"def {name}\(", text), f"{path} has no {name}"
        return
    found = re.search(rf"^(?:\w+, )*{name}(?:, \w+)*\s*=\s*(.*)$", text, re.MULTILINE)
    assert found, f"{path} has no {name}"
    names = [word.strip() for word in found[0].split("=")[0].split(",")]
    value = float(found[1].split(",")[names.index(name)].replace("_", ""))
    promised = float(re.sub(r"[^\d.]", "", number.split(" ")[0]))
    assert value == pytest.approx(promised / 100 if "%" in number else promised), f"{path}: {name} is {value}"
