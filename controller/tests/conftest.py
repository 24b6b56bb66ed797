# SPDX-License-Identifier: Apache-2.0
"""Fixtures: a real switch of each target that this machine has; what is missing is skipped and said."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from live_page import opened
from live_switch import COMPILED, TARGETS, LiveSwitch, binary

if TYPE_CHECKING:
    from playwright.sync_api import Page

settings.register_profile("fairlane", deadline=None, derandomize=True)
"""No clock, no chance: what a busy machine delays is no failure, and every run tries the same examples."""
settings.load_profile("fairlane")


@pytest.fixture(params=TARGETS)
def bare_switch(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LiveSwitch]:
    """A running switch without interfaces and without a program, its run state written."""
    target = str(request.param)
    if binary(target) is None:
        pytest.skip(f"the {target} switch is not on this machine (build it, or set FAIRLANE_BIN_DIR / PATH)")
    if not (COMPILED / "qthresh.json").is_file():
        pytest.skip("p4src/compiled/qthresh.json is not there")
    switch = LiveSwitch(target, tmp_path)
    switch.write_state()
    switch.start()
    yield switch
    switch.kill()


@pytest.fixture
def switch(bare_switch: LiveSwitch) -> LiveSwitch:
    """The same after `fairlane config init --scheme qthresh`."""
    bare_switch.fairlane("config", "init", "--scheme", "qthresh")
    return bare_switch


@pytest.fixture
def page(switch: LiveSwitch, tmp_path: Path) -> Iterator[Page]:
    """The live page of the switch, open."""
    with opened(switch, tmp_path) as page:
        yield page


@pytest.fixture(params=TARGETS)
def wired_switch(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LiveSwitch]:
    """An initialised switch with veth pairs at ports 1 and 3; frames are sent into the far ends `<name>x`."""
    target = str(request.param)
    if binary(target) is None:
        pytest.skip(f"the {target} switch is not on this machine (build it, or set FAIRLANE_BIN_DIR / PATH)")
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("interfaces need root and iproute2")
    tag = f"ctl{secrets.token_hex(2)}"
    interfaces = {1: f"{tag}p1", 3: f"{tag}p3"}
    made: list[str] = []
    switch = LiveSwitch(target, tmp_path, interfaces)
    try:
        for name in interfaces.values():
            subprocess.run(["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}x"], check=True)
            made.append(name)
            for end in (name, f"{name}x"):
                Path(f"/proc/sys/net/ipv6/conf/{end}/disable_ipv6").write_text("1", encoding="ascii")
                subprocess.run(["ip", "link", "set", end, "up"], check=True)
        switch.write_state()
        switch.start()
        switch.fairlane("config", "init", "--scheme", "qthresh")
        yield switch
    finally:
        switch.kill()
        for name in made:
            subprocess.run(["ip", "link", "del", name], check=False)
