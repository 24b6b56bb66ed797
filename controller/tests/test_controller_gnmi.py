# SPDX-License-Identifier: Apache-2.0
"""Ports without a switch: what a change says on the wire, what takes it back, and what BMv2's command line is asked."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.gnmi import bmv2
from fairlane_controller.gnmi.embedded import set_of
from fairlane_controller.gnmi.open import open_ports
from fairlane_controller.gnmi.ports import PortChange, PortInfo, QueueInfo
from fairlane_controller.history.steps import PortStep
from fairlane_controller.state.run_state import RunState, SwitchState, read_run_state, read_topology, write_topology
from fairlane_controller.state.store import Store
from fairlane_controller.switch.client import Endpoint

ENDPOINT = Endpoint("s1", "127.0.0.1:50051")
STATE: dict[str, Any] = {
    "name": "s1",
    "grpc": "127.0.0.1:50051",
    "thrift": 20051,
    "ports": [
        {"port": 1, "interface": "s1-eth1", "rate_bps": 0, "queue_packets": 1000},
        {"port": 3, "interface": "s1-eth3", "rate_bps": 2e6, "queue_packets": 50, "mtu": 1000},
    ],
}


def bmv2_state() -> RunState:
    return RunState(name="t", target="bmv2", switches=(SwitchState.model_validate(STATE),))


def test_a_change_is_one_set_and_a_limit_of_nothing_is_deleted() -> None:
    updates, deletes = set_of(
        "s1-eth3", PortChange(rate_bps=0, queue_packets=7, scheduler="drr", enabled=False, weights={2: 5})
    )
    shaper = "/qos/scheduler-policies/scheduler-policy[name=s1-eth3]/schedulers/scheduler[sequence=1]"
    assert [(f"/{path}".replace("//", "/"), value) for path, value in updates] == [
        (f"{shaper}/one-rate-two-color/config/max-queue-depth-packets", 7),
        ("/interfaces/interface[name=s1-eth3]/port/config/scheduler", "drr"),
        ("/interfaces/interface[name=s1-eth3]/config/enabled", False),
        (f"{shaper}/inputs/input[id=2]/config/weight", 5),
    ]
    assert [f"/{path}".replace("//", "/") for path in deletes] == [f"{shaper}/one-rate-two-color/config/cir"]


def test_the_inverse_brings_back_what_was() -> None:
    before = PortInfo(
        3,
        "x",
        True,
        True,
        rate_bps=2_000_000,
        scheduler="strict",
        queues=8,
        queue_packets=50,
        queue_list=(QueueInfo(1, weight=4),),
    )
    change = PortChange(
        rate_bps=1, queue_packets=9, queue_bytes=1000, queues=16, scheduler="wrr", enabled=False, weights={1: 2}
    )
    assert change.inverse(before).values_by_name == {
        "rate_bps": 2_000_000,
        "queue_packets": 50,
        "queue_bytes": 0,
        "scheduler": "strict",
        "enabled": True,
        "weights": {"1": 4},
    }
    assert PortChange.from_values(change.values_by_name) == change


@pytest.mark.parametrize(
    ("wrong", "part"),
    [
        ({"rate_bps": 2 * 10**12}, "rate 2000000000000 is out of range"),
        ({"queues": 5000}, "queues 5000 is out of range"),
        ({"link_layer": "ip"}, "allowed: none, ethernet, atm"),
        ({"weights": {1: 0}}, "weight of queue 1 0 is out of range"),
    ],
)
def test_what_cannot_be_is_told_before_a_switch_is_asked(wrong: dict[str, Any], part: str) -> None:
    with pytest.raises(FairlaneError, match=part):
        PortChange(**wrong)


def test_a_change_is_told_in_words() -> None:
    change = PortChange(rate_bps=2_000_000, queue_bytes=0, enabled=False, weights={1: 3})
    assert change.describe() == "rate 2 Mbit/s, queue bytes unlimited, down, weight of queue 1 3"


def test_the_run_state_has_the_new_values_until_the_launcher_writes_another_one(tmp_path: Path) -> None:
    data = {"name": "t", "wire": {"x": 1}, "switches": [STATE]}
    write_topology(tmp_path, data)
    change = PortChange(rate_bps=5_000_000, queue_packets=80, enabled=False)
    with Store(tmp_path) as store:
        store.put(PortStep("s1", 3, PortChange(), change).documents(store))
        store.put(PortStep("s1", 3, PortChange(), PortChange(queue_packets=90)).documents(store))
    first, now = read_run_state(tmp_path).switches[0].ports
    assert (first.port, first.queue_packets) == (1, 1000)
    assert (now.rate_bps, now.queue_packets, now.mtu) == (5e6, 90, 1000)
    assert read_topology(tmp_path) == data
    write_topology(tmp_path, data)
    assert read_run_state(tmp_path).switches[0].ports[1].queue_packets == 50


# ---- BMv2 ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `simple_switch_CLI` that writes down what it is asked, and answers as the real one."""
    script = tmp_path / "bin" / bmv2.COMMAND
    script.parent.mkdir()
    asked = tmp_path / "asked"
    script.write_text(
        f"""#!/bin/sh
echo "$@" >> {asked}
cat | tee -a {asked} | while read line; do
  case "$line" in
    show_ports) printf '      port #      iface name    status\\n===\\n           1   s1-eth1   UP\\n           3   s1-eth3   DOWN\\n';;
    *" 9") echo 'Error: Invalid port';;
  esac
done
""",
        encoding="utf-8",
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{script.parent}:/usr/bin:/bin")
    return asked


def change(asked: PortChange, port: int = 3) -> list[str]:
    async def run() -> list[str]:
        async with open_ports(ENDPOINT, bmv2_state()) as ports:
            return await ports.set_port(port, asked)

    return asyncio.run(run())


def test_bmv2_is_asked_in_packets_a_second_and_that_is_said(command_line: Path) -> None:
    sentences = change(PortChange(rate_bps=2_000_000, queue_packets=80))
    assert command_line.read_text().splitlines() == [
        "--thrift-port 20051",
        "set_queue_rate 247 3",
        "set_queue_depth 80 3",
    ]
    assert sentences[0] == (
        "set_queue_rate 247 3: 2 Mbit/s is 247 packets/s for frames of 1014 bytes (the longest of the link); "
        "shorter frames get less"
    )


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        (PortChange(scheduler="drr"), "is a BMv2: scheduler: it has strict priority only"),
        (PortChange(queue_packets=5, queue_bytes=1000), "queue bytes: its queues are limited in packets only"),
        (PortChange(enabled=False), "`ip link set dev NAME down`"),
        (PortChange(rate_bps=0), "rate bps: a limit that was set can be changed, but not taken away"),
    ],
)
def test_what_bmv2_cannot_do_is_refused_and_nothing_is_done(command_line: Path, asked: PortChange, part: str) -> None:
    with pytest.raises(FairlaneError) as caught:
        change(asked)
    assert caught.value.code is ErrorCode.REFUSED
    assert part in caught.value.message
    assert not command_line.exists()


