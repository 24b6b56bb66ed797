# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""TCP sequence numbers over time, of captures: `python sequence.py OUT.svg NAME=FILE.pcapng … [FROM_S TO_S]`. Needs matplotlib.

Of each direction of each link the data that IPv4 carries: a dot is a segment, a red one is one that was sent before.
"""

import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib.pyplot as plt


def frames(file: Path) -> Iterator[tuple[int, bytes]]:
    """Time in ns and first bytes of each frame of a pcapng file in this machine's byte order, times in ns."""
    data, at = file.read_bytes(), 0
    while at + 12 <= len(data):
        kind, length = struct.unpack_from("=II", data, at)
        if kind == 6:  # enhanced packet block
            _, high, low, captured = struct.unpack_from("=IIII", data, at + 8)
            yield (high << 32) + low, data[at + 28 : at + 28 + captured]
        at += length


def segments(file: Path) -> Iterator[tuple[float, str, int, int]]:
    """Seconds after the first one, sender, sequence number and length of each TCP segment with data."""
    zero_ns: int | None = None
    for time_ns, frame in frames(file):
        if len(frame) < 54 or frame[12:14] != b"\x08\x00" or frame[23] != 6:
            continue
        header = 4 * (frame[14] & 15)
        tcp = 14 + header
        (total,), (source, _, sequence) = struct.unpack_from("!H", frame, 16), struct.unpack_from("!HHI", frame, tcp)
        length = total - header - 4 * (frame[tcp + 12] >> 4)
        if length > 0:
            zero_ns = time_ns if zero_ns is None else zero_ns
            yield (time_ns - zero_ns) / 1e9, f"{'.'.join(map(str, frame[26:30]))}:{source}", sequence, length


def main(out: str, *words: str) -> None:
    """Draw one panel for each file."""
    named = [word.split("=", 1) for word in words if "=" in word]
    span = [float(word) for word in words if "=" not in word]
    _, panels = plt.subplots(
        len(named), sharex=True, figsize=(8, 1.9 * len(named)), layout="constrained", squeeze=False
    )
    for (name, file), panel in zip(named, panels[:, 0], strict=True):
        flows: dict[str, list[tuple[float, float, bool]]] = {}
        first: dict[str, int] = {}
        highest: dict[str, int] = {}
        for time_s, flow, sequence, length in segments(Path(file)):
            offset = (sequence - first.setdefault(flow, sequence)) & 0xFFFFFFFF
            again = offset + length <= highest.get(flow, 0)
            highest[flow] = max(highest.get(flow, 0), offset + length)
            if not span or span[0] <= time_s <= span[1]:
                flows.setdefault(flow, []).append((time_s, offset / 1e6, again))
        for number, (flow, dots) in enumerate(sorted(flows.items())):
            new = [(t, y) for t, y, again in dots if not again]
            panel.plot(*zip(*new, strict=True), ".", markersize=1.5, color=f"C{number}", label=flow)
        again = [(t, y) for dots in flows.values() for t, y, sent in dots if sent]
        if again:
            panel.plot(*zip(*again, strict=True), ".", markersize=4, color="crimson", label="sent again")
        panel.set_title(name, loc="left", fontsize=10)
        panel.set_ylabel("sequence (MB)")
        panel.legend(loc="upper left", fontsize=7, markerscale=3)
        print(f"{name}: {sum(map(len, flows.values()))} segments, {len(again)} sent again")
    panels[-1, 0].set_xlabel("time (s)")
    plt.savefig(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
