# SPDX-License-Identifier: Apache-2.0
"""The changes that a person may ask for, the same with a running loop and without: threshold, auto, scheme."""

from __future__ import annotations

from fairlane_controller.errors import ErrorCode, FairlaneError
from fairlane_controller.loop.store import LoopStore
from fairlane_controller.programs.qthresh import names as program
from fairlane_controller.programs.qthresh.decide import bounded_capacity
from fairlane_controller.programs.qthresh.model import QTHRESH_MIN_PACKETS
from fairlane_controller.programs.qthresh.policies import (
    START_QTHRESH_PACKETS,
    Policy,
    Scheme,
    need_limit,
    read_limits,
    read_policies,
)
from fairlane_controller.programs.qthresh.setup import policy_for
from fairlane_controller.state.loop_state import Mode
from fairlane_controller.switch.client import SwitchClient


async def _held(client: SwitchClient, port: int, traffic_class: int) -> tuple[Policy | None, int]:
    """The policy in force and the port's capacity in packets."""
    program.check_class(traffic_class)
    limit = need_limit(await read_limits(client), port, client.endpoint)
    held = (await read_policies(client)).get((port, traffic_class))
    return held, limit.max_packets


def _capacity_after(capacity_packets: int, weight: float) -> int:
    return min(capacity_packets, bounded_capacity(capacity_packets, weight))


async def set_threshold(
    client: SwitchClient,
    store: LoopStore,
    port: int,
    traffic_class: int,
    *,
    packets: int | None,
    weight: float | None = None,
) -> Policy:
    """Pin the threshold of a class by hand (mode manual, scheme qthresh); without `packets` change the weight only."""
    held, capacity = await _held(client, port, traffic_class)
    name = client.endpoint.name
    settings = store.policy(name, port, traffic_class)
    in_force = held.weight if held is not None and held.scheme is Scheme.QTHRESH else settings.weight
    wanted_weight = weight if weight is not None else in_force
    program.encode_weight(wanted_weight)
    if packets is None:
        if held is None or held.qthresh_packets is None:
            raise FairlaneError(
                ErrorCode.BAD_INPUT,
                f"{client.endpoint}: port {port} class {traffic_class} has no threshold whose weight could change",
            )
        new = Policy(port, traffic_class, Scheme.QTHRESH, held.qthresh_packets, wanted_weight)
        pinned: dict[str, object] = {}
    else:
        program.check_threshold(packets, _capacity_after(capacity, wanted_weight))
        new = Policy(port, traffic_class, Scheme.QTHRESH, packets, wanted_weight)
        pinned = {"mode": Mode.MANUAL, "pinned_packets": packets}
    changed = settings.model_copy(update={"weight": wanted_weight, **pinned})
    async with store.changed(name, {(port, traffic_class): changed}):
        await client.put_entries([new.entry])
    return new


async def set_auto(
    client: SwitchClient,
    store: LoopStore,
    port: int,
    traffic_class: int,
    *,
    k: float | None = None,
    weight: float | None = None,
    self_tuning: bool | None = None,
) -> Policy:
    """Let the loop decide (mode auto, scheme qthresh); the threshold in force stays until it does.

    What is None stays as it is; `self_tuning` False: eq. (9) alone decides.
    """
    held, capacity = await _held(client, port, traffic_class)
    name = client.endpoint.name
    settings = store.policy(name, port, traffic_class)
    if k is not None and not 0.1 <= k <= 100:
        raise FairlaneError(ErrorCode.OUT_OF_RANGE, f"k {k:g} is out of range: it must be between 0.1 and 100")
    new = policy_for(Scheme.QTHRESH, port, traffic_class, held, weight=settings.weight)
    wanted_weight = weight if weight is not None else new.weight
    program.encode_weight(wanted_weight)
    most = max(QTHRESH_MIN_PACKETS, _capacity_after(capacity, wanted_weight))
    packets = min(new.qthresh_packets or most, most)
    new = Policy(port, traffic_class, Scheme.QTHRESH, packets, wanted_weight)
    asked = {"k": k, "self_tuning": self_tuning}
    changed = settings.model_copy(
        update={"mode": Mode.AUTO, "weight": wanted_weight} | {name: v for name, v in asked.items() if v is not None}
    )
    async with store.changed(name, {(port, traffic_class): changed}):
        await client.put_entries([new.entry])
    return new


async def set_scheme(client: SwitchClient, store: LoopStore, port: int, traffic_class: int, scheme: Scheme) -> Policy:
    """Change the scheme of a class; weight and a pinned threshold come back with qthresh, the mode is not touched."""
    held, capacity = await _held(client, port, traffic_class)
    settings = store.policy(client.endpoint.name, port, traffic_class)
    packets = START_QTHRESH_PACKETS
    if settings.mode is Mode.MANUAL and settings.pinned_packets is not None:
        packets = settings.pinned_packets
    packets = min(packets, max(1, _capacity_after(capacity, settings.weight)))
    new = policy_for(scheme, port, traffic_class, held, weight=settings.weight, packets=packets)
    await client.put_entries([new.entry])
    return new
