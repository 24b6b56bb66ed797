# SPDX-License-Identifier: Apache-2.0
"""Queueing disciplines as tc(8) writes them: the bytes that the kernel takes, and errors."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest
from fairlane_topology.qdisc import parse_qdisc
from fairlane_topology.topology import TopologyError, check

TWO: dict[str, Any] = {
    "hosts": {"h1": {"ip": "10.0.1.1/24"}, "h2": {"ip": "10.0.2.2/24"}},
    "switches": {"s1": {"ports": {"2": {"qdisc": "codel", "rate": "1Mbit"}}}},
    "links": [{"a": "h1", "b": "s1-p1"}, {"a": "h2", "b": "s1-p2"}],
}


def test_options_are_what_the_kernel_takes() -> None:
    """Attributes of pkt_sched.h; of red the arithmetic of tc by hand: (1 - (1 - 1/16)^25) · 16 = 12.8 is the first above 25 + 1 - 15 = 11, so Wlog is 4."""
    assert parse_qdisc("bfifo limit 3k") == ("bfifo", bytes.fromhex("000c0000"))
    assert parse_qdisc("codel") == ("codel", b"")
    target_limit_ecn = "08000100 88130000 08000200 e8030000 08000400 01000000"
    assert parse_qdisc("codel target 5ms limit 1000 ecn") == ("codel", bytes.fromhex(target_limit_ecn))
    bandwidth_flows = "0c000200 d012130000000000 08000500 04000000"
    assert parse_qdisc("cake bandwidth 10Mbit flows") == ("cake", bytes.fromhex(bandwidth_flows))
    kind, options = parse_qdisc("red limit 1000000 avpkt 1000 min 15000 max 45000 probability 0.02 burst 25")
    head, table, share = options[4:20], options[24:280], options[284:]
    assert kind == "red"
    assert head.hex(" ", 4) == "40420f00 983a0000 c8af0000 04150a00"
    assert (table[0], table[-1], sorted(table)) == (0, 31, list(table))
    assert share.hex() == "52b81e05"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("codle", "qdisc 'codle' is not known; there are: pfifo, bfifo, red, codel, fq_codel, pie, fq, cake"),
        ("dualpi2", "came with Linux 6.17, and the kernel of `make kernel` is 6.12"),
        ("codel flows 5", "codel has no 'flows'; it has: target, limit"),
        ("codel target", "codel target: '' is not a number with a unit: us, ms, s"),
        ("pie limit 5ms", "pie limit: '5ms' is not a number"),
        ("pfifo limit 5000000000", "pfifo limit: 5000000000 is too large"),
        ("red limit 60k", "red needs min, max, avpkt"),
        ("red limit 60k avpkt 1500 min 5k max 90k", "min < max <= limit"),
        ("red limit 60k avpkt 1500 min 6k max 18k burst 2", "burst 2 is too small; at least min/avpkt, 4.096"),
    ],
)
def test_what_the_kernel_would_not_take_has_an_error(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=re.escape(error)):
        parse_qdisc(text)


def test_a_topology_says_where_a_qdisc_is_wrong_and_who_has_it() -> None:
    def changed(**port: Any) -> dict[str, Any]:
        document = copy.deepcopy(TWO)
        document["switches"]["s1"]["ports"]["2"] |= port
        return document

    assert check(TWO).kernel_only == "port s1-p2 has a qdisc, which needs fairlane lab run --runtime kernel"
    assert not check(changed(qdisc="")).kernel_only
    with pytest.raises(TopologyError, match=r"/switches/s1/ports/2/qdisc: codel has no 'x'"):
        check(changed(qdisc="codel x"))
    for port in ({"rate": 0}, {"link_layer": "atm"}):
        with pytest.raises(TopologyError, match="/switches/s1/ports/2/qdisc: needs a rate, and no link_layer"):
            check(changed(**port))
