# SPDX-License-Identifier: Apache-2.0
"""The topology file: what it means, and the errors of a bad one."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from fairlane_controller.state.run_state import RouteState
from fairlane_topology import topology as fl_topology
from fairlane_topology.links import Direction
from fairlane_topology.nodes import not_on_bmv2, port_options
from fairlane_topology.topology import PortSpec, Topology, TopologyError

HERE = Path(__file__).parents[1]
TUTORIAL: dict[str, Any] = {
    # The shape of p4lang/tutorials' exercises.
    "hosts": {
        "h1": {
            "ip": "10.0.1.1/24",
            "mac": "08:00:00:00:01:11",
            "commands": ["route add default gw 10.0.1.10 dev eth0"],
        },
        "h2": {"ip": "10.0.2.2/24", "mac": "08:00:00:00:02:22"},
    },
    "switches": {"s1": {"runtime_json": "s1-runtime.json"}, "s2": {"cli_input": "s2.txt"}},
    "links": [["h1", "s1-p1"], ["s1-p2", "s2-p2", "5", 0.5], ["h2", "s2-p1", "1ms"]],
}


def changed(pointer: str, value: Any) -> dict[str, Any]:
    """TUTORIAL with the value at a JSON pointer replaced."""
    document = copy.deepcopy(TUTORIAL)
    place: Any = document
    *path, last = pointer.strip("/").split("/")
    for part in path:
        place = place[int(part) if part.isdigit() else part]
    place[int(last) if last.isdigit() else last] = value
    return document


def test_tutorial_file_is_understood() -> None:
    topology = fl_topology.check(TUTORIAL)
    trunk = topology.links[1]
    assert trunk.a_to_b == Direction(delay_us=5000)
    assert topology.ports["s1"][2].rate_bps == 500_000
    assert topology.ports["s1"][1].rate_bps == 0
    assert not topology.links[0].is_emulated
    assert topology.links[2].b_to_a.delay_us == 1000


def test_routes_are_shortest_paths_to_every_host() -> None:
    topology = fl_topology.check(TUTORIAL)
    assert topology.routes("s1") == [
        RouteState(prefix="10.0.1.1/32", port=1, mac="08:00:00:00:01:11"),
        RouteState(prefix="10.0.2.2/32", port=2, mac="08:00:00:00:02:22"),
    ]
    assert [route.port for route in topology.routes("s2")] == [2, 1]


def test_dumbbell_is_the_papers() -> None:
    topology = fl_topology.load(HERE / "topologies" / "dumbbell.json")
    assert topology.ports["s1"][3] == PortSpec(rate_bps=2_000_000, queue_packets=50, bottleneck=True)
    sender = topology.links[0]
    assert sender.a_to_b == Direction(delay_us=1000, rate_bps=10_000_000)
    assert sender.b_to_a == Direction(delay_us=1000)


def test_far_sides_are_the_marked_ports_or_those_between_switches() -> None:
    topology = fl_topology.check(TUTORIAL)
    assert [topology.far_side_ports(name) for name in ("s1", "s2")] == [{2}, {2}]
    marked = fl_topology.check(changed("/switches/s2/ports", {"2": {"far_side": True}}))
    assert [marked.far_side_ports(name) for name in ("s1", "s2")] == [set(), {2}]


def test_a_direction_overrides_only_what_it_names() -> None:
    link = {"a": "h1", "b": "s1-p1", "delay": "5ms", "loss": 0.1, "a_to_b": {"loss": 0}, "b_to_a": {"delay": "1ms"}}
    topology = fl_topology.check(changed("/links/0", link))
    assert topology.links[0].a_to_b == Direction(delay_us=5000)
    assert topology.links[0].b_to_a == Direction(delay_us=1000, loss=0.1)


def test_a_ports_traffic_manager_is_on_the_switchs_command_line() -> None:
    port = {
        "scheduler": "wrr",
        "link_layer": "atm",
        "queues": 16,
        "queue_cells": 900,
        "port_cells": 4000,
        "rate": "51.84Mbit",
    }
    spec = fl_topology.check(changed("/switches/s1/ports", {"1": port})).ports["s1"][1]
    _, _, option, words = port_options(1, "s1-eth1", spec).arguments()
    assert (option, sorted(words.removeprefix("1:").split(","))) == (
        "--port",
        [
            "link_layer=atm",
            "port_cells=4000",
            "queue_cells=900",
            "queue_packets=1000",
            "queues=16",
            "rate=51840000",
            "scheduler=wrr",
        ],
    )


def test_what_bmv2_cannot_have_is_reported() -> None:
    spec = PortSpec(scheduler="wrr", link_layer="atm", queues=16, port_cells=4000)
    assert not_on_bmv2(spec) == ["link_layer atm", "scheduler wrr", "queues 16", "port_cells 4000"]
    assert not_on_bmv2(PortSpec(queue_packets=50, rate_bps=1000)) == []


def test_mtus_are_those_of_the_hosts_and_trunks_take_the_largest() -> None:
    assert {link.mtu for link in fl_topology.check(TUTORIAL).links} == {1500}
    document = changed("/hosts/h1/mtu", 9000)
    assert [link.mtu for link in fl_topology.check(document).links] == [9000, 9000, 1500]
    document["links"][2] = {"a": "h2", "b": "s2-p1", "mtu": 4000}
    assert [link.mtu for link in fl_topology.check(document).links] == [9000, 9000, 4000]
    document["links"][1] = {"a": "s1-p2", "b": "s2-p2", "mtu": 8999}
    with pytest.raises(TopologyError, match=r"/links/1/mtu: 8999 is below a host's 9000: .*; allowed: 9000 to 9000"):
        fl_topology.check(document)
    document["links"][0] = {"a": "h1", "b": "s1-p1", "mtu": 1500}
    with pytest.raises(TopologyError, match=r"/links/0/mtu: 1500, but /hosts/h1/mtu is 9000; one of them is enough"):
        fl_topology.check(document)


def way_delay_us(topology: Topology, sender: str, receiver: str) -> float:
    """One-way delay along the switches' routes, the sender's link included."""
    node, total = sender, 0
    while node != receiver:
        port = 0
        if node in topology.switches:
            index = list(topology.hosts).index(receiver)
            port = topology.routes(node)[index].port
        link = next(link for link in topology.links if fl_topology.LinkEnd(node, port) in (link.a, link.b))
        forward = link.a.node == node
        total += (link.a_to_b if forward else link.b_to_a).delay_us
        node = link.b.node if forward else link.a.node
    return total


def test_gfr_topologies_are_the_papers() -> None:
    p2p = fl_topology.load(HERE / "topologies" / "gfr-p2p.json")
    assert [way_delay_us(p2p, f"h{i}", f"h{i + 5}") for i in range(1, 6)] == [6_000] * 5
    parking = fl_topology.load(HERE / "topologies" / "gfr-parking.json")
    assert [way_delay_us(parking, f"h{i}", f"h{i + 6}") for i in range(1, 7)] == [8_000] * 3 + [15_000] * 3
    assert [way_delay_us(parking, f"h{i + 6}", f"h{i}") for i in range(1, 7)] == [8_000] * 3 + [15_000] * 3
    for topology, managed in ((p2p, {("s1", 6)}), (parking, {("s1", 7), ("s2", 2)})):
        ports = {(name, number): spec for name, ports in topology.ports.items() for number, spec in ports.items()}
        assert {key for key, spec in ports.items() if spec.bottleneck} == managed
        for key, spec in ports.items():
            assert (spec.rate_bps, spec.link_layer, spec.port_cells) == (51_840_000, "atm", 4000), key
            assert spec.queue_packets >= 4000, "a frame is at least a cell: packets never limit"
        for key in managed:
            assert (ports[key].scheduler, ports[key].queues) == ("wrr", 16)
        # MSS 7680 is a packet of 7720 bytes (7732 with time stamps).
        assert all(link.mtu >= 7732 for link in topology.links)
        assert all(link.a_to_b.rate_bps in (0, 51_840_000) for link in topology.links)


@pytest.mark.parametrize(
    ("pointer", "value", "message"),
    [
        ("/hosts/h1/ip", "10.0.1/24", "/hosts/h1/ip: '10.0.1/24' is not a host's address with a prefix length"),
        ("/hosts/h1/ip", "10.0.1.1", "/hosts/h1/ip: '10.0.1.1' is not .*, such as 10.0.1.1/24"),
        ("/hosts/h1/ip", "fd00::1/64", "/hosts/h1/ip: 'fd00::1/64' is not .*, such as 10.0.1.1/24"),
        ("/hosts/h1/ip", "224.0.0.1/24", "/hosts/h1/ip: '224.0.0.1/24' is not a host's address"),
        ("/hosts/h1/ipv6", "10.0.9.1/24", "/hosts/h1/ipv6: '10.0.9.1/24' is not .*, such as fd00::1/64"),
        ("/hosts/h1/ip", "10.0.2.2/16", "/hosts/h2/ip: 10.0.2.2 is that of /hosts/h1/ip already"),
        ("/hosts/h1/mac", "zz", "/hosts/h1/mac: must be a unicast MAC address such as"),
        ("/hosts/h1/mac", "01:00:00:00:00:01", "/hosts/h1/mac: must be a unicast MAC address such as"),
        ("/hosts/h1/mac", "08:00:00:00:02:22", "/hosts/h2/mac: 08:00:00:00:02:22 is that of /hosts/h1/mac already"),
        ("/switches/s01", {}, "/switches/s01: String should match pattern"),
        ("/switches/s0", {}, "/switches/s0: String should match pattern"),
        ("/hosts/h1/speed", 3, "/hosts/h1/speed: unknown key; allowed keys: commands, ip, ipv6, mac, mtu, variant"),
        ("/hosts/h1/mtu", 575, "/hosts/h1/mtu: .*greater than or equal to 576"),
        ("/links/0", {"a": "h1", "b": "s1-p1", "mtu": 9001}, "/links/0/mtu: .*less than or equal to 9000"),
        (
            "/switches/s1/ports",
            {"1": {"scheduler": "fifo"}},
            "/ports/1/scheduler: .*'strict', 'wrr', 'drr', 'calendar' or 'fq' .got 'fifo'",
        ),
        (
            "/switches/s1/ports",
            {"1": {"link_layer": "ip"}},
            "/ports/1/link_layer: .*'none', 'ethernet' or 'atm' .got 'ip'",
        ),
        ("/switches/s1/ports", {"1": {"queues": 4097}}, "/ports/1/queues: .*less than or equal to 4096"),
        ("/switches/s1/ports", {"1": {"port_cells": 0}}, "/ports/1/port_cells: .*greater than or equal to 1"),
        (
            "/switches/s1/ports",
            {"1": {"cells": 1}},
            "/ports/1/cells: .*allowed keys: bottleneck, far_side, link_layer, port_cells",
        ),
        ("/links/0", ["h9", "s1-p1"], "/links/0/a: there is no h9; there are h1, h2"),
        (
            "/links/0",
            ["h1", "s1"],
            r"/links/0/b: 's1' is not an endpoint; write a host \(h1\) or a switch port \(s1-p3\)",
        ),
        ("/links/0", ["h1", "s1-p510"], "/links/0/b: port 510 is out of range; allowed: 1 to 509"),
        ("/links/0", ["h1", "s1-p2"], "/links/1: port 2 of s1 is used by another link already"),
        ("/links/0", ["h1"], r"/links/0: a link is \[node, node\]"),
        ("/links/0", ["h1", "s1-p1", "9" * 400], "/links/0/delay: .*less than or equal to 60000000"),
        ("/links/0", {"a": "h1", "b": "s1-p1", "delay": "fast"}, "/links/0/delay: .*examples: 200us, 5ms"),
        ("/links/0", {"a": "h1", "b": "s1-p1", "loss": 1.5}, "/links/0/loss: .*less than or equal to 1"),
        (
            "/links/0",
            {"a": "h1", "b": "s1-p1", "lost": 1},
            "/links/0/lost: .*allowed keys: a, a_to_b, b, b_to_a, bandwidth",
        ),
        ("/links/2", ["s2-p3", "s1-p3"], "/hosts/h2: a host has exactly one link, this one has 0"),
        ("/switches/s1/ports", {"7": {}}, "/switches/s1/ports/7: no link uses that port; ports in use: 1, 2"),
        ("/switches/s1/ports", {"²": {}}, "/switches/s1/ports/²: no link uses that port; ports in use: 1, 2"),
        ("/switches/s1/ports", {"1": {}, "01": {}}, "/switches/s1/ports/01: no link uses that port"),
        ("/links/0", {"a": "h1", "b": "s1-p1", "ge_good": "5ms"}, "/links/0/ge_good: .*both at least 1000 µs"),
        (
            "/links/0",
            {"a": "h1", "b": "s1-p1", "a_to_b": {"dama_frame": "26.5ms"}},
            "/links/0/a_to_b/dama_frame: .*beside a rate",
        ),
        ("/links/0", {"a": "h1", "b": "s1-p1", "bandwidth": 1}, "/links/0/bandwidth: 1 is .*allowed: 1000 to"),
        ("/links", "none", "/links: Input should be a valid list"),
    ],
)
def test_bad_topologies_say_what_where_and_what_is_allowed(pointer: str, value: Any, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        fl_topology.check(changed(pointer, value))


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("/hosts/h1/ip", "[" * 6000),
        ("/links/0", ["[" * 6000, "s1-p1"]),
        ("/links/0", {"a": "h1", "b": "s1-p1", "preset": "[" * 6000}),
        ("/links/0", {"a": "h1", "b": "s1-p1", "delay": "[" * 6000}),
    ],
)
def test_a_long_value_is_quoted_without_its_middle(pointer: str, value: Any) -> None:
    with pytest.raises(TopologyError, match="…") as caught:
        fl_topology.check(changed(pointer, value))
    assert len(str(caught.value)) < 1000


def test_broken_json_shows_the_place(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{\n  "hosts": {,}\n}')
    with pytest.raises(TopologyError, match=r"t\.json:2:13: not JSON"):
        fl_topology.load(path)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match=r"absent\.json: cannot read the topology: No such file"):
        fl_topology.load(tmp_path / "absent.json")


def test_shipped_topologies_are_valid() -> None:
    paths = sorted((HERE / "topologies").glob("*.json"))
    assert paths
    for path in paths:
        assert fl_topology.load(path).hosts
        json.loads(path.read_text())


def test_this_folder_never_shadows_mininet() -> None:
    assert not (HERE / "__init__.py").exists()
    import mininet

    assert HERE not in Path(str(mininet.__file__)).parents


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * 50_000, "not JSON: arrays or objects are nested more than 64 levels deep"),
        ('{"hosts": ' * 500 + "1" + "}" * 500, "nested more than 64 levels deep"),
        ('{"hosts": NaN}', "not JSON: NaN is no JSON number"),
        ('{"hosts": 1e999}', "not JSON: a number is too large for a double"),
        ('{"hosts": {"\\ud800": {}}}', "is no text"),
    ],
)
def test_what_no_parser_should_take_is_a_mistake_too(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(TopologyError) as told:
        fl_topology.load(path)
    assert message in str(told.value)
    assert str(path) in str(told.value)
