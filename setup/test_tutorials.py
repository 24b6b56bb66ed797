# SPDX-License-Identifier: Apache-2.0
"""The tutorials, word by word: commands are typed in an empty folder, changes are made by `patch`, in the order of the page."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_session import Session

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "docs" / f"tutorial-{name}.md" for name in ("first-experiment", "new-scheme", "new-sender")]
STEP = re.compile(r"(?:<!-- needs: (\w+) -->\n)?```(sh|diff)\n(.*?)```", re.DOTALL)
INSTANCE = "93"
"""No other test's."""
TIMEOUT_S = 500.0

pytestmark = pytest.mark.kernel


def steps(page: Path) -> Iterator[tuple[str, str, str]]:
    """(what it needs, sh or diff, text) of each block that is to be typed."""
    for need, kind, text in STEP.findall(page.read_text(encoding="utf-8")):
        yield need or ("p4c" if "fairlane p4 compile" in text else ""), kind, text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_works_word_by_word(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without p4c it ends, skipped, where the program has to be compiled; without root Linux hosts are left out."""
    pytest.importorskip("fairlane_switch.native", reason="the simulator is not built")
    monkeypatch.setenv("PATH", f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("FAIRLANE", str(ROOT))
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path / "state"))
    here = tmp_path / "mine"
    here.mkdir()
    done = 0
    for need, kind, text in steps(page):
        if need == "p4c" and shutil.which("p4c-bm2-ss") is None:
            pytest.skip(f"no p4c-bm2-ss on the PATH: {done} steps done, the others need the changed program compiled")
        if need in ("root", "topology") and os.geteuid() != 0:
            continue
        if kind == "diff":
            call(["patch", "-p1", "--fuzz=0"], here, text)
        elif need == "topology":
            session = Session("--instance", INSTANCE, "--program", f"{here}/roomy/", "--plain", folder=here)
            try:
                call(["bash", "-e"], here, text)
                assert session.leave() == 0
            finally:
                session.end()
        else:
            call(["bash", "-e"], here, text)
        done += 1
    assert done > 5


def test_the_tutorial_on_operating_a_switch_works_word_by_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`make run` is there from the first command to the last; what is marked `in: mininet` is typed at its prompt."""
    if os.geteuid() != 0:
        pytest.skip("Mininet needs root")
    monkeypatch.setenv("PATH", f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path / "state"))
    page = (ROOT / "docs" / "tutorial-operate.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(<!-- in: mininet -->\n)?```(?:sh|text)\n(.*?)```", page, re.DOTALL)
    assert len(blocks) > 9
    session = Session("--instance", INSTANCE, folder=tmp_path)
    try:
        for at_prompt, text in blocks:
            if at_prompt:
                for line in text.splitlines():
                    assert "***" not in session.do(f"n{INSTANCE}{line}"), line  # a host's name in this instance
            else:
                call(["bash", "-e"], tmp_path, text)
        assert session.leave() == 0
    finally:
        session.end()


def call(command: list[str], here: Path, text: str) -> None:
    result = subprocess.run(command, cwd=here, input=text, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert result.returncode == 0, f"{text}\n{result.stdout}\n{result.stderr}"
