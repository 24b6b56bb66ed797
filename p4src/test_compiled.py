# SPDX-License-Identifier: Apache-2.0
"""The committed JSON and P4Info belong to the committed P4 sources, and the check can tell."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

P4SRC = Path(__file__).resolve().parent


def load_compile_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("p4src_compile", P4SRC / "compile.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


compile_script = load_compile_script()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for folder in ("p4src", "docs/examples"):
        shutil.copytree(P4SRC.parent / folder, tmp_path / folder)
    return tmp_path


def test_compiled_files_are_current() -> None:
    assert compile_script.stale(compile_script.REPOSITORY) == []


@pytest.mark.parametrize("program", compile_script.PROGRAMS)
def test_bmv2_s_two_threads_lose_no_write(program: str) -> None:
    """BMv2 runs ingress and egress side by side, but nothing else while an action runs: what both write they write from what it was, in one action."""
    mailboxes = {"probe_open"}
    "Egress puts a number there, ingress takes it out."
    compiled = json.loads((P4SRC / "compiled" / f"{program}.json").read_text())
    actions = {action["id"]: action["primitives"] for action in compiled["actions"]}
    writes: dict[str, dict[str, list[bool]]] = {}
    for pipeline in compiled["pipelines"]:
        for action in {number for table in pipeline["tables"] for number in table["action_ids"]}:
            used = {
                (one["op"], p["value"])
                for one in actions[action]
                for p in one["parameters"]
                if p["type"] == "register_array"
            }
            for name in (name for op, name in used if op == "register_write"):
                writes.setdefault(name, {}).setdefault(pipeline["name"], []).append(("register_read", name) in used)
    shared = {name: [*of["ingress"], *of["egress"]] for name, of in writes.items() if len(of) == 2}
    assert {name for name, read in shared.items() if not all(read)} <= mailboxes


def test_changed_source_is_noticed(copy: Path) -> None:
    source = copy / "p4src" / "include" / "sizes.p4"
    source.write_text(source.read_text() + "// one more line\n")
    assert compile_script.stale(compile_script.Layout(copy)) == [
        "p4src/include/sizes.p4 was changed after the last compilation"
    ]


def test_added_and_removed_sources_are_noticed(copy: Path) -> None:
    (copy / "p4src" / "new.p4").write_text("")
    (copy / "p4src" / "include" / "parser.p4").unlink()
    assert compile_script.stale(compile_script.Layout(copy)) == [
        "p4src/new.p4 was added after the last compilation",
        "p4src/include/parser.p4 was removed after the last compilation",
    ]


def test_edited_json_is_noticed(copy: Path) -> None:
    compiled = copy / "p4src" / "compiled" / "qthresh.json"
    compiled.write_text(compiled.read_text() + "\n")
    assert compile_script.stale(compile_script.Layout(copy)) == ["p4src/compiled/qthresh.json is not what p4c wrote"]


def test_missing_compiler_is_said_clearly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert compile_script.main([]) == 2
    assert "p4c-bm2-ss is not on the PATH" in capsys.readouterr().err


@pytest.mark.parametrize("name", compile_script.PROGRAMS)
def test_json_records_relative_paths_only(name: str) -> None:
    program = json.loads((P4SRC / "compiled" / f"{name}.json").read_text())
    assert program["program"] == f"p4src/{name}.p4"
    files = {block.get("source_info", {}).get("filename", "p4src/") for block in program["actions"]}
    assert all(not name.startswith("/") for name in files)


def test_every_main_program_is_compiled() -> None:
    mains = {path.stem for path in P4SRC.glob("*.p4")}
    assert mains == set(compile_script.PROGRAMS)
    assert set(json.loads(compile_script.REPOSITORY.manifest.read_text())["programs"]) == mains | set(
        compile_script.EXAMPLES
    )


def test_compiler_version_is_recorded() -> None:
    assert json.loads(compile_script.REPOSITORY.manifest.read_text())["version"].startswith("Version ")


def test_cpu_port_of_the_program_is_the_one_in_the_design() -> None:
    assert "#define CPU_PORT 510\n" in (P4SRC / "include" / "sizes.p4").read_text()
