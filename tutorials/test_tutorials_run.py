# SPDX-License-Identifier: Apache-2.0
"""What `make tutorials` needs is asked for before anything is started; with a tree ($P4LANG_TUTORIALS) and p4c, the exercises themselves."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_session import Session

RUN = Path(__file__).with_name("run.py")
EXERCISES = "basic basic_tunnel calc ecn firewall flowcache link_monitor load_balance mri multicast p4runtime qos source_routing"


def run(*arguments: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({} if path is None else {"PATH": path})}
    command = [sys.executable, str(RUN), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)


@pytest.fixture
def compiler(tmp_path: Path) -> str:
    """A PATH with a p4c that is never called."""
    program = tmp_path / "bin" / "p4c-bm2-ss"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nexit 9\n")
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The shape of a p4lang/tutorials tree."""
    for name in EXERCISES.split():
        (tmp_path / "tree" / "exercises" / name / "solution").mkdir(parents=True)
    return tmp_path / "tree"


def refused(done: subprocess.CompletedProcess[str], sentence: str) -> None:
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith("error: ") or "usage:" in done.stderr
    assert sentence in done.stderr
    assert done.stdout == ""


def test_without_p4c_it_says_so(tree: Path, tmp_path: Path) -> None:
    refused(run("--tree", str(tree), path=str(tmp_path)), "p4c-bm2-ss is not on the PATH")


def test_another_folder_is_no_tutorials_tree(tmp_path: Path, compiler: str) -> None:
    refused(run("--tree", str(tmp_path), path=compiler), "it has no exercises/basic/solution")


def test_an_unknown_exercise_is_refused_with_those_there_are(tree: Path, compiler: str) -> None:
    said = "there is no exercise 'basics'; there are basic, basic_tunnel, calc"
    refused(run("--tree", str(tree), "basics", path=compiler), said)


def test_a_folder_that_is_no_p4_guide_is_refused(tree: Path, compiler: str) -> None:
    said = "is no jafingerhut/p4-guide tree: it has no testlib"
    refused(run("--tree", str(tree), "--guide", str(tree), "p4-guide/demo1", path=compiler), said)


@pytest.mark.skipif(os.geteuid() != 0, reason="root is asked for first")
def test_a_python_that_is_named_has_what_their_programs_import(tree: Path, compiler: str) -> None:
    bare = run("--tree", str(tree), "--python", "/usr/bin/python3", "basic-ptf", path=compiler)
    refused(bare, "P4LANG_PYTHON=/usr/bin/python3: ModuleNotFoundError: No module named")
    (tree / "testlib").mkdir()
    guide = run("--tree", str(tree), "--guide", str(tree), "p4-guide/demo1", path=compiler)
    refused(guide, "p4-guide's tests need a Python with p4.v1.p4runtime_pb2_grpc")


@pytest.mark.kernel
@pytest.mark.timeout(1800)
@pytest.mark.skipif("P4LANG_TUTORIALS" not in os.environ, reason="no p4lang/tutorials tree is named: P4LANG_TUTORIALS")
def test_every_exercise_does_what_its_readme_says() -> None:
    tree, python = os.environ["P4LANG_TUTORIALS"], os.environ.get("P4LANG_PYTHON", "")
    guide = ["--guide", os.environ["P4_GUIDE"]] if "P4_GUIDE" in os.environ else []
    done = subprocess.run([sys.executable, str(RUN), "--tree", tree, "--python", python, *guide], timeout=1700)
    assert done.returncode == 0


@pytest.mark.kernel
@pytest.mark.timeout(300)
def test_one_exercise_by_hand_as_the_page_says(tmp_path: Path) -> None:
    if "P4LANG_TUTORIALS" not in os.environ or shutil.which("p4c-bm2-ss") is None or os.geteuid() != 0:
        pytest.skip("no p4lang/tutorials tree in $P4LANG_TUTORIALS, no p4c-bm2-ss on the PATH, or not root")
    root = RUN.parent.parent
    for name in ("exercises/basic", "utils"):
        shutil.copytree(Path(os.environ["P4LANG_TUTORIALS"]) / name, tmp_path / name)
    page = (root / "docs" / "tutorials-p4lang.md").read_text(encoding="utf-8")
    block = re.search(r"## One exercise by hand.*?```\n(.*?)```", page, re.DOTALL)
    assert block is not None
    text = block[1].replace("~/tutorials", str(tmp_path)).replace("~/fairlane", str(root))
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    (start,) = (place for place, line in enumerate(lines) if line.startswith("make run "))
    shell = subprocess.run(
        ["bash", "-e"], input="\n".join(lines[:start]), capture_output=True, text=True, timeout=60, check=False
    )
    assert shell.returncode == 0, shell.stderr
    session = Session(command=shlex.split(lines[start]), folder=root)
    try:
        ping, receive, send, leave = (line.removeprefix("mininet> ") for line in lines[start + 1 :])
        assert "0% dropped" in session.do(ping)
        session.do(receive)
        session.settle()
        assert "10.0.2.2" in session.do(send)
        log = tmp_path / "exercises" / "basic" / "h2.log"
        deadline = time.monotonic() + 10
        while "P4 is cool" not in log.read_text() and time.monotonic() < deadline:
            time.sleep(0.1)
        session.type(leave)
        assert session.ended() == 0
        assert "P4 is cool" in log.read_text()
    finally:
        session.end()
