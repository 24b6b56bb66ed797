# SPDX-License-Identifier: Apache-2.0
"""A queueing discipline of Linux as tc(8) writes it, such as `fq_codel limit 1000 target 5ms`, and as the kernel takes it (rtnetlink(7)).

Names and numbers of the options are those of `include/uapi/linux/pkt_sched.h`; what is not given is the kernel's default.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping

_COUNT = {"": 1.0, "p": 1.0}
_US = {"": 1.0, "us": 1.0, "ms": 1e3, "s": 1e6}
_BYTES = {"": 1.0, "b": 1.0, "k": 2.0**10, "kb": 2.0**10, "m": 2.0**20, "mb": 2.0**20}
_BPS = {"": 0.125, "bit": 0.125, "kbit": 125.0, "mbit": 125e3, "gbit": 125e6}
"""Bytes per second."""
_SHARE = {"": 1.0}
_Units = Mapping[str, float]


def _words(number: int, *words: str) -> dict[str, tuple[int, int]]:
    """Words without a value: each sets option `number` to its place among them."""
    return {word: (number, value) for value, word in enumerate(words) if word}


_CODEL = {"target": (1, _US), "limit": (2, _COUNT), "interval": (3, _US), **_words(4, "noecn", "ecn")}
_OPTIONS: dict[str, dict[str, tuple[int, _Units | int]]] = {
    "pfifo": {"limit": (0, _COUNT)},
    "bfifo": {"limit": (0, _BYTES)},
    "red": {
        **dict.fromkeys(("limit", "min", "max", "avpkt"), (0, _BYTES)),
        **{"burst": (0, _COUNT), "probability": (0, _SHARE), "bandwidth": (0, _BPS)},
        **{"ecn": (0, 1), "harddrop": (0, 2), "adaptive": (0, 4)},
    },
    "codel": {**_CODEL, "ce_threshold": (5, _US)},
    "fq_codel": {
        **{**_CODEL, "flows": (5, _COUNT), "quantum": (6, _BYTES), "ce_threshold": (7, _US)},
        **{"drop_batch": (8, _COUNT), "memory_limit": (9, _BYTES)},
    },
    "pie": {
        **{"target": (1, _US), "limit": (2, _COUNT), "tupdate": (3, _US), "alpha": (4, _COUNT), "beta": (5, _COUNT)},
        **_words(6, "noecn", "ecn"),
        **_words(7, "nobytemode", "bytemode"),
        **_words(8, "no_dq_rate_estimator", "dq_rate_estimator"),
    },
    "fq": {
        **{"limit": (1, _COUNT), "flow_limit": (2, _COUNT), "quantum": (3, _BYTES), "initial_quantum": (4, _BYTES)},
        **_words(5, "nopacing", "pacing"),
        **{"maxrate": (7, _BPS), "refill_delay": (9, _US), "ce_threshold": (12, _US)},
    },
    "cake": {
        **{"bandwidth": (2, _BPS), "rtt": (7, _US), "memlimit": (10, _BYTES)},
        **_words(3, "diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence"),
        **_words(5, "flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate"),
        **_words(11, "nowash", "wash"),
        **_words(16, "no-ack-filter", "ack-filter", "ack-filter-aggressive"),
    },
}  # fmt: skip
_LATER = {"dualpi2": "came with Linux 6.17, and the kernel of `make kernel` is 6.12; the P4 program dualpi2 has it"}


def parse_qdisc(text: str) -> tuple[str, bytes]:
    """The kind, and the kernel's TCA_OPTIONS. Raises ValueError that says what is wrong and what is allowed."""
    kind, *words = text.split() or [""]
    if kind not in _OPTIONS:
        raise ValueError(f"qdisc {kind!r} {_LATER.get(kind, 'is not known')}; there are: {', '.join(_OPTIONS)}")
    known, given = _OPTIONS[kind], dict[str, float]()
    while words:
        name = words.pop(0)
        if name not in known:
            raise ValueError(f"{kind} has no {name!r}; it has: {', '.join(known)}")
        units = known[name][1]
        given[name] = units if isinstance(units, int) else _number(kind, name, words.pop(0) if words else "", units)
    if kind == "red":
        return kind, _red(given)
    if kind in ("pfifo", "bfifo"):
        return kind, b"".join(struct.pack("=I", round(value)) for value in given.values())
    return kind, b"".join(
        _attribute(number, struct.pack("=Q" if (kind, name) == ("cake", "bandwidth") else "=I", round(value)))
        for name, value in given.items()
        for number in [known[name][0]]
    )


def _number(kind: str, name: str, text: str, units: _Units) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([a-zA-Z]*)", text)
    if match is None or match[2].lower() not in units:
        raise ValueError(
            f"{kind} {name}: {text!r} is not a number{' with a unit: ' if len(units) > 1 else ''}{', '.join(filter(None, units))}"
        )
    value = float(match[1]) * units[match[2].lower()]
    if round(value) >= 2**32:
        raise ValueError(f"{kind} {name}: {text} is too large")
    return value


def _attribute(number: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), number) + value + bytes(-len(value) % 4)


def _red(given: dict[str, float]) -> bytes:
    """As tc makes them (tc/q_red.c, tc/tc_red.c): thresholds, W and P as logarithms, and the table by which an idle queue shrinks (µs)."""
    flags = sum(round(given.pop(name)) for name in ("ecn", "harddrop", "adaptive") if name in given)
    if "limit" not in given or "avpkt" not in given:
        raise ValueError("red needs limit and avpkt")
    limit, packet = given["limit"], given["avpkt"]
    highest = given.get("max", given["min"] * 3 if "min" in given else limit / 4)
    lowest = given.get("min", highest / 3)
    burst = given.get("burst", (2 * lowest + highest) / (3 * packet))
    share, bps = given.get("probability", 0.02), given.get("bandwidth", 1_250_000.0)
    if not 0 < packet <= lowest < highest <= limit or not 0 < share <= 1 or bps <= 0:
        raise ValueError("red: 0 < avpkt <= min < max <= limit, 0 < probability <= 1 and bandwidth > 0 must hold")
    rest = burst + 1 - lowest / packet
    weights = (log for log in range(1, 32) if rest <= (1 - (1 - 2.0**-log) ** burst) * 2.0**log)
    weight = next(weights, 0) if rest >= 1 else 0
    if not weight:
        raise ValueError(f"red: burst {burst:g} is too small; at least min/avpkt, {lowest / packet:g}")
    slope = math.floor(math.log2((highest - lowest) / share)) + 1
    decay = -math.log(1 - 2.0**-weight) / (packet / bps * 1e6)
    cell = next(log for log in range(32) if 31 / decay / 2**log < 512)
    table = [0, *(min(31, int((age << cell) * decay)) for age in range(1, 255)), 31]
    numbers = struct.pack("=III4B", round(limit), round(lowest), round(highest), weight, slope, cell, flags)
    return b"".join(
        (
            _attribute(1, numbers),
            _attribute(2, bytes(table)),
            _attribute(3, struct.pack("=I", min(2**32 - 1, round(share * 2**32)))),
        )
    )
