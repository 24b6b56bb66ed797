# SPDX-License-Identifier: Apache-2.0
"""Start and the tutorials, word by word, as a reader with 45 minutes: commands are typed in one fresh folder, changes are made by `patch`, in the order of the pages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_session import Session

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "docs" / f"tutorial-{name}.md" for name in ("first-experiment", "new-scheme", "new-sender")]
STEP = re.compile(r"(?:<!-- needs: (\w+) -->\n)?```(sh|diff)\n(.*?)```", re.DOTALL)
ELSEWHERE = {
    "make setup": "setup/test_setup.py",
    "make demo": "lab/tests/test_lab_demo.py",
    "make run": "setup/test_tutorials.py",
    "export PATH=$PWD/.venv/bin:$PATH": "setup/test_tutorials.py",
}
"""Commands of the pages that are no step here: what they do has a test of its own, or is the environment of every step."""
INSTANCE = "93"
"""No other test's."""
TIMEOUT_S = 300.0
"""Of a step."""
ALL_S = 45 * 60.0
"""Of all pages together, with nobody who reads."""

pytestmark = pytest.mark.kernel


def steps(page: Path) -> Iterator[tuple[str, str, str]]:
    """(what it needs, sh or diff, text) of each block that is to be typed."""
    for need, kind, text in STEP.findall(page.read_text(encoding="utf-8")):
        yield need or ("p4c" if "fairlane p4 compile" in text else ""), kind, text


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The reader's folder."""
    return tmp_path_factory.mktemp("mine")


@pytest.fixture
def typing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first lines of the pages set."""
    pytest.importorskip("fairlane_switch.native", reason="the simulator is not built")
    monkeypatch.setenv("PATH", f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path / "state"))


def plain_blocks(page: Path) -> list[str]:
    """The lines of the blocks that have no language: what is typed in fairlane's folder."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [line for language, block in blocks if not language for line in block.splitlines()]


@pytest.mark.usefixtures("typing")
def test_start_works_word_by_word(tmp_path: Path) -> None:
    """`make setup` and Mininet aside, which have tests of their own."""
    done = [line for line in plain_blocks(ROOT / "docs" / "start.md") if line not in ELSEWHERE]
    assert len(done) > 1
    for line in done:
        call(["bash", "-e"], ROOT, line if line.startswith("make") else f"{line} --results {tmp_path}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_typed_in_fairlane_s_folder_has_a_test(page: Path) -> None:
    assert set(plain_blocks(page)) <= ELSEWHERE.keys()
    assert all((ROOT / path).is_file() for path in ELSEWHERE.values())


@pytest.mark.usefixtures("typing")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_works_word_by_word(page: Path, here: Path) -> None:
    """Without p4c it ends, skipped, where the program has to be compiled; without root Linux hosts are left out, and what needs a commit
    while the tree has changes."""
    done, began_s = 0, time.monotonic()
    for need, kind, text in steps(page):
        if need == "p4c" and shutil.which("p4c-bm2-ss") is None:
            pytest.skip(f"no p4c-bm2-ss on the PATH: {done} steps done, the others need the changed program compiled")
        if (need in ("root", "topology") and os.geteuid() != 0) or (need == "commit" and is_changed()):
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
    assert time.monotonic() - began_s < ALL_S / len(PAGES)


def is_changed() -> bool:
    """Whether fairlane's files differ from the commit, or there is none."""
    command = ["git", "-c", f"safe.directory={ROOT}", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return found.returncode != 0 or bool(found.stdout)


def test_a_program_with_a_law_of_its_own_went_over_three_links_to_a_page(here: Path) -> None:
    """What the reader has made."""
    page = here / "page" / "three-links.md"
    if not page.exists():
        pytest.skip("the tutorial on a scheme was not typed to its end")
    text = page.read_text(encoding="utf-8")
    assert "| the limit is what 4 Mbit/s send in 20 ms: 10 packets | 8 to 11 packets | met: " in text
    for link in ("1M-2ms", "4M-10ms", "10M-30ms"):
        assert f"| {link}/reserve=1 | sim | 6 |" in text
    pictures = re.findall(r"\]\((plots/[^)]+\.svg)\)", text)
    assert pictures
    assert all((page.parent / picture).is_file() for picture in pictures)


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
                    assert "***" not in session.do(line), line
            else:
                call(["bash", "-e"], tmp_path, text)
        assert session.leave() == 0
    finally:
        session.end()


def call(command: list[str], here: Path, text: str) -> None:
    result = subprocess.run(command, cwd=here, input=text, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert result.returncode == 0, f"{text}\n{result.stdout}\n{result.stderr}"
