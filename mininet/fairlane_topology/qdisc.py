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
_Units = Mapping[str, float]


def _words(number: int, *words: str) -> dict[str, tuple[int, int]]:
    """Words without a value: each sets option `number` to its place among them."""
    return {word: (number, value) for value, word in enumerate(words)}


_ECN = "noecn", "ecn"
_CODEL = {"target": (1, _US), "limit": (2, _COUNT), "interval": (3, _US), **_words(4, *_ECN)}
_RED = {"limit": _BYTES, "min": _BYTES, "max": _BYTES, "avpkt": _BYTES, "burst": _COUNT, "probability": _COUNT}
_FLOWS = "flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate"
_OPTIONS: Mapping[str, Mapping[str, tuple[int, _Units | int]]] = {
    "pfifo": {"limit": (0, _COUNT)},
    "bfifo": {"limit": (0, _BYTES)},
    "red": {name: (0, units) for name, units in _RED.items()} | {"ecn": (0, 1)},
    "codel": {**_CODEL, "ce_threshold": (5, _US)},
    "fq_codel": {**_CODEL, "flows": (5, _COUNT), "quantum": (6, _BYTES), "ce_threshold": (7, _US), "memory_limit": (9, _BYTES)},
    "pie": {"target": (1, _US), "limit": (2, _COUNT), "tupdate": (3, _US), "alpha": (4, _COUNT), "beta": (5, _COUNT), **_words(6, *_ECN)},
    "fq": {"limit": (1, _COUNT), "flow_limit": (2, _COUNT), "quantum": (3, _BYTES), "maxrate": (7, _BPS), "ce_threshold": (12, _US)},
    "cake": {
        **{"bandwidth": (2, _BPS), "rtt": (7, _US), "memlimit": (10, _BYTES)},
        **_words(3, "diffserv3", "diffserv4", "diffserv8", "besteffort", "precedence"),
        **_words(5, *_FLOWS),
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
    wide = {("cake", "bandwidth")}
    values = (
        (known[name][0], struct.pack("=Q" if (kind, name) in wide else "=I", round(given[name]))) for name in given
    )
    return kind, b"".join(_attribute(number, value) if number else value for number, value in values)


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
    """As tc makes them (tc/q_red.c, tc/tc_red.c): thresholds, W and P as logarithms, and the table by which an idle queue of 10 Mbit/s shrinks (µs)."""
    if missing := [name for name in ("limit", "min", "max", "avpkt") if name not in given]:
        raise ValueError(f"red needs {', '.join(missing)}")
    limit, lowest, highest, packet = (given[name] for name in ("limit", "min", "max", "avpkt"))
    burst, share = given.get("burst", (2 * lowest + highest) / (3 * packet)), given.get("probability", 0.02)
    if not 0 < packet <= lowest < highest <= limit or not 0 < share <= 1:
        raise ValueError("red: 0 < avpkt <= min < max <= limit and 0 < probability <= 1 must hold")
    rest = burst + 1 - lowest / packet
    weight = next((log for log in range(1, 32) if 1 <= rest <= (1 - (1 - 2.0**-log) ** burst) * 2.0**log), 0)
    if not weight:
        raise ValueError(f"red: burst {burst:g} is too small; at least min/avpkt, {lowest / packet:g}")
    slope = math.floor(math.log2((highest - lowest) / share)) + 1
    decay = -math.log(1 - 2.0**-weight) / (0.8 * packet)
    cell = next(log for log in range(32) if 31 / decay / 2**log < 512)
    table = [0, *(min(31, int((age << cell) * decay)) for age in range(1, 255)), 31]
    numbers = *map(round, (limit, lowest, highest)), weight, slope, cell, round(given.get("ecn", 0))
    parts = struct.pack("=III4B", *numbers), bytes(table), struct.pack("=I", min(2**32 - 1, round(share * 2**32)))
    return b"".join(_attribute(number, part) for number, part in enumerate(parts, 1))
