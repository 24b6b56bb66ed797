# SPDX-License-Identifier: Apache-2.0
"""The doctor: every finding that must be mended says how, and the exit code follows."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import doctor
import pytest


def test_every_check_gives_a_finding_and_a_way_to_mend_it() -> None:
    for check in doctor.CHECKS:
        found = check()
        assert found.what
        assert found.mend, f"{check.__name__} does not say how to mend it"


@pytest.mark.parametrize(
    ("text", "version"), [("cargo 1.95.0 (f2d3ce0bd)", (1, 95)), ("6.18.44-fc", (6, 18)), ("", ()), ("no digits", ())]
)
def test_versions(text: str, version: tuple[int, ...]) -> None:
    assert doctor.version_of(text) == version


@pytest.mark.parametrize("stream", ["", " >&2"])
def test_a_version_counts_on_either_stream(stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    says = "echo p4c-bm2-ss; echo 'Version 1.2.5.16 (SHA: 0123456 BUILD: Release)'"
    script(tmp_path / "p4c-bm2-ss", f"({says}){stream}")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.p4c() == doctor.Finding(True, "p4c-bm2-ss 1.2.5.16", doctor.p4c().mend)


def test_what_fails_has_no_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "cargo", "echo 'error: toolchain 1.95.0 is not installed' >&2; exit 1")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert doctor.rust().what == "Rust: none"


@pytest.mark.parametrize(
    ("is_built", "free_gib", "ok", "mend"),
    [
        (False, 2.9, False, "the build needs 3 GiB"),
        (False, 3.0, True, ""),
        (True, 2.9, True, ""),
        (True, 0.4, False, "runs need 0.5 GiB"),
    ],
)
def test_the_build_needs_its_room_only_once(
    is_built: bool, free_gib: float, ok: bool, mend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "binaries", lambda: doctor.Finding(is_built, ""))
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: SimpleNamespace(free=int(free_gib * 2**30)))
    found = doctor.disk()
    assert found.ok is ok
    assert found.mend.endswith(mend)


DEAD_KERNEL = """
echo 'Linux version 6.12.117' >&2
echo 'userspace - ptrace set fp regs failed, errno = 14' >&2
kill -9 $$
"""


def test_a_kernel_that_does_not_boot_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "linux", DEAD_KERNEL)
    (tmp_path / "guest").touch()
    monkeypatch.setattr(doctor, "BUILT_KERNEL", tmp_path)
    found = doctor.virtual_kernel()
    assert found.ok is False
    assert "does not boot: it ended with -9" in found.what
    assert found.what.endswith("\n          userspace - ptrace set fp regs failed, errno = 14")


def test_a_kernel_that_is_silent_does_not_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "linux", "exec tail -f /dev/null")
    (tmp_path / "guest").touch()
    monkeypatch.setattr(doctor, "BOOT_S", 0.3)
    assert doctor.boot_failure(tmp_path) == "it has not ended after 0.3 s"


def script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_a_missing_thing_makes_the_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        doctor,
        "CHECKS",
        (lambda: doctor.Finding(False, "a thing", "get it"), lambda: doctor.Finding(None, "another", "or not")),
    )
    assert doctor.main() == 1
    output = capsys.readouterr().out
    assert "MISSING a thing\n          -> get it" in output
    assert "absent  another" in output
    assert "1 to mend" in output


def test_it_runs_without_the_environment() -> None:
    script = Path(doctor.__file__)
    done = subprocess.run([sys.executable, "-I", str(script)], capture_output=True, text=True, timeout=60)
    assert "kernel" in done.stdout
    assert done.returncode in (0, 1)


def test_set_up_without_root_and_without_sudo_names_the_command_for_root(tmp_path: Path) -> None:
    tree, tools = tmp_path / "tree" / "setup", tmp_path / "bin"
    tree.mkdir(parents=True)
    tools.mkdir()
    shutil.copy(doctor.ROOT / "setup" / "setup.sh", tree)
    (tree / "packages.txt").write_text("first  # why\nsecond\n")
    for name in ("bash", "dirname", "grep", "mkdir", "sed", "xargs", "echo"):
        (tools / name).symlink_to(shutil.which(name) or name)
    for name, does in {"id": "echo 1000", "dpkg-query": "exit 1", "apt-get": "exit 1"}.items():
        (tools / name).write_text(f"#!/bin/sh\n{does}\n")
        (tools / name).chmod(0o755)
    command = ["bash", tree / "setup.sh", "packages"]
    done = subprocess.run(command, env={"PATH": str(tools)}, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "no sudo. As root: apt-get update && apt-get install --no-install-recommends first second" in done.stderr
