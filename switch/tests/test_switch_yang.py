# SPDX-License-Identifier: Apache-2.0
"""The YANG module of what OpenConfig has no leaf for is valid, and its augments are where the server serves them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyang", reason="pyang is not installed")

SWITCH = Path(__file__).resolve().parents[1]
MODULE = SWITCH / "yang" / "fairlane-port.yang"

# Of the two OpenConfig modules the parts that are augmented; the whole ones are not in this tree.
SKELETONS = {
    "openconfig-interfaces": "container interfaces { list interface { key name; leaf name { type string; } } }",
    "openconfig-qos": """container qos { container interfaces { list interface { key interface-id; leaf interface-id { type string; }
        container output { container queues { list queue { key name; leaf name { type string; }
        container state { config false; leaf transmit-pkts { type uint64; } } } } } } } }""",
}


def pyang(folder: Path, *arguments: str) -> str:
    """What pyang says of the module; fails when it is not valid."""
    for name, body in SKELETONS.items():
        text = f'module {name} {{ yang-version 1.1; namespace "urn:{name}"; prefix p; revision 2026-01-01; {body} }}'
        (folder / f"{name}.yang").write_text(text, encoding="utf-8")
    code = "import sys; from pyang.scripts import pyang_tool; sys.exit(pyang_tool.run())"
    command = [sys.executable, "-c", code, "-p", str(folder), *arguments, str(MODULE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stderr, done.stderr
    return done.stdout


def test_the_module_is_valid(tmp_path: Path) -> None:
    pyang(tmp_path, "--strict")


def test_what_is_served_stands_in_the_module(tmp_path: Path) -> None:
    tree = pyang(tmp_path, "-f", "tree")
    leaves = (SWITCH / "crates" / "gnmi" / "leaves.tsv").read_text(encoding="utf-8")
    served = set(re.findall(r"fairlane-port:port/\{\}/([a-z-]+)\t|fairlane-port:(waiting-[a-z]+)\t", leaves))
    served = {one or other for one, other in served}
    assert len(served) == 10
    for leaf in served:
        assert re.search(rf"\b{leaf}\??\s", tree), f"{leaf} is served and not in {MODULE.name}:\n{tree}"
