# SPDX-License-Identifier: Apache-2.0
"""The topologies of the papers on senders (ENA, BCR, FastTCP) say what the papers say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fairlane_topology import topology as fl_topology
from fairlane_topology.links import Direction

FOLDER = Path(__file__).parents[1] / "topologies"


def _load(name: str) -> fl_topology.Topology:
    return fl_topology.load(FOLDER / f"{name}.json")


def _way(topology: fl_topology.Topology, source: str, target: str) -> Iterator[Direction]:
    """The direction of each link that a packet takes by the routes of the switches."""
    at = source
    while at != target:
        if at == source:
            link = next(link for link in topology.links if at in (link.a.node, link.b.node))
        else:
            port = next(route.port for route in topology.routes(at) if route.mac == topology.mac(target))
            link = next(link for link in topology.links if fl_topology.LinkEnd(at, port) in (link.a, link.b))
        forward = link.a.node == at
        yield link.a_to_b if forward else link.b_to_a
        at = link.b.node if forward else link.a.node


def _delay_us(topology: fl_topology.Topology, source: str, target: str) -> float:
    return sum(way.delay_us for way in _way(topology, source, target))


def test_satellite_is_a_t1_line_over_geo_between_two_ethernets() -> None:
    topology = _load("satellite")
    assert _delay_us(topology, "h1", "h2") == _delay_us(topology, "h2", "h1") == 290_000
    assert topology.ports["s1"][2].rate_bps == topology.ports["s2"][1].rate_bps == 1_544_000
    assert topology.ports["s1"][2].queue_packets == 100
    assert topology.ports["s1"][2].bottleneck
    ethernet = [link for link in topology.links if "h" in link.name]
    assert {link.a_to_b.rate_bps for link in ethernet} == {10_000_000}


def test_wireless_has_the_papers_ten_nodes_and_rtt_and_one_slow_hop() -> None:
    topology = _load("wireless")
    assert len(topology.hosts) == 10
    assert _delay_us(topology, "h1", "h10") + _delay_us(topology, "h10", "h1") == 80_000
    slow = [(name, port) for name, ports in topology.ports.items() for port, spec in ports.items() if spec.bottleneck]
    assert slow == [("s2", 2)]
    assert topology.ports["s2"][2].rate_bps == 2_000_000
    assert topology.ports["s2"][2].queue_packets == 50
    for source, target in (("h1", "h10"), ("h2", "h4"), ("h3", "h5"), ("h8", "h6"), ("h9", "h7")):
        hop = next(link for link in topology.links if link.name == "s2-s3")
        assert any(way is hop.a_to_b or way is hop.b_to_a for way in _way(topology, source, target)), (source, target)


def test_far_and_near_have_their_round_trips() -> None:
    far, near = _load("far"), _load("near")
    assert _delay_us(far, "h1", "h2") + _delay_us(far, "h2", "h1") == 200_000
    assert [way.loss for way in _way(far, "h1", "h2")] == [0, 0.001, 0]
    assert _delay_us(near, "h1", "h2") + _delay_us(near, "h2", "h1") == 200
