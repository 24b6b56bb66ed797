# SPDX-License-Identifier: Apache-2.0
"""A program in a folder that has objects (docs/examples/tenants): commands, a file and undo change them on a switch, or nothing does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from fairlane_controller.errors import FairlaneError
from fairlane_controller.program.registry import load_program
from fairlane_controller.state.run_state import read_topology, write_topology
from live_switch import LiveSwitch, binary
from state_tools import documents

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture
def switch(tmp_path: Path) -> Iterator[LiveSwitch]:
    """A switch that runs the example."""
    if binary("embedded") is None:
        pytest.skip("the embedded switch is not on this machine (build it, or set FAIRLANE_BIN_DIR / PATH)")
    made = LiveSwitch("embedded", tmp_path)
    made.write_state()
    state, compiled = read_topology(tmp_path), EXAMPLES / "droptail" / "droptail"
    (one,) = state["switches"]
    one |= {"json": f"{compiled}.json", "p4info": f"{compiled}.p4info.txtpb", "ports": [{"port": 1}, {"port": 3}]}
    write_topology(tmp_path, {**state, "program": str(EXAMPLES / "tenants")})
    made.start()
    try:
        made.fairlane("config", "init")
        yield made
    finally:
        made.kill()


@pytest.fixture
def tenant(switch: LiveSwitch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs `fairlane tenant …` as an entry point would; what it prints."""
    app = load_program(str(EXAMPLES / "tenants")).load("cli:app")

    def run(*words: str) -> str:
        arguments = [*words, "--state", str(switch.folder)]
        typer.main.get_command(app).main(arguments, prog_name="fairlane tenant", standalone_mode=False)
        return capsys.readouterr().out

    return run


def limits(switch: LiveSwitch) -> dict[str, str]:
    """Of each port that has an entry."""
    rows = switch.json("p4", "table_dump", "droptail_limit")["entries"]
    return {row["match"]["egress_port"]: row["arguments"]["packets"] for row in rows}


def test_commands_a_file_and_undo_change_objects(switch: LiveSwitch, tenant: Any, tmp_path: Path) -> None:
    assert "Tenant ada added (s1: 1 entry)" in tenant("add", "ada", "--port", "s1:3", "--limit", "7packets")
    assert limits(switch) == {"3": "7"}
    assert documents(switch.folder)["tenants"]["tenants"] == [{"name": "ada", "port": "s1:3", "limit": 7}]
    assert "dry run: 1 update" in tenant("set", "ada", "--limit", "8", "--dry-run")
    with pytest.raises(FairlaneError, match=r"Tenant bob: tenants\[1\]\.port: s1:3 is another's"):
        tenant("add", "bob", "--port", "s1:3")
    with pytest.raises(FairlaneError, match=r"Tenant ada: tenants\[0\]\.limit: 0 is out of range"):
        tenant("set", "ada", "--limit", "0")
    with pytest.raises(FairlaneError, match="unknown Tenant 'eve'; valid: ada"):
        tenant("delete", "eve")
    assert limits(switch) == {"3": "7"}
    file = tmp_path / "fairlane.toml"
    text = switch.fairlane("config", "show")
    assert 'name = "ada"' in text
    file.write_text(text + '\n[[tenants]]\nname = "bob"\nport = "s1:1"\n', encoding="utf-8")
    assert switch.json("config", "diff", str(file), code=10)["same"] is False
    switch.fairlane("config", "apply", str(file))
    assert [row["name"] for row in json.loads(tenant("list", "--json"))] == ["ada", "bob"]
    assert limits(switch) == {"1": "10", "3": "7"}
    switch.fairlane("undo")
    assert limits(switch) == {"3": "7"}
    assert [row["name"] for row in json.loads(tenant("list", "--json"))] == ["ada"]
    tenant("delete", "ada")
    assert limits(switch) == {}


def test_a_restarted_switch_has_its_objects_again(switch: LiveSwitch, tenant: Any) -> None:
    tenant("add", "ada", "--port", "s1:3")
    switch.kill()
    switch.start()
    switch.fairlane("config", "init")
    assert limits(switch) == {"3": "10"}
