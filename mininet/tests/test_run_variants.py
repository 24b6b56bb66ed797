# SPDX-License-Identifier: Apache-2.0
"""Real runs of the launcher with modified senders: hosts have their programs, and nothing is left, also after kill -9. Needs root.

Names, objects, registry and cgroups are the test's own, so that a run beside it is not disturbed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_session import launcher, wait_until
from fairlane_hosts import loader, registry
from fairlane_topology import state as fl_state

HERE = Path(__file__).parents[1]
INSTANCE = "91"
PREFIX = "tr_"
TIMEOUT_S = 240.0

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(os.geteuid() != 0, reason="Mininet needs root"),
]


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The objects under names of their own; what the environment must say for that."""
    environment = {
        "FAIRLANE_HOSTS_BUILD": str(tmp_path_factory.mktemp("build")),
        "FAIRLANE_CC_PREFIX": PREFIX,
    }
    command = [str(Path(sys.executable).with_name("fairlane")), "hosts", "build"]
    subprocess.run(command, check=True, timeout=120, env={**os.environ, **environment}, stdout=subprocess.DEVNULL)
    return environment


@pytest.fixture(autouse=True)
def clean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: dict[str, str]) -> Iterator[None]:
    for name, value in {**build, "FAIRLANE_STATE_DIR": str(tmp_path / "state")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("FAIRLANE_CC_STATE", str(tmp_path / "cc.json"))
    yield
    fl_state.clean(INSTANCE)


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    """The satellite link between an ENA sender and a host that only receives."""
    document = json.loads((HERE / "topologies" / "satellite.json").read_text())
    document["hosts"]["h1"]["variant"] = "ena-sack"
    document["hosts"]["h2"].pop("variant")
    path = tmp_path / "topology.json"
    path.write_text(json.dumps(document))
    return path


def command_of(topology: Path, *arguments: str) -> list[str]:
    return launcher(INSTANCE, "--no-controller", "--topology", str(topology), *arguments)


def folder() -> Path:
    return registry.cgroup_folder()


def nothing_is_left() -> bool:
    registered = [name for name in loader.available() if name.startswith(PREFIX)]
    return not registered and not folder().exists() and not (registry.names() or registry.read().hosts)


def test_sender_and_receiver_have_the_program_and_commands_run_in_their_cgroups(topology: Path, tmp_path: Path) -> None:
    script = tmp_path / "commands"
    asked = [f"{host} cat /proc/self/cgroup" for host in ("h1", "h2")]
    script.write_text("\n".join([*asked, "h1 sysctl net.ipv4.tcp_congestion_control", ""]))
    done = subprocess.run(
        command_of(topology, "--script", str(script)), capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout + done.stderr
    for host in ("h1", "h2"):
        assert f"0::/{folder().name}/{INSTANCE}/{host}" in said
    assert f"net.ipv4.tcp_congestion_control = {PREFIX}ena_sack" in said
    wait_until(nothing_is_left, "programs, names and cgroups to be gone", TIMEOUT_S)


def test_after_kill_9_and_make_stop_nothing_is_left(topology: Path) -> None:
    process = subprocess.Popen(
        command_of(topology), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def attached() -> int:
        assert process.poll() is None, "the launcher has ended"
        return len(registry.read().hosts)

    try:
        wait_until(lambda: attached() == 2, "both hosts to have their program", TIMEOUT_S)
        assert len(list(folder().glob(f"{INSTANCE}/h?"))) == 2
    finally:
        process.kill()
        process.wait(timeout=10)
    # Nobody has to: whoever watches the launcher removes it too, and maybe first.
    stop = subprocess.run(
        [sys.executable, "-m", "fairlane_topology.stop"], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    assert stop.returncode == 0, stop.stderr
    wait_until(nothing_is_left, "programs, names and cgroups to be gone", TIMEOUT_S)
    assert fl_state.instances() == []
