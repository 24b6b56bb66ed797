# SPDX-License-Identifier: Apache-2.0
"""What a scenario wants of Linux hosts: sysctls, host programs, and what Linux takes from a route. Pure; Mininet and `kernel` put it in force."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fairlane_hosts.programs import PROGRAMS
from fairlane_hosts.variants import OPTIONAL_SYSCTLS, Variant, find_variant, receiver_programs

from fairlane_lab.run_result import RunError
from fairlane_lab.scenario import UDP_KINDS, Flow, Scenario, TcpOptions, tcp_of

DEFAULT_RTO_MIN_S = 0.2
"""Linux's own."""


@dataclass(frozen=True)
class HostWish:
    """What one namespace must be set to."""

    variant: Variant
    sysctls: dict[str, int]
    """`net.ipv4.*` beside the variant's."""
    programs: tuple[str, ...] = ()
    """Host programs: of the variants that it sends with, and of those that it receives from."""


@dataclass
class RouteWish:
    """Route attributes from one host to a peer."""

    rto_min_s: float = DEFAULT_RTO_MIN_S
    initial_window: int = 0
    window_packets: int = 0
    quick_ack: bool = False

    def words(self) -> list[str]:
        """In the words of ip-route(8); empty when the default route does."""
        words: list[str] = []
        if self.rto_min_s != DEFAULT_RTO_MIN_S:
            words += ["rto_min", f"{round(self.rto_min_s * 1000)}ms"]
        if self.initial_window:
            words += ["initcwnd", str(self.initial_window)]
        if self.window_packets:
            words += ["cwnd", "lock", str(self.window_packets)]
        if self.quick_ack:
            words += ["quickack", "1"]
        return words


@dataclass(frozen=True)
class Wishes:
    """Everything that a scenario wants of its hosts."""

    hosts: dict[str, HostWish]
    routes: dict[tuple[str, str], RouteWish]
    """By (host, peer)."""


def wishes(scenario: Scenario) -> Wishes:
    """What the scenario's flows want. Raises RunError where two flows want what one host cannot give both."""
    tcp_flows = [flow for flow in scenario.flows if flow.app.kind not in UDP_KINDS]
    hosts: dict[str, HostWish] = {}
    routes: dict[tuple[str, str], RouteWish] = {}
    owner: dict[tuple[str, str, str], tuple[str, Any]] = {}
    programs: dict[str, dict[str, None]] = {}

    def want(kind: str, a: str, b: str, flow: str, value: Any) -> None:
        first, other = owner.setdefault((kind, a, b), (flow, value))
        if other != value:
            text = f"flows {first} and {flow} want different settings ({kind}) of {f'{a} to {b}' if b else a}"
            raise RunError(f"{text}; give one another host")

    for flow in tcp_flows:
        variant, tcp = find_variant(flow.variant), tcp_of(scenario, flow)
        _check_clock(flow, tcp)
        asked = {"tcp_timestamps": tcp.timestamps or None, "tcp_sack": tcp.sack, "tcp_ecn": tcp.ecn or None}
        extra = {name: int(on) for name, on in asked.items() if on is not None}
        want("sysctls", flow.sender, "", flow.name, {**variant.sysctls, **extra})
        hosts.setdefault(flow.sender, HostWish(variant, extra))
        if tcp.ipv6 and any(not PROGRAMS[name].ipv6 for name in (*variant.programs, *receiver_programs(variant))):
            raise RunError(f"flow {flow.name}: variant {flow.variant!r} has a host program that reads IPv4 only")
        needed = programs.setdefault(flow.sender, {})
        needed.update(dict.fromkeys(variant.programs))
        if tcp.receiver_program:
            programs.setdefault(flow.receiver, {}).update(dict.fromkeys(receiver_programs(variant, tcp.error_naming)))
        data, ack = (flow.sender, flow.receiver), (flow.receiver, flow.sender)
        initial = tcp.initial_window_packets if variant.builtin else 0
        settings = (tcp.rto_min_s, initial, flow.window_packets)
        want("rto_min_s, initial_window_packets, window_packets", *data, flow.name, settings)
        want("delayed_ack", *ack, flow.name, tcp.acks_at_once)
        out = routes.setdefault(data, RouteWish())
        out.rto_min_s, out.initial_window, out.window_packets = settings
        routes.setdefault(ack, RouteWish()).quick_ack = tcp.acks_at_once
    senders = set(hosts)
    for flow in tcp_flows:  # a host that only receives offers what its senders may ask for
        if flow.receiver not in senders:
            variant, tcp = find_variant(flow.variant), tcp_of(scenario, flow)
            asked = {"tcp_timestamps": tcp.timestamps, "tcp_sack": tcp.sack, "tcp_ecn": tcp.ecn}
            # Not the sender's least RTO, which would bound the receiver's delayed ACKs.
            receiving = replace(variant, optional_sysctls=OPTIONAL_SYSCTLS)
            offered = hosts.setdefault(flow.receiver, HostWish(receiving, {})).sysctls
            offered |= {name: 1 for name, on in asked.items() if on or (name != "tcp_ecn" and variant.sysctls[name])}
    needing = {name: replace(wish, programs=tuple(programs.get(name, ()))) for name, wish in hosts.items()}
    return Wishes(needing, routes)


def _check_clock(flow: Flow, tcp: TcpOptions) -> None:
    """Raises RunError for a clock that no Linux host can be told to have."""
    refused = {
        "tick_s": (tcp.tick_s, (TcpOptions.tick_s,), "the tick is compiled into the kernel (CONFIG_HZ)"),
        "delayed_ack_s": (tcp.delayed_ack_s, (0, TcpOptions.delayed_ack_s), "TCP_DELACK_MIN is compiled in"),
        "backoff": (tcp.backoff, (TcpOptions.backoff,), "Linux keeps it until there is an RTT sample"),
    }
    for name, (value, allowed, why) in refused.items():
        if value not in allowed:
            words = " or ".join(map(str, allowed))
            raise RunError(f"flow {flow.name}: tcp.{name} {value}: {why}; with Linux hosts allowed: {words}")
