# SPDX-License-Identifier: Apache-2.0
"""A sender in a folder of the user's own: found by its path or by the environment; each fault has its message."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fairlane_hosts import build, variants
from fairlane_hosts.errors import HostsError
from fairlane_hosts.simulator import congestion_control, find_simulated
from fairlane_hosts.variants import OWN_SENDERS, VARIANTS, add_sender, find_variant

EXAMPLE = build.ROOT.parent / "docs" / "examples" / "gentle"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the example, which is forgotten afterwards."""
    monkeypatch.setenv(OWN_SENDERS, "")
    monkeypatch.setenv("FAIRLANE_HOSTS_BUILD", str(tmp_path / "build"))
    monkeypatch.setattr(variants, "_VARIANTS", table := dict(VARIANTS))
    monkeypatch.setattr(variants, "VARIANTS", table)
    shutil.copytree(EXAMPLE, tmp_path / "gentle")
    return tmp_path / "gentle"


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_its_folder_is_its_name_once_and_its_name_then(folder: Path) -> None:
    sender = find_variant(f"{folder}/")
    assert (sender.name, sender.congestion_control, sender.folder) == ("gentle", "fl_gentle", folder)
    assert find_variant("gentle") is sender
    assert os.environ[OWN_SENDERS] == str(folder)
    add_sender(folder)
    assert os.environ[OWN_SENDERS] == str(folder), "once"


def test_the_processes_that_a_run_starts_know_it(folder: Path) -> None:
    add_sender(folder)
    program = "from fairlane_hosts.variants import find_variant; print(find_variant('gentle').folder)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == str(folder)


def test_one_that_the_environment_names_and_that_is_broken_is_said_when_it_is_missed(folder: Path) -> None:
    (folder / "gentle.h").unlink()
    program = "from fairlane_hosts.variants import find_variant; find_variant('gentle')"
    environment = {**os.environ, OWN_SENDERS: str(folder)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    assert "no TCP variant is called 'gentle'" in done.stderr
    assert f"{OWN_SENDERS}: {folder}/gentle.h: cannot be read" in done.stderr


def test_the_simulator_gets_a_library_that_is_compiled_again_when_the_header_changed(folder: Path) -> None:
    add_sender(folder)
    first = Path(find_simulated("gentle")["cc"])
    assert first.is_file()
    assert congestion_control("gentle") == "gentle"
    assert find_simulated("gentle")["cc"] == str(first), "nothing changed"
    change(folder / "gentle.h", "* 7 / 8", "* 3 / 4")
    assert find_simulated("gentle")["cc"] != str(first)
    change(folder / "gentle.h", "* 3 / 4", "* three / 4")
    with pytest.raises(HostsError, match=r"cannot compile .*gentle\.h:\n(.*\n)*.*undeclared identifier 'three'"):
        find_simulated("gentle")


@pytest.mark.kernel
def test_bpf_compiles_it_alone(folder: Path) -> None:
    add_sender(folder)
    assert build.build_all(own_only=True) == ["fl_gentle.bpf.o"]
    assert build.build_all(own_only=True) == []
    change(folder / "gentle.h", "* 7 / 8", "* 3 / 4")
    assert build.build_all(own_only=True) == ["fl_gentle.bpf.o"]


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("sender.py", "SENDER =", "MINE =", "sender.py: SENDER must be a fairlane_hosts.variants.Variant"),
        ("sender.py", "SENDER =", "SENDER = 1 / 0 or", "sender.py: ZeroDivisionError: division by zero"),
        ("sender.py", 'name="gentle"', 'name="Gentle!"', "name 'Gentle!': small letters and digits"),
        (
            "sender.py",
            'name="gentle"',
            'name="thirteenchars"',
            "name 'thirteenchars': small letters and digits, with single - or _ between them, at most 12 characters",
        ),
        ("sender.py", 'name="gentle"', 'name="cubic"', "there is a sender 'cubic' already, of fairlane"),
        ("sender.py", 'header="gentle"', 'header="rough"', "rough.h: cannot be read"),
        ("gentle.h", "#ifdef CC_SENDER_gentle", "#if 1", "gentle.h: no line `#ifdef CC_SENDER_gentle` with its hooks"),
    ],
)
def test_faults(folder: Path, file: str, old: str, new: str, message: str) -> None:
    change(folder / file, old, new)
    with pytest.raises(HostsError) as raised:
        add_sender(folder)
    assert raised.value.kind == "bad-sender"
    assert message in raised.value.message
    assert "gentle" not in VARIANTS
    assert os.environ[OWN_SENDERS] == ""


def test_a_second_one_of_the_same_name_is_refused(folder: Path) -> None:
    add_sender(folder)
    shutil.copytree(folder, folder.parent / "other")
    with pytest.raises(HostsError, match=f"there is a sender 'gentle' already, in {folder}"):
        add_sender(folder.parent / "other")


def test_no_folder(tmp_path: Path) -> None:
    with pytest.raises(HostsError, match=r"a sender's folder has a file sender\.py"):
        find_variant(f"{tmp_path}/none/")
