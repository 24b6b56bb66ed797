# SPDX-License-Identifier: Apache-2.0
"""The wheel of `make dist`, in an empty environment of its own, with no compiler on the PATH: an experiment, the switch, the doctor."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
UV = ROOT / ".setup" / "uv" / "bin" / "uv"
NO_RIGHTS = ["/usr/bin/setpriv", "--bounding-set=-all,+setfcap", "--inh-caps=-all"] if os.geteuid() == 0 else []
"""As of a user who is not root; root has to have the right `setfcap` to be root in a namespace of users too."""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(["setup/setup.sh", "dist"], cwd=ROOT, capture_output=True, text=True, timeout=400)
    assert built.returncode == 0, built.stderr
    (wheel,) = (ROOT / "dist").glob("*.whl")
    assert "-cp310-abi3-manylinux" in wheel.name
    constraints = ROOT / "setup" / "constraints.txt"
    for command in (
        [UV, "venv", "--quiet", "--python", sys.executable, folder / "venv"],
        [UV, "pip", "install", "--quiet", "--python", folder / "venv", "--constraint", constraints, wheel],
    ):
        subprocess.run(command, check=True, timeout=300)
    (folder / "bin").mkdir()
    for name in ("ip", "unshare"):  # of the packages iproute2 and util-linux: no compiler
        (folder / "bin" / name).symlink_to(shutil.which(name) or name)
    return folder


def run(environment: Path, *command: str) -> str:
    """What a command of the environment prints, in an empty folder."""
    program = environment / "venv" / "bin" / command[0]
    done = subprocess.run(
        [*NO_RIGHTS, program, *command[1:]],
        cwd=environment,
        env={"PATH": str(environment / "bin"), "HOME": str(environment)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.timeout(900)
def test_a_wheel_runs_an_experiment(environment: Path) -> None:
    shown = run(environment, "fairlane", "lab", "run", "qthresh-table1", "--quick")
    assert "Reno and Vegas behind drop-tail" in shown
    assert list(environment.glob("results/qthresh-table1/*/plots/*.png"))


@pytest.mark.timeout(900)
def test_a_wheel_has_the_switch_the_links_and_the_doctor(environment: Path) -> None:
    assert "--grpc" in run(environment, "fairlane-switch", "--help")
    assert "--cpu" in run(environment, "fairlane-switch", "network", "--help")
    assert "everything is there" in run(environment, "fairlane", "setup", "doctor")
    made = run(environment, "fairlane", "new", "mine")
    assert (environment / "mine" / "program.py").is_file(), made


@pytest.mark.timeout(900)
def test_a_wheel_tests_a_program_packet_by_packet(environment: Path) -> None:
    run(environment, "fairlane", "new", "tested")
    if subprocess.run([*NO_RIGHTS, "unshare", "-rn", "true"], capture_output=True, timeout=10).returncode != 0:
        pytest.skip("this system gives a user no namespaces")
    run(environment, "fairlane", "p4", "test", "tested/", "limit", "forwarding.ForwardIpv4")
    (environment / "tested" / "ptf" / "limit.py").write_text("no Python")
    with pytest.raises(AssertionError, match="no Python"):
        run(environment, "fairlane", "p4", "test", "tested/", "limit")


@pytest.mark.timeout(900)
def test_a_wheel_s_switch_serves_p4runtime_without_root(environment: Path) -> None:
    run(environment, "fairlane", "new", "served")
    program = ["--pipeline", "served/served.json", "--p4info", "served/served.p4info.txtpb"]
    switch = subprocess.Popen(
        [*NO_RIGHTS, environment / "venv" / "bin" / "fairlane-switch", "--grpc", "127.0.0.1:0", *program],
        cwd=environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert switch.stdout is not None
        ready = switch.stdout.readline()
        address = next(word.partition("=")[2] for word in ready.split() if word.startswith("grpc="))
        at = ["--switch", f"s1={address}"]
        run(environment, "fairlane", "p4", "table_add", "served_limit", "set_limit", "3", "=>", "7", *at)
        assert "7" in run(environment, "fairlane", "p4", "table_dump", "served_limit", *at)
    finally:
        switch.terminate()
        assert switch.wait(10) == 0
