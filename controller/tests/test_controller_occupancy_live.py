# SPDX-License-Identifier: Apache-2.0
"""The loop on a real switch: counts that a hand has bent are set right, and the fallback slots get a key, once."""

from __future__ import annotations

import asyncio

import pytest
from fairlane_controller.switch.client import Endpoint, SwitchClient
from finsy import P4TableEntry
from live_switch import LiveSwitch, wait_until


def needs_embedded(switch: LiveSwitch) -> None:
    if switch.target != "embedded":
        pytest.skip("BMv2 reads no registers over P4Runtime and serves no gNMI")


def key_of(switch: LiveSwitch) -> list[int]:
    async def read() -> list[int]:
        endpoint = Endpoint("s1", f"127.0.0.1:{switch.grpc_port}", 1)
        async with SwitchClient(endpoint) as client:
            (entry,) = await client.read_entities([P4TableEntry("hash_key", is_default_action=True)])
        return [] if entry.action is None else [int(word) for word in entry.action.args.values()]

    return asyncio.run(read())


def test_a_count_that_a_hand_has_bent_is_set_right_and_told(switch: LiveSwitch) -> None:
    needs_embedded(switch)
    cells = (("port_occupancy", 3), ("port_occupancy_bytes", 3), ("flow_occupancy", 7), ("flow_occupancy", 81_920))
    with switch.loop():
        for register, index in cells:
            switch.fairlane("p4", "register_write", register, str(index), "50")
        (event,) = wait_until("the correction", lambda: switch.events("occupancy_corrected"))
    assert (event["ports"], event["slots"]) == ({"3": 50}, 2)
    for register, index in cells:
        assert " 0" in switch.fairlane("p4", "register_read", register, str(index)).replace("=", " "), register


def test_the_hash_gets_a_random_key_and_keeps_it(switch: LiveSwitch) -> None:
    needs_embedded(switch)
    assert not any(key_of(switch))
    with switch.loop():
        key = key_of(switch)
    assert len(set(key)) == 11
    assert all(0 < word < 2**64 for word in key)
    with switch.loop():
        assert key_of(switch) == key
