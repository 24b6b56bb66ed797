# SPDX-License-Identifier: Apache-2.0
"""What the wheel is made of: the rooms' packages with what they read, in the places that they have in the tree, under `fairlane_tree`.

A `.pth` file makes Python look for packages there. So every path that the code derives from its own place is right in a wheel too.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("controller", "hosts", "lab", "mininet", "switch")
TREE = "fairlane_tree"
CONTENTS = (
    "controller/fairlane",
    "controller/fairlane_controller",
    "docs/examples",
    "docs/results/data",
    "hosts/bpf",
    "hosts/cc",
    "hosts/fairlane_hosts",
    "lab/experiments",
    "lab/papers",
    "lab/claims.toml",
    "lab/fairlane_lab",
    "mininet/fairlane_topology",
    "mininet/topologies",
    "p4src/compiled",
    "p4src/include",
    "ptf_tests",
    "setup/doctor.py",
    "setup/packages.txt",
    "setup/setup.sh",
    "switch/fairlane_switch",
    "switch/target/release/fairlane-switch",
    "switch/target/release/fairlane-traffic",
)
NOT_IN_IT = ("test_", "fuzz_", "__pycache__", ".pytest_cache")

CARRIED = "ptf_tests/carried"
"""Where ptf is in the wheel: as a dependency it brings others, which are not used here and of which one wants a compiler."""


def read(folder: str) -> dict[str, Any]:
    """The `project` table of a room, or of the whole tree."""
    project: dict[str, Any] = tomllib.loads((ROOT / folder / "pyproject.toml").read_text())["project"]
    return project


def files() -> Iterator[Path]:
    """All files of the contents."""
    for name in CONTENTS:
        path = ROOT / name
        if not path.exists():
            raise FileNotFoundError(f"{name} is missing: `make setup` builds it")
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and not any(part.startswith(NOT_IN_IT) for part in file.relative_to(ROOT).parts):
                yield file


def ptf() -> dict[str, str]:
    """Where each file of ptf is in the environment, and in the wheel."""
    (packages,) = (ROOT / ".venv" / "lib").glob("python3*/site-packages")
    (about,) = packages.glob("ptf-*.dist-info")
    there = [*(packages / "ptf").rglob("*.py"), *(path for path in (about / "licenses").rglob("*") if path.is_file())]
    found = {str(file): f"{TREE}/{CARRIED}/{file.relative_to(packages)}" for file in sorted(there)}
    return {**found, str(ROOT / ".venv" / "bin" / "ptf"): f"{TREE}/{CARRIED}/run_ptf"}


class CustomMetadataHook(MetadataHookInterface):
    """The version is the tree's; dependencies, scripts and commands are those of all rooms."""

    def update(self, metadata: dict[str, Any]) -> None:
        rooms = [read(room) for room in ROOMS]
        own = {room["name"] for room in rooms}
        needed = {need for room in rooms for need in room["dependencies"] if need not in own}
        development = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]["dev"]
        needed |= {need for need in development if need.startswith("scapy")}  # of the PTF tests
        metadata["version"] = read(".")["version"]
        metadata["dependencies"] = sorted(needed)
        metadata["scripts"] = {name: of for room in rooms for name, of in room.get("scripts", {}).items()}
        commands = [room.get("entry-points", {}).get("fairlane.commands", {}) for room in rooms]
        metadata["entry-points"] = {"fairlane.commands": {name: of for each in commands for name, of in each.items()}}
        metadata["readme"] = {"content-type": "text/markdown", "text": (ROOT / "README.md").read_text()}


class CustomBuildHook(BuildHookInterface[Any]):
    """The contents, the file that makes Python find them, and a name that says for which machine they are."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        del version
        path = Path(self.directory) / "fairlane.pth"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{TREE}/{room}\n" for room in ROOMS))
        build_data["pure_python"] = False
        build_data["tag"] = f"cp310-abi3-linux_{platform.machine()}"
        build_data["force_include"] = {
            str(path): path.name,
            **{str(file): f"{TREE}/{file.relative_to(ROOT)}" for file in files()},
            **ptf(),
        }
