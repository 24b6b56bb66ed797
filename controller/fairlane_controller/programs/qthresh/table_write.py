# SPDX-License-Identifier: Apache-2.0
"""Table entries together with settings of policies, all or none: what configurations and undos write."""

from __future__ import annotations

from typing import Any, cast

from pydantic import ValidationError

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.programs.qthresh.loop_state import PolicyState
from fairlane_controller.programs.qthresh.store import LoopStore, PolicyKey
from fairlane_controller.switch.changeset import write_plain
from fairlane_controller.switch.client import SwitchClient
from fairlane_controller.switch.shared import check_port

Request = dict[str, Any]


def settings_of(given: Any) -> PolicyState:
    """Settings that a request puts; BAD_INPUT when they are none."""
    try:
        return PolicyState.model_validate(given or {})
    except ValidationError as ex:
        raise FairlaneError(ErrorCode.BAD_INPUT, f"settings of a policy: {ex.errors()[0]['msg']}") from None


async def write_with_settings(client: SwitchClient, store: LoopStore, request: Request) -> Request:
    """`table_write`: entries and, by `port/class`, settings of policies, all or none; returns the request that undoes it."""
    name = client.endpoint.name
    asked = cast("dict[str, Any]", request.get("settings") or {})
    wanted = {_key(name, text): settings_of(given) for text, given in asked.items()}
    before = {f"{key[1]}/{key[2]}": plain_settings(store.policy(*key)) for key in wanted}
    async with store.changed(wanted) as commit:
        return await write_plain(client, request["updates"], commit, before)


def plain_settings(settings: PolicyState) -> dict[str, Any]:
    """As requests have them."""
    return settings.model_dump(mode="json", exclude_defaults=True)


def _key(switch: str, text: str) -> PolicyKey:
    port, slash, traffic_class = text.partition("/")
    if not slash or not port.isdecimal() or not traffic_class.isdecimal():
        raise FairlaneError(ErrorCode.BAD_INPUT, f"settings of {text!r}: must be PORT/CLASS, e.g. 3/0")
    return switch, check_port(int(port)), program.check_class(int(traffic_class))
