# SPDX-License-Identifier: Apache-2.0
"""Set-up without a terminal says what it does."""

from __future__ import annotations

import subprocess
from pathlib import Path

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
    assert lines[0] == "[setup] cargo builds the switch, the links and the simulator (minutes the first time)"
    assert lines[1] == "[setup] still building: 0 s"
    assert lines[-2] == "error: no crate"
    assert lines[-1].startswith("[setup] error: the Rust build failed")
