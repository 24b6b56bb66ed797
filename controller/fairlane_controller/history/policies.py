# SPDX-License-Identifier: Apache-2.0
"""One policy with its settings as a request: what a change of a threshold, a weight or a scheme is taken back with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from pydantic import ValidationError

from fairlane_controller.errors import ErrorCode, FairlaneError, unknown_name
from fairlane_controller.history.entries import write_entries
from fairlane_controller.loop.store import LoopStore
from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.programs.qthresh.policies import Policy, Scheme, read_policies
from fairlane_controller.state.loop_state import PolicyState
from fairlane_controller.switch.client import SwitchClient, entry_key
from fairlane_controller.switch.shared import check_port

Request = dict[str, Any]


async def policy_before(client: SwitchClient, store: LoopStore, port: int, traffic_class: int) -> Request:
    """The request that brings back the policy and the settings as they are now."""
    held = (await read_policies(client)).get((port, traffic_class))
    settings = store.policy(client.endpoint.name, port, traffic_class)
    policy = None
    if held is not None:
        policy = {"scheme": held.scheme.value, "qthresh_packets": held.qthresh_packets, "weight": held.weight}
    return {
        "op": "policy_put",
        "switch": client.endpoint.name,
        "port": port,
        "class": traffic_class,
        "policy": policy,
        "settings": settings.model_dump(mode="json", exclude_defaults=True),
    }


def policy_of(request: Request) -> Policy | None:
    """The policy that a request puts; None: the entry goes. Raises BAD_INPUT, OUT_OF_RANGE."""
    given = cast("dict[str, Any] | None", request["policy"])
    port, traffic_class = int(request["port"]), int(request["class"])
    if given is None:
        return None
    names = [scheme.value for scheme in Scheme]
    if given["scheme"] not in names:
        raise unknown_name("scheme", str(given["scheme"]), names)
    return Policy(port, traffic_class, Scheme(given["scheme"]), given.get("qthresh_packets"), given.get("weight", 1.0))


def settings_of(request: Request) -> PolicyState:
    """The settings that a request puts; BAD_INPUT when they are none."""
    try:
        return PolicyState.model_validate(request.get("settings") or {})
    except ValidationError as ex:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"settings of a policy: {ex.errors()[0]['msg']}") from None


async def put_policy(client: SwitchClient, store: LoopStore, request: Request) -> Policy | None:
    """Write a policy and its settings, both or none; returns the policy then in force."""
    policy, settings = policy_of(request), settings_of(request)
    port, traffic_class = int(request["port"]), int(request["class"])
    async with store.changed(client.endpoint.name, {(port, traffic_class): settings}):
        if policy is not None:
            await client.put_entries([policy.entry])
        else:
            bare = client.canonical(replace(Policy(port, traffic_class, Scheme.DROP_TAIL).entry, action=None))
            held = {entry_key(entry) for entry in await client.read_table(program.TABLE_POLICY)}
            if entry_key(bare) in held:
                await client.write([-bare])
    return policy


async def write_with_settings(client: SwitchClient, store: LoopStore, request: Request) -> Request:
    """`table_write`: entries and, by `port/class`, settings of policies, all or none; returns the request that undoes it."""
    name = client.endpoint.name
    asked = cast("dict[str, Any]", request.get("settings") or {})
    wanted = {_key(text): settings_of({"settings": given}) for text, given in asked.items()}
    before = {
        f"{key[0]}/{key[1]}": store.policy(name, *key).model_dump(mode="json", exclude_defaults=True) for key in wanted
    }
    async with store.changed(name, wanted):
        updates = await write_entries(client, request["updates"])
    undo = {**request, "updates": updates}
    return {**undo, "settings": before} if before else undo


def _key(text: str) -> tuple[int, int]:
    port, slash, traffic_class = text.partition("/")
    if not slash or not port.isdecimal() or not traffic_class.isdecimal():
        raise FairlaneError(ErrorCode.BAD_INPUT, f"settings of {text!r}: must be PORT/CLASS, e.g. 3/0")
    return check_port(int(port)), program.check_class(int(traffic_class))
