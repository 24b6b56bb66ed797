# SPDX-License-Identifier: Apache-2.0
"""Programs that other packages bring: a broken one breaks itself only, and is named in one warning."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.cli.main import main
from fairlane_controller.config.model import config_model, loop_model
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.program.names import installed_programs, program_names
from fairlane_controller.program.registry import find_program, load_program, loaded_programs
from fairlane_controller.state.run_state import write_topology

GOOD = """
import fairlane


class Stranger(fairlane.Program):
    name = "stranger"
    title = "Of another package."
    p4 = "stranger"
    tables = ("strange",)

    class Settings(fairlane.Settings):
        oddness: int = 1
"""
BROKEN = {
    "is not there": "import nothing_of_that_name",
    "is no Python": "class Stranger(:",
    "ends the process": "raise SystemExit(3)",
    "is no program": "class Stranger: pass",
    "has no name": GOOD.replace('name = "stranger"', ""),
    "has settings of its own kind": GOOD.replace("class Settings(fairlane.Settings)", "class Settings"),
    "raises when it is made": GOOD + "\n    def __init__(self):\n        raise OSError('no file')\n",
}
Install = Callable[[str], Path]
STRANGERS = """
from pathlib import Path
Path(__file__).with_name("was run").touch()
import fairlane


class Strangers(fairlane.Program):
    name = "strangers"
    title = "In a stranger's folder."
    p4 = "strangers"

    class Settings(fairlane.Settings):
        oddness: int = 1

    class Sections(fairlane.Section):
        odd: dict[str, int] | None = None
"""
FILE = """
program = "./strangers"
[[ports]]
switch = "s1"
port = 3
oddness = 4
[odd]
one = 1
"""
ASK_THE_LAB = """
from fairlane_lab.programs import find_part, known_parts
print(len(known_parts()), find_part("red").program.name)
"""


def forget() -> None:
    for cached in (installed_programs, load_program.__globals__["_usable"], loaded_programs, config_model, loop_model):
        cached.cache_clear()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Writes a package that brings one program, `stranger`, as pip would; gives its folder."""

    def install(text: str) -> Path:
        about = tmp_path / "strange-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: strange\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text("[fairlane.programs]\nstranger = strange_module:Stranger\n")
        (tmp_path / "strange_module.py").write_text(text)
        monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
        importlib.invalidate_caches()
        forget()
        return tmp_path

    yield install
    sys.modules.pop("strange_module", None)
    load_program.__globals__["_load"].cache_clear()
    forget()


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_broken_one_breaks_itself_only(install: Install, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = install(text) / "fairlane.toml"
    assert "stranger" in program_names()
    file.write_text('program = "red"\n[[ports]]\nswitch = "s1"\nport = 3\nmin_th = 3\nmax_th = 9\n')
    with pytest.raises(SystemExit) as ended:
        main(["config", "check", str(file)])
    assert ended.value.code == 0
    red = load_program("red")
    assert find_program(red.tables) is red
    assert capsys.readouterr().err == "", "programs that are not named are not loaded"
    assert red in loaded_programs()
    warnings = capsys.readouterr().err.splitlines()
    assert len(warnings) == 1, warnings
    assert warnings[0].startswith("fairlane: warning: program 'stranger'")
    assert warnings[0].endswith("; it is left out")
    with pytest.raises(FairlaneError, match=r"program 'stranger'.*strange_module:Stranger") as told:
        load_program("stranger")
    assert told.value.code is ErrorCode.BAD_FILE


LOADED_FOR = """
import sys
from fairlane_controller.program.registry import find_program
found = find_program({tables!r}, {named!r})
print(found and found.name, *(name for name in sys.modules if name.startswith("fairlane_controller.programs.") and name.endswith(".program")))
"""


def test_of_a_topology_that_names_its_program_no_other_one_is_loaded(install: Install) -> None:
    environment = {**os.environ, "PYTHONPATH": str(install(BROKEN["ends the process"]))}
    code = LOADED_FOR.format(tables=load_program("red").tables, named="red")
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("red fairlane_controller.programs.red.program\n", "")


def test_a_topology_s_own_program_that_cannot_be_loaded_is_left_out(
    install: Install, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(BROKEN["is not there"])
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "program.py").write_text("import nothing_of_that_name\n")
    for named in (str(folder), "stranger"):
        assert find_program(["strange"], named) is None
        assert find_program(load_program("red").tables, named) is load_program("red"), "another one runs there"
    warnings = capsys.readouterr().err.splitlines()
    assert [text.endswith("; it is left out") for text in warnings] == [True, True], warnings
    assert find_program(["strange"], "of nobody") is None


def test_one_that_is_well_is_known_like_ours(install: Install, capsys: pytest.CaptureFixture[str]) -> None:
    install(GOOD)
    found = find_program(["strange"])
    assert found is not None
    assert (found.name, "oddness" in str(config_model().model_json_schema())) == ("stranger", True)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("text", "known"), [(GOOD, 16), (BROKEN["is not there"], 15)])
