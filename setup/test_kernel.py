# SPDX-License-Identifier: Apache-2.0
"""`make kernel` says what is missing before it builds anything."""

from __future__ import annotations

import subprocess
from pathlib import Path

import kernel
import pytest


@pytest.fixture(autouse=True)
def nothing_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "FOLDER", tmp_path)
    monkeypatch.setattr(kernel, "PACKAGE_STAMP", tmp_path / "none")


def apt_knows(monkeypatch: pytest.MonkeyPatch, packages: str) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        shown = "Version: 6.12.9-1\n" if command[1] == "show" else packages
        return subprocess.CompletedProcess(command, 0, shown, "")

    monkeypatch.setattr(subprocess, "run", run)


def test_another_architecture(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(kernel.platform, "machine", lambda: "aarch64")
    with pytest.raises(SystemExit, match="2"):
        kernel.main()
    assert "is built on x86_64; this machine is aarch64" in capsys.readouterr().err


def test_only_old_sources(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    apt_knows(monkeypatch, "linux-source-6.1\nlinux-libc-dev\n")
    with pytest.raises(SystemExit, match="2"):
        kernel.main()
    assert "no source package of Linux 6.12 or newer (it knows: linux-source-6.1)" in capsys.readouterr().err


def test_the_patch_s_own_version_is_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    apt_knows(monkeypatch, "linux-source-6.1\nlinux-hwe-6.17-source-6.17.0\nlinux-source-6.12\n")
    assert kernel.find_package() == ("linux-source-6.12", "6.12.9-1")
    apt_knows(monkeypatch, "linux-hwe-6.14-source-6.14.0\nlinux-source-6.8.0\nlinux-hwe-6.17-source-6.17.0\n")
    assert kernel.find_package()[0] == "linux-hwe-6.17-source-6.17.0"
