# SPDX-License-Identifier: Apache-2.0
"""`fairlane p4 compile`, with a compiler of our own in the place of p4c."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from fairlane_controller.cli.main import main

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "droptail"
COMPILER = """#!/bin/sh
echo "$@" > "$(dirname "$0")/arguments"
[ ! -e "$(dirname "$0")/broken" ]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "p4c-bm2-ss").write_text(COMPILER)
    (tmp_path / "bin" / "p4c-bm2-ss").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    shutil.copytree(EXAMPLE, tmp_path / "mine")
    return tmp_path / "mine"


def compiling(folder: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["p4", "compile", folder])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_a_folder_s_program_is_compiled_with_our_includes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert compiling(f"{folder}/") == 0
    assert f"droptail.json and droptail.p4info.txtpb in {folder}" in capsys.readouterr().out
    words = (folder.parent / "bin" / "arguments").read_text().split()
    assert words[-3:] == ["-o", str(folder / "droptail.json"), str(folder / "droptail.p4")]
    assert (Path(words[words.index("-I") + 1]) / "headers.p4").is_file()


@pytest.mark.parametrize(
    ("prepare", "argument", "message"),
    [
        ("", "qthresh", "must be a folder (mine/); `make p4` compiles those of the tree"),
        ("mine/droptail.p4", "", "there is no "),
        ("bin/p4c-bm2-ss", "", "p4c-bm2-ss is not on the PATH: p4lang has packages"),
        ("break", "", "was not compiled: Command"),
    ],
)
def test_what_cannot_be_compiled_is_told(
    folder: Path, prepare: str, argument: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if prepare == "break":
        (folder.parent / "bin" / "broken").touch()
    elif prepare:
        (folder.parent / prepare).unlink()
    assert compiling(argument or f"{folder}/") in (2, 3)
    assert message in capsys.readouterr().err