def test_the_lab_goes_on_without_a_broken_one(install: Install, text: str, known: int) -> None:
    """A module without a package has no part for the lab."""
    environment = {**os.environ, "PYTHONPATH": str(install(text))}
    done = subprocess.run(
        [sys.executable, "-c", ASK_THE_LAB], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, f"{known} red\n"), done.stderr
    assert len(done.stderr.splitlines()) == 16 - known


# ---- a file that names a folder ----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stranger's file with his program beside it."""
    program = tmp_path / "strangers"
    program.mkdir()
    (program / "program.py").write_text(STRANGERS)
    (tmp_path / "fairlane.toml").write_text(FILE)
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(capsys: pytest.CaptureFixture[str], *options: str, text: str = FILE) -> tuple[int, dict[str, Any], str]:
    Path("fairlane.toml").write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["config", "check", "fairlane.toml", "--json", *options])
    told = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, json.loads(told.out or "{}"), " ".join(told.err.split())


def was_run(folder: Path) -> bool:
    return (folder / "strangers" / "was run").exists()


def test_a_check_runs_no_code_unless_it_is_asked_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, told = check(capsys)
    assert (code, was_run(folder)) == (3, False)
    assert "line 2, column 1: program: ./strangers has a program.py, which is run for a check: --run-program" in told
    assert check(capsys, "--run-program")[:2] == (0, {"valid": True, "file": "fairlane.toml", "topology": None})
    assert was_run(folder)


def run_topology(folder: Path, program: str) -> None:
    """The state file of a running topology."""
    folder.mkdir(parents=True)
    switch = {"name": "s1", "device_id": 1, "grpc": "127.0.0.1:1", "ports": [{"port": 3, "interface": "x"}]}
    write_topology(folder, {"name": "evil", "program": program, "target": "embedded", "switches": [switch]})


def test_neither_does_a_topology_that_the_file_brings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A state file beside it, or switches of its own, name the program as well."""
    nameless = FILE.replace('program = "./strangers"', "")
    switches = '[[topology.switches]]\nname = "s1"\ngrpc = "127.0.0.1:1"\n'
    run_topology(folder / "evil", str(folder / "strangers"))
    for name in ("evil", "../evil", str(folder / "evil")):
        for text in (FILE, nameless):
            for rest in ("", switches):
                assert check(capsys, text=f'{text}[topology]\nname = "{name}"\n{rest}')[0] == 3
    assert not was_run(folder)
    (folder / "state").mkdir()
    (folder / "evil").rename(folder / "state" / "evil")
    assert check(capsys, text=FILE)[0] == 0, "it runs here: its program is known"
    assert was_run(folder)


def test_a_folder_with_the_name_of_the_program_that_runs_is_not_that_program(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "strangers").rename(folder / "qthresh")
    run_topology(folder / "state" / "lab", "qthresh")
    code, _, told = check(capsys, text=FILE.replace("./strangers", "./qthresh"))
    assert (code, "--run-program" in told, (folder / "qthresh" / "was run").exists()) == (3, True, False)
