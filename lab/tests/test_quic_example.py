# SPDX-License-Identifier: Apache-2.0
"""docs/examples/quic: a static QUIC program in the kernel runtime. Skipped without Go, its modules, or a built kernel."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from fairlane_lab.definition.expansion import Selection, expand
from fairlane_lab.definition.loading import load
from fairlane_lab.paths import REPOSITORY
from fairlane_lab.runners import sim
from fairlane_lab.sim.kernel import BUILT

EXAMPLE = REPOSITORY / "docs" / "examples" / "quic"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built program."""
    if not (BUILT / "linux").exists():
        pytest.skip("no kernel is built: make kernel")
    if shutil.which("go") is None:
        pytest.skip("no Go is installed, which builds docs/examples/quic")
    folder = tmp_path_factory.mktemp("quic")

    def go(*words: str, seconds: float) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "CGO_ENABLED": "0"}
        return subprocess.run(
            ["go", *words], cwd=EXAMPLE, env=environment, capture_output=True, text=True, timeout=seconds
        )

    modules = go("mod", "download", seconds=120)
    if modules.returncode:
        pytest.skip(f"quic-go is not to be had: {modules.stderr[-300:]}")
    built = go("build", "-o", str(folder / "quic"), ".", seconds=400)
    assert built.returncode == 0, built.stderr
    return folder


def test_quic_and_tcp_share_the_line_and_a_seed_repeats(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(program)
    values = {"duration_s": (20,), "warmup_s": (5,), "control": ("drop-tail",)}
    (run,) = expand(load(str(EXAMPLE / "quic.toml")), Selection("kernel", repeats=1, values=values))
    first, second = sim.run_kernel(run), sim.run_kernel(run)
    goodput_bps = {flow.flow: flow.goodput_bps for flow in first.flows}
    assert min(goodput_bps.values()) > 1_000_000
    assert sum(goodput_bps.values()) > 9_000_000
    assert goodput_bps == {flow.flow: flow.goodput_bps for flow in second.flows}
