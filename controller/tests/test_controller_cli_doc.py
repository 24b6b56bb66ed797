# SPDX-License-Identifier: Apache-2.0
"""Every command of docs/cli.md is run as it stands, against a switch or a running loop."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path

import pytest
from fairlane_controller.cli.main import main
from fairlane_controller.verbs.catalog import CATALOG, Verb
from fairlane_controller.verbs.script import read_lines
from live_switch import COMPILED, REPOSITORY, LiveSwitch, binary
from test_controller_gfr_live import switch as gfr_switch  # noqa: F401  # pyright: ignore[reportUnusedImport]

TEXT = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"<!-- (needs|fails|file): (\S+) -->\n```(?:sh|text)?\n(.*?)```", re.DOTALL)


def lines(kind: str, value: str) -> list[str]:
    """The commands of all blocks so marked, without their comments."""
    blocks = [body for k, v, body in _BLOCK.findall(TEXT) if (k, v) == (kind, value)]
    return [
        re.sub(r"\s+#.*$", "", line) for body in blocks for line in body.splitlines() if line.startswith("fairlane ")
    ]


def run(line: str, folder: Path, monkeypatch: pytest.MonkeyPatch, code: int = 0) -> str:
    """One command in this process, `< FILE` as a shell would; asserts its exit code."""
    words = shlex.split(line)[1:]
    out = io.StringIO()
    with monkeypatch.context() as patch, contextlib.ExitStack() as stack:
        patch.chdir(folder)
        if "<" in words:
            at = words.index("<")
            patch.setattr(sys, "stdin", stack.enter_context((folder / words[at + 1]).open(encoding="utf-8")))
            words = words[:at]
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(out))
        with pytest.raises(SystemExit) as ended:
            main(words)
    assert ended.value.code == code, f"{line}\n{out.getvalue()}"
    return out.getvalue()


@pytest.fixture
def doc_switch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LiveSwitch:
    """An embedded switch with qthresh as the only running topology."""
    if binary("embedded") is None or not (COMPILED / "qthresh.json").is_file():
        pytest.skip("the embedded switch is not built")
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(tmp_path))
    folder = tmp_path / "one"
    folder.mkdir()
    return LiveSwitch("embedded", folder)


def test_the_reading_commands(doc_switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    doc_switch.write_state()
    doc_switch.start()
    try:
        doc_switch.fairlane("config", "init", "--scheme", "qthresh")
        with doc_switch.loop():
            commands = lines("needs", "loop")
            assert len(commands) > 10
            for line in commands:
                # Their own commands have tests of time limits: here nobody waits seconds for nothing.
                quick = re.sub(r"--for [12]s", "--for 0.3s", line).replace("--interval 2s", "--interval 0.2s")
                if "--event threshold" in quick:
                    doc_switch.fairlane("threshold", "set", "7")
                    quick = quick.replace("--event threshold", "--event changed")
                run(quick, doc_switch.folder, monkeypatch)
    finally:
        doc_switch.kill()
    names = {path.name for path in doc_switch.folder.iterdir()}
    assert {"run.csv", "all-ports.csv", "all-flows.csv", "all-drops.csv", "run.jsonl"} <= names


def test_the_verbs_the_script_and_the_mistakes(doc_switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch) -> None:
    ((_, name, body),) = [found for found in _BLOCK.findall(TEXT) if found[0] == "file"]
    (doc_switch.folder / name).write_text(body, encoding="utf-8")
    doc_switch.write_state()
    doc_switch.start()
    try:
        doc_switch.fairlane("config", "init", "--scheme", "qthresh")
        commands = lines("needs", "switch")
        shown = {line.split()[2] for line in commands if line.startswith("fairlane p4 ")}
        without_a_meter = {"meter_get_rates", "meter_set_rates"}  # qthresh has none
        assert {verb.name for verb in CATALOG} - without_a_meter <= shown
        for line in commands:
            run(line, doc_switch.folder, monkeypatch)
        for code in (2, 3):
            failing = lines("fails", str(code))
            assert failing
            for line in failing:
                assert run(line, doc_switch.folder, monkeypatch, code).startswith("fairlane: ")
    finally:
        doc_switch.kill()


@pytest.mark.parametrize("verb", [verb for verb in CATALOG if verb.example], ids=lambda verb: verb.name)
def test_the_examples_of_the_helps_are_lines_of_a_script(verb: Verb) -> None:
    (line,) = read_lines([f"{verb.name} {verb.example}"])
    assert line.verb == verb.name


def test_the_commands_of_gfr(gfr_switch: LiveSwitch, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811 - the fixture
    switch = gfr_switch
    if switch.target != "embedded":
        pytest.skip("the same commands as on the embedded switch")
    switch.fairlane("config", "apply", str(switch.folder / "gfr.toml"))
    monkeypatch.setenv("FAIRLANE_STATE_DIR", str(switch.folder.parent))
    rows = switch.json("flows", "--interval", "50ms")
    assert [(vc["vc"], vc["mcr_met"], vc["waiting_cells"]) for vc in rows] == [("vc1", "idle", 0), ("vc2", "idle", 0)]
    for line in lines("needs", "gfr"):
        run(f"{line} --state {switch.folder}", switch.folder, monkeypatch)
    with switch.loop():
        refused = switch.fairlane("p4", "table_clear", "vc_classify", code=7)
        assert "the running control loop keeps the table vc_classify of s1: use `fairlane gfr vc`" in refused
        routes = len(switch.json("p4", "table_dump", "ipv4_lpm")["entries"])
        switch.fairlane("p4", "table_clear", "ipv4_lpm")
        assert switch.json("p4", "table_dump", "ipv4_lpm")["entries"] == []
        switch.fairlane("undo")
        assert len(switch.json("p4", "table_dump", "ipv4_lpm")["entries"]) == routes
