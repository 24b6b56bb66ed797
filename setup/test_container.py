# SPDX-License-Identifier: Apache-2.0
"""The image, the development container and the containerlab topology name what is there: files, stages, targets, versions, options, ports."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text()
TOPOLOGY = ROOT / "docs" / "examples" / "containerlab" / "fairlane.clab.yml"
PAGE = (ROOT / "docs" / "install.md").read_text()
MADE = {"dist/*.whl"}
"""By `make dist`, in a stage before."""


def has_target(name: str) -> bool:
    return re.search(rf"^{name}:", (ROOT / "Makefile").read_text(), re.MULTILINE) is not None


def test_what_the_dockerfile_copies_and_calls_is_there() -> None:
    stages = re.findall(r"^FROM .* AS (\w+)$", DOCKERFILE, re.MULTILINE)
    for line in re.findall(r"^COPY (.*)$", DOCKERFILE, re.MULTILINE):
        *sources, _ = (word for word in line.split() if not word.startswith("--from="))
        for stage in re.findall(r"--from=(\w+)", line):
            assert stage in stages, line
        for source in (source.removeprefix("/src/") for source in sources):
            assert source in MADE or source == "/opt/fairlane" or (ROOT / source).exists(), line
    for target in re.findall(r"\bmake (\w+)", DOCKERFILE):
        assert has_target(target), target
    for step in re.findall(r"^RUN setup/setup\.sh (\w+)", DOCKERFILE, re.MULTILINE):
        assert re.search(rf"^    {step}\) ", (ROOT / "setup" / "setup.sh").read_text(), re.MULTILINE), step


def test_the_image_has_the_pinned_rust() -> None:
    pinned = re.search(r'^channel = "(.*)"', (ROOT / "rust-toolchain.toml").read_text(), re.MULTILINE)
    assert pinned
    assert re.findall(r"^FROM rust:([\d.]+)-", DOCKERFILE, re.MULTILINE) == [pinned[1]]


def test_the_development_container_is_a_stage_of_the_dockerfile() -> None:
    told = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    build = told["build"]
    assert (ROOT / ".devcontainer" / build["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert (ROOT / ".devcontainer" / build["context"]).resolve() == ROOT
    assert f" AS {build['target']}\n" in DOCKERFILE
    assert has_target(told["postCreateCommand"].removeprefix("make "))


def test_the_topology_starts_a_switch_with_options_interfaces_programs_and_a_port_that_exist() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: make docs installs it")
    topology: dict[str, Any] = yaml.safe_load(TOPOLOGY.read_text())["topology"]
    nodes = topology["nodes"]
    ends = [end for link in topology["links"] for end in link["endpoints"]]
    assert {end.split(":")[0] for end in ends} == set(nodes)
    assert {node["image"] for node in nodes.values()} == set(re.findall(r"docker build -t (\w+)", PAGE))
    shell, script = shlex.split(nodes["s1"]["cmd"])
    assert shell == "-c"
    command = shlex.split(script.rpartition("exec ")[2])
    binary = ROOT / "switch" / "target" / "release" / command[0]
    told = subprocess.run([binary, "--help"], capture_output=True, text=True, timeout=20, check=True).stdout
    for option in (word for word in command if word.startswith("-")):
        assert re.search(rf"(?:^|[\s,]){option}\b", told), option
    interfaces = dict(re.findall(r"-i (\d+)@(\w+)", script))
    assert sorted(f"s1:{name}" for name in interfaces.values()) == sorted(end for end in ends if end.startswith("s1:"))
    assert all(name == f"eth{port}" for port, name in interfaces.items())
    assert f"until ip link show {max(interfaces.values())} up" in script
    for path in re.findall(r"/opt/fairlane/programs/(\S+)", script):
        assert (ROOT / "p4src" / "compiled" / path).is_file(), path
    (served,) = re.findall(r"--grpc 0\.0\.0\.0:(\d+)", script)
    assert nodes["s1"]["ports"] == [f"127.0.0.1:{served}:{served}"]
    assert set(re.findall(r"--switch s1=127\.0\.0\.1:(\d+)", PAGE)) == {served}
    macs = re.findall(r"'=>' (\S+) \d --switch", PAGE)
    assert macs == re.findall(r"set eth1 address (\S+)", TOPOLOGY.read_text())
