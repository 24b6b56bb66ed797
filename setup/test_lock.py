# SPDX-License-Identifier: Apache-2.0
"""The locks: one version of every package, for each Python that is supported, and nothing else in this environment."""

from __future__ import annotations

import re
import sys
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = [ROOT / name / "pyproject.toml" for name in ("switch", "controller", "hosts", "lab")]
OURS = {"fairlane-switch", "fairlane-controller", "fairlane-hosts", "fairlane-topology", "fairlane-lab"}


def locked(**environment: str) -> dict[str, str]:
    """Version by package where these markers hold, `python_version="3.10"` for one."""
    found: dict[str, str] = {}
    for line in (ROOT / "setup" / "constraints.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        wanted = Requirement(line)
        if wanted.marker is None or wanted.marker.evaluate(dict(environment)):
            name = canonicalize_name(wanted.name)
            assert name not in found, f"{name} has two versions with {environment}"
            version = re.fullmatch(r"==([^*,]+)", str(wanted.specifier))
            assert version, f"{line}: no single version"
            found[name] = version[1]
    return found


def wanted_directly() -> list[Requirement]:
    """What our packages and the tests name."""
    files: list[dict[str, Any]] = [tomllib.loads(path.read_text()) for path in (*PACKAGES, ROOT / "pyproject.toml")]
    groups: dict[str, list[str]] = files[-1]["dependency-groups"]
    lists = [*(file["project"].get("dependencies", []) for file in files), *groups.values()]
    return [Requirement(text) for names in lists for text in names]


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_every_package_that_is_named_has_one_version_for_every_python(python: str) -> None:
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    versions = locked(**environment)
    for wanted in wanted_directly():
        name = canonicalize_name(wanted.name)
        if name in OURS or (wanted.marker is not None and not wanted.marker.evaluate(dict(environment))):
            continue
        assert name in versions, f"{name} is in no lock for Python {python}"
        assert wanted.specifier.contains(versions[name], prereleases=True), f"{wanted}: {versions[name]} is locked"


def test_this_environment_has_what_the_lock_says() -> None:
    versions = locked()
    folder = ROOT / ".venv" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    there = {canonicalize_name(one.name): one.version for one in distributions(path=[str(folder)])}
    there = {name: version for name, version in there.items() if name not in OURS}
    assert len(there) > 50
    assert {name: versions.get(name) for name in there} == there


def test_one_version_everywhere() -> None:
    versions = {
        path.parent.name: tomllib.loads(path.read_text())["project"]["version"]
        for path in [ROOT / "pyproject.toml", *PACKAGES]
    }
    versions["Cargo.toml"] = tomllib.loads((ROOT / "switch" / "Cargo.toml").read_text())["workspace"]["package"][
        "version"
    ]
    for path, line in (
        ("CITATION.cff", r"^version: (.+)$"),
        ("controller/fairlane_controller/__init__.py", r'^__version__ = "(.+)"$'),
    ):
        (versions[path],) = re.findall(line, (ROOT / path).read_text(), re.MULTILINE)
    assert len(set(versions.values())) == 1, versions
