# SPDX-License-Identifier: Apache-2.0
"""What a configuration must fulfil as a whole: limits within their queues, rules and policies that occur once and are possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairlane import Config, PortState, RunState

from .settings import ClassConfig, PolicyConfig, QthreshPort
from .wanted import limit_of_port, managed_places

_LIMIT_KEYS = ("limit_packets", "limit_bytes", "report_period", "ecn")


def problems_of(config: Config, run: RunState | None) -> Iterator[str]:
    """Each `policies[0].port: what, and what is allowed`."""
    for place, port in (config.ports or {}).items():
        yield from _limit(config.at[place], port, config.states[place])
    if config.sections is not None:
        yield from _classes(config.sections.classes or (), run)
        yield from _policies(config.sections.policies or (), config, run)


def _limit(at: str, port: QthreshPort, state: PortState) -> Iterator[str]:
    """The program must refuse before the queue behind it does, or its counters leak."""
    for key in _LIMIT_KEYS:
        if key in port.model_fields_set and not port.managed:
            yield f"{at}.{key}: the port is not managed: set managed to true, or leave {key} out"
    if not port.managed:
        return
    queue, limit = state.queue_packets, limit_of_port(port, state)
    if limit is None:
        yield f"{at}.managed: nothing says how many packets the queue holds: give queue_packets or limit_packets"
    elif 0 < queue < limit.max_packets:
        yield f"{at}.limit_packets: {limit.max_packets} is more than the queue holds ({queue} packets): must be at most {queue}"


def _classes(classes: Sequence[ClassConfig], run: RunState | None) -> Iterator[str]:
    seen: dict[tuple[object, ...], int] = {}
    for index, rule in enumerate(classes):
        at = f"classes[{index}]"
        match = (rule.ingress_port, rule.dscp, rule.pcp)
        for switch in {rule.switch, ""} if rule.switch else {"", *(one.switch for one in classes)}:
            other = seen.get((switch, *match))
            if other is not None:
                yield f"{at}: matches the same packets as classes[{other}]: one of them must go, or say more"
                break
        seen.setdefault((rule.switch, *match), index)
        if rule.switch:
            yield from _unknown(run, at, rule.switch, rule.ingress_port, "ingress_port")


def _policies(policies: Sequence[PolicyConfig], config: Config, run: RunState | None) -> Iterator[str]:
    seen: dict[tuple[str, int, int], int] = {}
    managed = managed_places(config, run) if run is not None else None
    for index, policy in enumerate(policies):
        at = f"policies[{index}]"
        if policy.key in seen:
            yield (
                f"{at}: {policy.switch}:{policy.port} class {policy.traffic_class} is "
                f"policies[{seen[policy.key]}] too; it may occur once"
            )
        seen.setdefault(policy.key, index)
        unknown = list(_unknown(run, at, policy.switch, policy.port))
        yield from unknown
        if run is None or managed is None or unknown:
            continue
        limit = managed.get((policy.switch, policy.port))
        if limit is None:
            listed = ", ".join(f"{switch}:{port}" for switch, port in sorted(managed)) or "none"
            yield f"{at}.port: {policy.switch}:{policy.port} is not managed (managed: {listed}): add it to ports with managed = true"
            continue
        for key in ("threshold", "min_packets", "max_packets"):
            value = getattr(policy, key)
            if value is not None and value > limit.max_packets:
                yield f"{at}.{key}: {value} is more than the port lets wait ({limit.max_packets} packets): must be at most {limit.max_packets}"


def _unknown(run: RunState | None, at: str, switch: str, port: int | None, key: str = "port") -> list[str]:
    return run.unknown_place(at, switch, port, key) if run is not None else []
