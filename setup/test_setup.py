# SPDX-License-Identifier: Apache-2.0
"""Set-up without a terminal says what it does; CI goes on without a kernel only where none can be built."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CARGO = """case $1 in --version) echo cargo 1.95.0; exit;; esac
for attempt in $(seq 400); do
    if grep -q "still building: " "$SAID"; then echo "error: no crate" >&2; exit 101; fi
    sleep 0.05
done
"""


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


def test_a_long_step_says_that_it_goes_on(tmp_path: Path) -> None:
    said = tmp_path / "said"
    script(tmp_path / "bin" / "cargo", CARGO)
    text = (ROOT / "setup" / "setup.sh").read_text()
    script(tmp_path / "setup" / "setup.sh", text.replace("STILL_S=30", "STILL_S=0.05"))
    environment = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path), "SAID": str(said)}
    with said.open("w") as out:
        command = [tmp_path / "setup" / "setup.sh", "binaries"]
        done = subprocess.run(command, env=environment, stdout=out, stderr=out, timeout=60)
    lines = said.read_text().splitlines()
    assert done.returncode == 2
    assert (
        lines[0]
        == "[setup] cargo builds the switch, the links, the traffic tool and the simulator (minutes the first time)"
    )
    assert re.fullmatch(r"\[setup\] still building: \d+ s", lines[1])
    assert lines[-2] == "error: no crate"
    assert lines[-1].startswith("[setup] error: the Rust build failed")


@pytest.mark.parametrize(("code", "ends_with", "is_tested"), [(0, 0, True), (3, 0, True), (2, 2, False)])
def test_ci_without_a_kernel(code: int, ends_with: int, is_tested: bool, tmp_path: Path) -> None:
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    script(tmp_path / ".ci" / "declared-programs", f"ln -s {tmp_path}/bin/make $1")
    script(tmp_path / "setup" / "setup.sh", f"[ $1 != kernel ] || exit {code}")
    script(tmp_path / "bin" / "make", "echo tests")
    script(tmp_path / "bin" / "ip", "exit")
    environment = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run([tmp_path / ".ci" / "run"], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == ends_with
    assert ("tests" in done.stdout.split()) is is_tested
    assert ("SKIPPED: the tests of --runtime kernel" in done.stdout) is (code == 3)