def test_bmv2_tells_its_ports_and_the_run_state_the_rest(command_line: Path) -> None:
    async def run() -> list[PortInfo]:
        async with open_ports(ENDPOINT, bmv2_state()) as ports:
            return await ports.ports()

    one, three = asyncio.run(run())
    assert (one.port, one.interface, one.oper_up, one.rate_bps) == (1, "s1-eth1", True, 0)
    assert (three.oper_up, three.rate_bps, three.queue_packets, three.waiting_packets) == (False, 2_000_000, 50, None)
    assert "show_ports" in command_line.read_text()


def test_who_is_cancelled_leaves_no_command_line_of_bmv2_that_writes_later(command_line: Path) -> None:
    script = command_line.parent / "bin" / bmv2.COMMAND
    script.write_text(f"#!/bin/sh\necho $$ > {command_line}\nexec sleep 60\n", encoding="utf-8")

    async def run() -> None:
        async with open_ports(ENDPOINT, bmv2_state()) as ports:
            task = asyncio.create_task(ports.set_port(3, PortChange(rate_bps=2_000_000)))
            while not (command_line.exists() and command_line.read_text().strip()):
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(ProcessLookupError):
                os.kill(int(command_line.read_text()), 0)

    asyncio.run(run())


def test_what_is_missing_for_bmv2_is_told(command_line: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FairlaneError, match=r"has no port 9; it has 1 \(s1-eth1\), 3 \(s1-eth3\)"):
        change(PortChange(queue_packets=5), port=9)
    monkeypatch.setenv("PATH", str(command_line.parent / "nothing"))
    with pytest.raises(FairlaneError, match="simple_switch_CLI is not on the PATH"):
        change(PortChange(queue_packets=5))
