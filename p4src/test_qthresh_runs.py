# SPDX-License-Identifier: Apache-2.0
"""qthresh.p4 in virtual time: what PTF's cases, in real time, cannot wait for."""

from __future__ import annotations

from sim_world import NS_PER_S, SINK_PORT, Cbr, World

REASON_QTHRESH = 11
SLOTS = (7, 8)


def test_a_flow_leaves_its_lane_by_hash_though_that_is_never_empty() -> None:
    """Two sources, each with four fifths of the line, get entries when their lanes are full; refusals are counted at the entries, also before they leave."""
    sources = [Cbr(port, 8_000_000, 1_000, 0, 3 * NS_PER_S) for port in (1, 2)]
    sink = {"queues": 64, "scheduler": "drr", "queue_packets": 200}
    world = World("qthresh", sources, sink_rate_bps=10_000_000, sink=sink)
    limits = {"max_packets": 200, "max_bytes": 0xFFFFFFFF, "report_period_us": 0, "ecn": 0}
    world.insert("port_limit", {"egress_port": SINK_PORT}, "set_port_limit", **limits)
    lanes = {"qthresh": 20, "weight": 256, "spacing_us": 0, "lanes": 32, "lanes_by_hash": 16}
    world.insert("policy", {"egress_port": SINK_PORT, "traffic_class": 0}, "set_lanes", **lanes)
    world.run_until(NS_PER_S // 10)
    refused_before = world.counter("drops", SINK_PORT << 4 | REASON_QTHRESH)[0]
    for index, (source, slot) in enumerate(zip(sources, SLOTS, strict=True)):
        flow = {"src": f"10.0.{source.port}.1", "dst": f"10.0.{SINK_PORT}.1", "protocol": 17, "vid": 0}
        ports = {"src_port": 10_000 + index, "dst_port": 5_001}
        world.insert("flow_v4", flow | ports, "set_flow", flow_id=slot)
    for second, has_left in ((1, False), (2, True)):
        world.run_until(second * NS_PER_S)
        refused = world.counter("drops", SINK_PORT << 4 | REASON_QTHRESH)[0] - refused_before
        assert sum(world.counter("flow_drops", slot)[0] for slot in SLOTS) == refused > 500
        assert all((world.register("flow_occupancy", slot) > 0) == has_left for slot in SLOTS)
